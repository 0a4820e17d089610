package intervals

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
)

// uploadFields are the athlete's settings that send planned workouts of the next days to a service.
var uploadFields = map[string]string{
	"icu_garmin_upload_workouts": "Garmin", "wahoo_upload_workouts": "Wahoo", "suunto_upload_workouts": "Suunto",
	"coros_upload_workouts": "COROS", "zwift_upload_workouts": "Zwift", "huawei_upload_workouts": "Huawei", "zepp_upload_workouts": "Zepp",
}

func uploads(athlete map[string]json.RawMessage) map[string]bool {
	out := map[string]bool{}
	for field, name := range uploadFields {
		if string(athlete[field]) == "true" {
			out[name] = true
		}
	}
	return out
}

// devices warns that a change of the coming week also reaches watches and bike computers, which an undo does
// not: the service sends workouts of about seven days ahead to each connected one.
func (p *plan) devices(ctx context.Context) {
	last, err := time.Parse(time.DateOnly, p.today)
	if err != nil || len(p.owner.uploads) == 0 {
		return
	}
	horizon := last.AddDate(0, 0, 7).Format(time.DateOnly)
	near := false
	for i, op := range p.Ops {
		was := fields(p.Before[i])
		var sent event
		_ = json.Unmarshal(op.Payload, &sent) // a delete has none
		if was.text("category") != "WORKOUT" && sent.text("category") != "WORKOUT" {
			continue
		}
		for _, day := range []string{was.day(), sent.day()} {
			near = near || day != "" && day <= horizon
		}
	}
	if !near {
		return
	}
	var connected map[string]json.RawMessage
	if err := p.t.get(ctx, "/athlete/"+url.PathEscape(string(p.Account))+"/connections", nil, &connected); err != nil {
		p.warn("it also reaches connected devices; which ones could not be read")
		return
	}
	var names []string
	for name := range p.owner.uploads {
		key := strings.ToLower(name)
		if string(connected[key+"_training_connected"]) == "true" || string(connected[key+"_connected"]) == "true" {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		p.warn("it also reaches %s; an undo does not take back a copy that is on a device already", strings.Join(names, ", "))
	}
}

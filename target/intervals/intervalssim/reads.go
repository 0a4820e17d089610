package intervalssim

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// getAthlete shows, as the service does, what no model should see: the key, the e-mail address, the date of birth.
func (s *Sim) getAthlete(c *call) (any, *failure) {
	a := c.a
	v := a.public()
	maps.Copy(v, map[string]any{
		"icu_api_key": a.key, "email": a.id + "@example.com", "icu_date_of_birth": "1988-02-29", "icu_friend_invite_token": "invite-" + a.id,
		"has_password": true, "plan": "FREE", "sportSettings": a.sportSettings(), "custom_items": []any{},
	})
	for service, member := range uploads {
		v[member] = slices.Contains(a.connected, service)
	}
	return v, nil
}

func (a *athlete) public() map[string]any {
	return map[string]any{
		"id": a.id, "name": a.name, "firstname": strings.Fields(a.name)[0], "lastname": nil, "sex": "X", "city": "Girona", "country": "Spain",
		"timezone": a.zoneName, "locale": "en", "measurement_preference": "meters", "weight_pref_lb": false, "fahrenheit": false,
		"icu_weight": 68.0, "icu_resting_hr": 48, "icu_form_as_percent": false, "status": "ACTIVE", "visibility": "PRIVATE",
	}
}

// uploads are the settings that send planned workouts on, by service.
var uploads = map[string]string{
	"garmin": "icu_garmin_upload_workouts", "wahoo": "wahoo_upload_workouts", "suunto": "suunto_upload_workouts",
	"coros": "coros_upload_workouts", "zwift": "zwift_upload_workouts", "huawei": "huawei_upload_workouts", "zepp": "zepp_upload_workouts",
}

func (s *Sim) getProfile(c *call) (any, *failure) {
	return map[string]any{"athlete": c.a.public(), "sharedFolders": []any{}, "customItems": []any{}}, nil
}

func (s *Sim) getConnections(c *call) (any, *failure) {
	v := map[string]any{"id": c.a.id}
	for _, name := range strings.Fields(`garmin_health garmin_training polar suunto coros concept2 zepp huawei wahoo zwift oura whoop strava
		dropbox hammerhead tp_virtual rouvy mywhoosh biketerra tymewear`) {
		v[name+"_connected"] = slices.Contains(c.a.connected, strings.TrimSuffix(name, "_training"))
	}
	v["strava_connected"] = true
	return v, nil
}

func (a *athlete) sportSettings() []map[string]any {
	ride, run, swim := a.thresholds("Ride", false), a.thresholds("Run", false), a.thresholds("Swim", false)
	return []map[string]any{
		{"id": 1, "athlete_id": a.id, "types": []string{"Ride", "VirtualRide", "GravelRide"}, "ftp": ride.FTP, "indoor_ftp": a.indoorFTP,
			"power_zones": ride.PowerZones, "lthr": ride.LTHR, "max_hr": ride.MaxHR, "hr_zones": ride.HRZones, "threshold_pace": nil,
			"pace_units": nil, "pace_zones": nil, "workout_order": "POWER_HR_PACE", "load_order": "POWER_HR_PACE"},
		{"id": 2, "athlete_id": a.id, "types": []string{"Run", "TrailRun", "VirtualRun"}, "ftp": nil, "indoor_ftp": nil, "power_zones": nil,
			"lthr": run.LTHR, "max_hr": run.MaxHR, "hr_zones": run.HRZones, "threshold_pace": run.ThresholdPace, "pace_units": "MINS_KM",
			"pace_zones": run.PaceZones, "workout_order": "HR_PACE_POWER", "load_order": "HR_PACE_POWER"},
		{"id": 3, "athlete_id": a.id, "types": []string{"Swim", "OpenWaterSwim"}, "ftp": nil, "indoor_ftp": nil, "power_zones": nil, "lthr": nil,
			"max_hr": nil, "hr_zones": nil, "threshold_pace": swim.ThresholdPace, "pace_units": "SECS_100M", "pace_zones": swim.PaceZones,
			"workout_order": "PACE_HR_POWER", "load_order": "PACE_HR_POWER"},
	}
}

func (s *Sim) listSportSettings(c *call) (any, *failure) { return c.a.sportSettings(), nil }

func (s *Sim) getSportSettings(c *call) (any, *failure) {
	for _, v := range c.a.sportSettings() {
		types, _ := v["types"].([]string)
		if sport := c.r.PathValue("sport"); slices.Contains(types, sport) || strconv.Itoa(v["id"].(int)) == sport {
			return v, nil
		}
	}
	return nil, refuse(404, "Not found")
}

// updateSportSettings sets thresholds. A new FTP costs every coming workout again.
func (s *Sim) updateSportSettings(c *call) (any, *failure) {
	if c.r.URL.Query().Get("recalcHrZones") == "" {
		return nil, refuse(400, "Required request parameter 'recalcHrZones' is not present")
	}
	if _, f := s.getSportSettings(c); f != nil {
		return nil, f
	}
	var sent struct {
		FTP           *int     `json:"ftp"`
		ThresholdPace *float64 `json:"threshold_pace"`
	}
	if f := c.decode(&sent); f != nil {
		return nil, f
	}
	if p := sent.ThresholdPace; p != nil {
		if *p <= 0 || *p > 12 { // m/s, and not the seconds that people send
			return nil, refuse(422, "Invalid threshold pace: "+strconv.FormatFloat(*p, 'f', 1, 64))
		}
		c.a.thresholdPace = *p
		s.record(c.cause, "settings", 0, []string{"threshold_pace"})
	}
	if sent.FTP != nil {
		s.changeFTP(c.cause, c.a, *sent.FTP)
	}
	return s.getSportSettings(c)
}

func (s *Sim) eventTags(c *call) (any, *failure) {
	tags := map[string]bool{}
	for _, e := range c.a.events {
		list, _ := e.values["tags"].([]string)
		for _, tag := range list {
			tags[tag] = true
		}
	}
	return slices.Sorted(maps.Keys(tags)), nil
}

func (s *Sim) fitnessModelEvents(c *call) (any, *failure) {
	list := []*event{}
	for _, e := range c.a.sorted(c.a.events) {
		if slices.Contains([]string{"SET_EFTP", "FITNESS_DAYS", "SET_FITNESS", "SEASON_START"}, e.text("category")) {
			list = append(list, e)
		}
	}
	return list, nil
}

// powerCurves follows the two-parameter model with the athlete's FTP.
func (s *Sim) powerCurves(c *call) (any, *failure) {
	query := c.r.URL.Query()
	if query.Get("type") == "" {
		return nil, refuse(400, "Required request parameter 'type' is not present")
	}
	wanted := query.Get("curves")
	if wanted == "" {
		wanted = "1y"
	}
	secs := []int{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600}
	curves := []any{}
	for i, id := range strings.Split(wanted, ",") {
		values := make([]int, len(secs))
		perKilo := make([]float64, len(secs))
		for j, sec := range secs {
			w := min(float64(c.a.ftp)*0.97+18000/float64(sec), 1050) - float64(5*i)
			values[j], perKilo[j] = int(w), math.Round(w/68*100)/100
		}
		today := s.now().In(c.a.zone)
		curves = append(curves, map[string]any{
			"id": id, "label": id, "start_date_local": day(today.AddDate(0, 0, -90)) + "T00:00:00", "end_date_local": day(today) + "T00:00:00",
			"days": 90, "weight": 68.0, "secs": secs, "values": values, "watts": values, "watts_per_kg": perKilo, "activity_id": make([]*string, len(secs)),
		})
	}
	return map[string]any{"list": curves, "activities": map[string]any{}}, nil
}

// libraryWorkout is one of the invented library's.
type libraryWorkout struct {
	id, folder        int
	name, sport, text string
	day               *int
}

var library = []libraryWorkout{
	{501, 41, "Sweet spot 3x12", "Ride", "Warmup\n- 15m ramp 50-70%\n\n3x\n- 12m 88-93%\n- 5m 55%\n\nCooldown\n- 10m 50%", nil},
	{502, 41, "VO2 5x4", "Ride", "Warmup\n- 15m 55%\n\n5x\n- 4m 112%\n- 4m 50%\n\nCooldown\n- 10m 50%", nil},
	{503, 41, "Easy endurance", "Ride", "- 1h30m 60-68%", nil},
	{504, 42, "Base week: Tuesday", "Run", "- 40m Z2 HR", new(int)},
}

func (w libraryWorkout) shown(s *Sim, a *athlete) *map[string]any {
	e := s.draft(a, "", 0, 0)
	raw, _ := json.Marshal(map[string]any{"category": "WORKOUT", "start_date_local": "2000-01-01T00:00:00", "name": w.name, "type": w.sport, "description": w.text})
	var sent map[string]json.RawMessage
	_ = json.Unmarshal(raw, &sent) // our own
	_ = s.write(a, e, writing{sent: sent})
	v := map[string]any{"id": w.id, "athlete_id": a.id, "folder_id": w.folder, "day": w.day, "days": nil, "hide_from_athlete": false, "attachments": nil,
		"updated": stamp(time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC))}
	for _, name := range strings.Fields("name description type indoor color moving_time distance icu_training_load icu_intensity joules joules_above_ftp workout_doc target tags sub_type carbs_per_hour") {
		v[name] = e.values[name]
	}
	return &v
}

func (s *Sim) listWorkouts(c *call) (any, *failure) {
	list := []*map[string]any{}
	for _, w := range library {
		list = append(list, w.shown(s, c.a))
	}
	return list, nil
}

func (s *Sim) getWorkout(c *call) (any, *failure) {
	id, err := strconv.Atoi(c.r.PathValue("workout"))
	if err != nil {
		return nil, refuse(422, "Failed to convert value to required type 'int'")
	}
	for _, w := range library {
		if w.id == id {
			return w.shown(s, c.a), nil
		}
	}
	return nil, refuse(404, "Not found")
}

func (s *Sim) listFolders(c *call) (any, *failure) {
	folder := func(id int, kind, name string) map[string]any {
		children := []*map[string]any{}
		for _, w := range library {
			if w.folder == id {
				children = append(children, w.shown(s, c.a))
			}
		}
		return map[string]any{"id": id, "athlete_id": c.a.id, "type": kind, "name": name, "description": nil, "children": children,
			"visibility": "PRIVATE", "num_workouts": len(children), "canEdit": true, "sharedWithCount": 0, "start_date_local": nil}
	}
	return []any{folder(41, "FOLDER", "Intervals"), folder(42, "PLAN", "Base build")}, nil
}

func (s *Sim) workoutTags(*call) (any, *failure) { return []string{}, nil }

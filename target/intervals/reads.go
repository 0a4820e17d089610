package intervals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// What all reads have in common.
//
// An answer is an object of its own for people and models: a few fields, under the service's names, in the service's
// units; a number keeps the digits in which it came; a date is local and never converted, with its weekday beside it,
// which models get wrong. What the service sends as null is left out, and a value of an enumeration that is not known
// here passes. What came in another shape than the API documents is named in Unread, instead of failing the whole
// read. Full gives the object as it came.

// MaxDays of one read.
const MaxDays = 366

// Unread names fields that came in another shape than the API documents, and are left out.
type Unread struct {
	Unread []string `json:"unread,omitempty"`
}

func (u *Unread) unreadable(names []string) { u.Unread = names }

// StravaLicence is why an activity has nothing but an id and a date: recordings that came through Strava may not be
// passed on by the API. They are not empty, they cannot be seen.
const StravaLicence = "strava_licence"

// NotAnalysed is why an activity has no intervals and streams yet.
const NotAnalysed = "not_analysed"

// fill sets the fields of the struct that v points to from the members of e, by their exact names. encoding/json would
// match names in any case, and the athlete's own fields stand between the service's: "HRV" is not "hrv". It returns
// the names of what does not fit.
func fill(e event, v any) {
	var misfits []string
	var set func(reflect.Value)
	set = func(s reflect.Value) {
		for i := range s.NumField() {
			f := s.Type().Field(i)
			if f.Anonymous {
				set(s.Field(i))
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !e.set(name) {
				continue
			}
			if into := reflect.New(f.Type); json.Unmarshal(e[name], into.Interface()) != nil {
				misfits = append(misfits, name)
			} else {
				s.Field(i).Set(into.Elem())
			}
		}
	}
	set(reflect.ValueOf(v).Elem())
	if u, ok := v.(interface{ unreadable([]string) }); ok {
		u.unreadable(misfits)
	}
}

// weekday of a local date or date-time; "" if it is none.
func weekday(local string) string {
	if len(local) < len(time.DateOnly) {
		return ""
	}
	t, err := time.Parse(time.DateOnly, local[:len(time.DateOnly)])
	if err != nil {
		return ""
	}
	return t.Weekday().String()
}

// whole is e as it came, with the weekday of the day that is in field, for those who asked for everything.
func (e event) whole(field string) (json.RawMessage, error) {
	if d := weekday(e.text(field)); d != "" {
		e["weekday"] = quote(d)
	}
	return encode(e)
}

// Today is the athlete's day, and not the day of this machine.
type Today struct {
	Date     string `json:"today"`
	Weekday  string `json:"weekday"`
	TimeZone string `json:"timezone"`
}

func (c *Client) today(a event) (Today, error) {
	name := a.text("timezone")
	zone, err := zone(name)
	if err != nil {
		return Today{}, err
	}
	now := c.now().In(zone)
	return Today{now.Format(time.DateOnly), now.Weekday().String(), name}, nil
}

// zone is the athlete's. time.LoadLocation takes "" for UTC and "Local" for this machine's: both are somebody else's
// today.
func zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, errors.New("the service did not say the athlete's time zone, so nobody knows which day it is there; set it in the settings there")
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %q of the athlete: %w", clean(name), err)
	}
	return l, nil
}

// Today asks the service for the athlete's zone.
func (c *Client) Today(ctx context.Context) (Today, error) {
	a, err := c.athleteObject(ctx)
	if err != nil {
		return Today{}, err
	}
	return c.today(a)
}

func (c *Client) athleteObject(ctx context.Context) (event, error) {
	var a event
	err := c.get(ctx, c.own(""), nil, &a)
	return a, err
}

// own is a path below the athlete.
func (c *Client) own(path string) string { return "/athlete/" + url.PathEscape(c.athlete) + path }

// Days are a range of local days, both inclusive, YYYY-MM-DD.
type Days struct {
	Oldest string `json:"oldest,omitempty" jsonschema:"first day, YYYY-MM-DD, the athlete's local date"`
	Newest string `json:"newest,omitempty" jsonschema:"last day, inclusive, YYYY-MM-DD; at most 366 days"`
}

// within completes d and checks it. back and ahead are the days around today that it covers if nothing is given; a
// range of which one end is given has the same length.
func (d Days) within(today Today, back, ahead int) (Days, error) {
	span := back + ahead
	now, err := day("today", today.Date)
	if err != nil {
		return d, err
	}
	oldest, newest := now.AddDate(0, 0, -back), now.AddDate(0, 0, ahead)
	if d.Oldest != "" {
		if oldest, err = day("oldest", d.Oldest); err != nil {
			return d, err
		}
		newest = oldest.AddDate(0, 0, span)
	}
	if d.Newest != "" {
		if newest, err = day("newest", d.Newest); err != nil {
			return d, err
		}
		if d.Oldest == "" {
			oldest = newest.AddDate(0, 0, -span)
			if back == 0 && !newest.Before(now) { // a calendar begins today
				oldest = now
			}
		}
	}
	d = Days{oldest.Format(time.DateOnly), newest.Format(time.DateOnly)}
	n := int(newest.Sub(oldest).Hours()/24) + 1
	switch {
	case n < 1:
		return d, bad("newest", fmt.Sprintf("%s is before oldest, %s", d.Newest, d.Oldest), "swap them: both days are inclusive")
	case n > MaxDays:
		return d, bad("newest", fmt.Sprintf("%d days from %s to %s", n, d.Oldest, d.Newest), fmt.Sprintf("ask for at most %d days at a time", MaxDays))
	}
	return d, nil
}

func (d Days) query() url.Values { return url.Values{"oldest": {d.Oldest}, "newest": {d.Newest}} }

func day(field, s string) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Year() < 1970 || t.Year() > 2100 {
		return t, bad(field, fmt.Sprintf("%q is no day", clean(s)), "use a local date, YYYY-MM-DD, such as 2026-12-03")
	}
	return t, nil
}

// limited checks how many rows are wanted; 0 is otherwise.
func limited(n, otherwise, most int) (int, error) {
	if n == 0 {
		return otherwise, nil
	}
	if n < 1 || n > most {
		return 0, bad("limit", fmt.Sprintf("%d of them", n), fmt.Sprintf("use 1 to %d", most))
	}
	return n, nil
}

// ActivityID is the id of a recording: i and digits, or the digits alone. Agents send it as text or as a number.
type ActivityID string

var activityForm = regexp.MustCompile(`^i?[0-9]{1,20}$`)

// UnmarshalJSON refuses other forms before any request.
func (id *ActivityID) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if !activityForm.MatchString(s) {
		return fmt.Errorf("%s is not an activity id: use the one that list_activities gives, such as i88001101", clean(string(b)))
	}
	*id = ActivityID(s)
	return nil
}

// notFound turns a 404 into a mistake in the arguments.
func notFound(err error, field, what, fix string) error {
	var api *APIError
	if errors.As(err, &api) && api.Status == http.StatusNotFound {
		return bad(field, "there is no "+what, fix)
	}
	return err
}

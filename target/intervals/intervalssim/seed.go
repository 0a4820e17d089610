package intervalssim

import (
	"fmt"
	"maps"
	"time"
)

// The demo calendar is the week that begins on the coming Monday, some of the one before and after it, and six weeks of
// history. Ids are the same in every process:
//
//	70010001  Thu 08:00  Tempo 3x10 min (Ride, structured)     70010007  paired session of two days ago
//	70010002  Tue 18:30  Easy run                              70010008  Fri  Strength
//	70010003  Wed 07:00  Swim                                  70010009  next Tue  from a plan
//	70010004  Mon        note                                  70010010  Wed  from an imported calendar (calendar_id 2)
//	70010005  Sun 09:00  Long ride                             70010011  next Wed  locked by the coach
//	70010006  Sat after next Sunday  race B                    70010012  holiday, from last week until Tuesday
//
// firstEvent is the id that the first event of any simulator gets.
const firstEvent = 70010001

func (s *Sim) seedDemo(a *athlete) {
	today := s.now().In(a.zone)
	monday := today.AddDate(0, 0, (7-int(today.Weekday()))%7+1)
	on := func(d time.Weekday, weeks int, clock string) string {
		return day(weekday(monday, d).AddDate(0, 0, 7*weeks)) + "T" + clock
	}
	a.connected = []string{"garmin", "wahoo"}
	a.form = form{from: day(today.AddDate(0, 0, -43)), ctl: 50, atl: 60}
	s.seedHistory(a, today)

	past := today.AddDate(0, 0, -2)
	seeds := []map[string]any{
		{"category": "WORKOUT", "type": "Ride", "name": "Tempo 3x10 min", "start_date_local": on(time.Thursday, 0, "08:00:00"), "target": "POWER",
			"tags": []string{"key"}, "description": "Warmup\n- 15m ramp 50-75%\n\n3x\n- 10m 85-90% 90rpm\n- 5m 55%\n\nCooldown\n- 10m 50%\n\nStay seated on the climbs."},
		{"category": "WORKOUT", "type": "Run", "name": "Easy run", "start_date_local": on(time.Tuesday, 0, "18:30:00"), "description": "- 45m Z2 HR", "icu_training_load": 38},
		{"category": "WORKOUT", "type": "Swim", "name": "Swim: 8x100", "start_date_local": on(time.Wednesday, 0, "07:00:00"),
			"description": "Warmup\n- 400mtr 75% Pace\n\n8x\n- 100mtr 95% Pace 20s rest\n\nCooldown\n- 200mtr 70% Pace"},
		{"category": "NOTE", "name": "Travel to Girona", "start_date_local": on(time.Monday, 0, "00:00:00"), "description": "Train at 10:15, bike in the box.", "color": "orange"},
		{"category": "WORKOUT", "type": "Ride", "name": "Long ride", "start_date_local": on(time.Sunday, 0, "09:00:00"), "description": "- 30m 55-65%\n- 2h30m 62-70%\n- 15m 50%"},
		{"category": "RACE_B", "type": "Ride", "name": "Hill climb championship", "start_date_local": on(time.Saturday, 1, "10:00:00"), "moving_time": 2400, "icu_training_load": 70},
		{"category": "WORKOUT", "type": "Ride", "name": "Endurance", "start_date_local": day(past) + "T17:00:00", "description": "- 1h 65%"},
		{"category": "WORKOUT", "type": "WeightTraining", "name": "Strength", "start_date_local": on(time.Friday, 0, "18:00:00"), "description": "Squats, rows, planks.", "moving_time": 2700},
		{"category": "WORKOUT", "type": "Ride", "name": "Plan: 4x5 min", "start_date_local": on(time.Tuesday, 1, "18:00:00"), "description": "- 15m 55%\n\n4x\n- 5m 105%\n- 3m 50%\n\n- 10m 50%"},
		{"category": "NOTE", "name": "Dentist", "start_date_local": on(time.Wednesday, 0, "11:00:00"), "calendar_id": 2},
		{"category": "WORKOUT", "type": "Ride", "name": "Ramp test", "start_date_local": on(time.Wednesday, 1, "18:00:00"), "description": "- 10m 50%\n- 20m ramp 50-120%\n- 10m 40%"},
		{"category": "HOLIDAY", "name": "School holidays", "start_date_local": day(today.AddDate(0, 0, -5)) + "T00:00:00", "end_date_local": on(time.Wednesday, 0, "00:00:00"), "training_availability": "LIMITED"},
	}
	for i, seed := range seeds {
		e := s.seedEvent(a, seed)
		switch i {
		case 6:
			act := s.newActivity(a, map[string]any{"type": "Ride", "name": "Endurance", "start_date_local": day(past) + "T17:04:11", "source": "GARMIN_CONNECT",
				"moving_time": int64(3641), "distance": 31250.0, "icu_training_load": int64(44), "average_heartrate": 138, "icu_average_watts": 164, "paired_event_id": e.id()})
			e.set("paired_activity_id", act.id)
		case 8:
			e.set("plan_athlete_id", a.id)
			e.set("plan_folder_id", int64(42))
			e.set("plan_workout_id", int64(504))
			e.set("plan_applied", stamp(today.AddDate(0, 0, -20)))
		case 10:
			e.set("athlete_cannot_edit", true)
			e.set("created_by_id", "i900777")
		}
	}
	a.before = maps.Clone(a.events)
}

// seedEvent places an event without a record: nobody has done anything yet.
func (s *Sim) seedEvent(a *athlete, values map[string]any) *event {
	sent, err := encoded(values)
	if err != nil {
		panic(err)
	}
	e := s.draft(a, "web_app", 0, 0)
	if f := s.write(a, e, writing{sent: sent}); f != nil {
		panic(fmt.Sprintf("intervalssim: seed %v: %v", values["name"], f))
	}
	e.set("id", s.nextID)
	s.nextID++
	a.events[e.id()] = e
	return e
}

func (s *Sim) seedHistory(a *athlete, today time.Time) {
	for back := 42; back > 2; back-- {
		d := today.AddDate(0, 0, -back)
		if back%3 != 0 {
			sport, load := "Ride", int64(55+back%7*8)
			if back%5 == 0 {
				sport, load = "Run", 42
			}
			s.newActivity(a, map[string]any{"type": sport, "name": sport + " " + d.Weekday().String(), "start_date_local": day(d) + "T17:30:00", "source": "GARMIN_CONNECT",
				"moving_time": int64(3000 + 60*(back%9)), "distance": float64(24000 + 500*back), "icu_training_load": load, "average_heartrate": 135 + back%9})
		}
	}
	for back := 13; back >= 0; back-- {
		a.wellness[day(today.AddDate(0, 0, -back))] = map[string]any{"restingHR": 47 + back%4, "hrv": float64(62 + back%9), "weight": 68.0 + float64(back%3)/10,
			"sleepSecs": 26000 + 300*(back%5), "sleepQuality": 2, "updated": stamp(today.AddDate(0, 0, -back)),
			"sportInfo": []any{map[string]any{"type": "Ride", "eftp": 248.5, "wPrime": 18000.0, "pMax": 980.0}}}
	}
	d := day(today.AddDate(0, 0, -10))
	a.activities["15550001"] = &activity{id: "15550001", strava: true, values: map[string]any{"icu_athlete_id": a.id, "start_date_local": d + "T07:31:00"}}
}

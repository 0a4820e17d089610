package intervalssim

import "net/http"

// routes is the whole API. What is not here answers 404, and another verb on what is here answers 405, as there.
func (s *Sim) routes() http.Handler {
	mux := http.NewServeMux()
	on := func(area, verb, path string, endpoint func(*call) (any, *failure)) {
		mux.HandleFunc(verb+" /api/v1"+path, s.handle(area, endpoint))
	}
	on("CALENDAR", "GET", "/athlete/{id}/events", s.listEvents)
	on("CALENDAR", "GET", "/athlete/{id}/events.json", s.listEvents)
	on("CALENDAR", "POST", "/athlete/{id}/events", s.createEvent)
	on("CALENDAR", "PUT", "/athlete/{id}/events", s.hideEvents)
	on("CALENDAR", "DELETE", "/athlete/{id}/events", s.deleteRange)
	on("CALENDAR", "POST", "/athlete/{id}/events/bulk", s.createEvents)
	on("CALENDAR", "PUT", "/athlete/{id}/events/bulk-delete", s.deleteEvents)
	on("CALENDAR", "GET", "/athlete/{id}/events/{event}", s.getEvent)
	on("CALENDAR", "PUT", "/athlete/{id}/events/{event}", s.updateEvent)
	on("CALENDAR", "DELETE", "/athlete/{id}/events/{event}", s.deleteEvent)
	on("CALENDAR", "POST", "/athlete/{id}/events/{event}/mark-done", s.markDone)
	on("CALENDAR", "POST", "/athlete/{id}/duplicate-events", s.duplicateEvents)
	on("CALENDAR", "GET", "/athlete/{id}/event-tags", s.eventTags)
	on("CALENDAR", "GET", "/athlete/{id}/fitness-model-events", s.fitnessModelEvents)

	on("SETTINGS", "GET", "/athlete/{id}", s.getAthlete)
	on("SETTINGS", "GET", "/athlete/{id}/profile", s.getProfile)
	on("SETTINGS", "GET", "/athlete/{id}/connections", s.getConnections)
	on("SETTINGS", "GET", "/athlete/{id}/sport-settings", s.listSportSettings)
	on("SETTINGS", "GET", "/athlete/{id}/sport-settings/{sport}", s.getSportSettings)
	on("SETTINGS", "PUT", "/athlete/{id}/sport-settings/{sport}", s.updateSportSettings)

	on("ACTIVITY", "GET", "/athlete/{id}/activities", s.listActivities)
	on("ACTIVITY", "GET", "/athlete/{id}/activities/{ids}", s.getActivities)
	on("ACTIVITY", "POST", "/athlete/{id}/activities/manual", s.createManual)
	on("ACTIVITY", "GET", "/athlete/{id}/power-curves", s.powerCurves)
	on("ACTIVITY", "GET", "/athlete/{id}/power-curves.json", s.powerCurves)
	on("ACTIVITY", "GET", "/activity/{activity}", s.getActivity)
	on("ACTIVITY", "PUT", "/activity/{activity}", s.updateActivity)
	on("ACTIVITY", "GET", "/activity/{activity}/intervals", s.getIntervals)
	on("ACTIVITY", "GET", "/activity/{activity}/streams", s.getStreams)
	on("ACTIVITY", "GET", "/activity/{activity}/streams.json", s.getStreams)

	on("WELLNESS", "GET", "/athlete/{id}/wellness", s.listWellness)
	on("WELLNESS", "GET", "/athlete/{id}/wellness.json", s.listWellness)
	on("WELLNESS", "GET", "/athlete/{id}/wellness/{date}", s.getWellness)
	on("WELLNESS", "PUT", "/athlete/{id}/wellness/{date}", s.updateWellness)

	on("LIBRARY", "GET", "/athlete/{id}/folders", s.listFolders)
	on("LIBRARY", "PUT", "/athlete/{id}/folders/{folder}/workouts", s.unsimulated)
	on("LIBRARY", "GET", "/athlete/{id}/workouts", s.listWorkouts)
	on("LIBRARY", "GET", "/athlete/{id}/workouts/{workout}", s.getWorkout)
	on("LIBRARY", "GET", "/athlete/{id}/workout-tags", s.workoutTags)
	return mux
}

// unsimulated exists for the 405 that the other verbs on its path answer.
func (s *Sim) unsimulated(*call) (any, *failure) { return nil, refuse(501, "not simulated") }

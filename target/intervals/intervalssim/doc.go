// Package intervalssim is a simulator of the Intervals.icu API: calendar, activities, wellness, library and settings of a
// few invented athletes, in memory, as an http.Handler.
//
// It refuses what the real service is known to refuse (a bare date, an unknown category, a workout without a type, a
// singular /event/ path), it changes on write what the real service is known to change (the text is parsed, the load is
// computed, a client's uid is ignored), and it can be made to fail in every way that a client must survive (Fault) and to
// change under a client's hands (Act). What it really did is in its Journal, in order: that, and not what some client
// believes, is what tests judge by.
//
// Behaviour follows the OpenAPI document at https://intervals.icu/api/v1/docs, the maintainer's posts on
// forum.intervals.icu, and what authors of clients report to have tried. Where that is silent or contradictory, Options has
// a switch. Nothing here was compared with the live service.
//
// The admin surface, under /_sim/, is for loopback only and has no authentication:
//
//	GET  /_sim/journal    the effects, in order
//	GET  /_sim/requests   every API request, effect or not
//	GET  /_sim/outbox     what was pushed to devices; nothing calls it back
//	POST /_sim/fault      {"fault":"apply_then_drop@PUT#2","times":1}
//	POST /_sim/act        {"act":"edit","event_id":70010001,"set":{"name":"Easy"}}
//
// BUG(wetink): workouts sent as files (file_contents), CSV answers, downloads and applying plans are not simulated.
package intervalssim

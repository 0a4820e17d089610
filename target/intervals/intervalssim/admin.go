package intervalssim

import (
	"encoding/json"
	"net"
	"net/http"
)

// serveAdmin answers under /_sim/. It has no authentication, so it takes nothing from another machine, and nothing from a
// page in a browser on this one.
func (s *Sim) serveAdmin(w http.ResponseWriter, r *http.Request) {
	if !fromLoopback(r) || r.Header.Get("Origin") != "" {
		http.Error(w, "the simulator's admin surface is for programs on this machine", http.StatusForbidden)
		return
	}
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /_sim/journal":
		answer(200, orNone(s.Journal()))
	case "GET /_sim/requests":
		answer(200, orNone(s.Requests()))
	case "GET /_sim/outbox":
		answer(200, orNone(s.Outbox()))
	case "POST /_sim/fault":
		var f struct {
			Fault string `json:"fault"`
			Times int    `json:"times"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&f); err != nil {
			answer(400, map[string]any{"error": err.Error()})
			return
		}
		if err := s.Fault(f.Fault, f.Times); err != nil {
			answer(400, map[string]any{"error": err.Error()})
			return
		}
		answer(200, map[string]any{"fault": f.Fault})
	case "POST /_sim/act":
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		d.UseNumber()
		var args map[string]any
		if err := d.Decode(&args); err != nil {
			answer(400, map[string]any{"error": err.Error()})
			return
		}
		act, _ := args["act"].(string)
		delete(args, "act")
		v, err := s.Act(act, args)
		if err != nil {
			answer(400, map[string]any{"error": err.Error(), "acts": Acts()})
			return
		}
		answer(200, map[string]any{"act": act, "result": v})
	default:
		http.NotFound(w, r)
	}
}

func orNone[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

func fromLoopback(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

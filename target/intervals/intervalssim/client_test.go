package intervalssim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// Tuesday. The coming Monday is the 7th, Tempo is on Thursday the 10th.
var tuesday = time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC)

// client is an API client that keeps what it got.
type client struct {
	t    *testing.T
	sim  *Sim
	url  string
	auth func(*http.Request)
	http *http.Client
}

func start(t *testing.T, o *Options) *client {
	t.Helper()
	opts := Options{Seed: "demo"}
	if o != nil {
		opts = *o
	}
	if opts.Now == nil {
		opts.Now = func() time.Time { return tuesday }
	}
	sim := New(&opts)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	t.Cleanup(sim.Close) // first: held requests go
	c := &client{t: t, sim: sim, url: server.URL, http: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // a connection that the server closes is then an error, not a second try
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return c.as("API_KEY", sim.APIKey())
}

func (c *client) as(user, password string) *client {
	d := *c
	d.auth = func(r *http.Request) { r.SetBasicAuth(user, password) }
	return &d
}

func (c *client) bearer(token string) *client {
	d := *c
	d.auth = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	return &d
}

type answer struct {
	status int
	header http.Header
	body   []byte
	err    error // of the connection
}

// try sends a request; body is text or anything that JSON can hold.
func (c *client) try(method, path string, body any) answer {
	c.t.Helper()
	var b []byte
	switch body := body.(type) {
	case nil:
	case string:
		b = []byte(body)
	default:
		b, _ = json.Marshal(body)
	}
	r, err := http.NewRequest(method, c.url+path, bytes.NewReader(b))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("User-Agent", "intervalssim-test/1")
	c.auth(r)
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, got, err}
}

const home = "/api/v1/athlete/0"

// do wants success and reads the answer into a map or list.
func do[T any](c *client, method, path string, body any) T {
	c.t.Helper()
	a := c.try(method, path, body)
	if a.err != nil || a.status != 200 {
		c.t.Fatalf("%s %s: %d %s %v", method, path, a.status, a.body, a.err)
	}
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		c.t.Fatalf("%s %s: %v in %.200s", method, path, err, a.body)
	}
	return v
}

type object = map[string]any

func (c *client) event(id any) object {
	c.t.Helper()
	return do[object](c, "GET", home+"/events/"+str(id), nil)
}

func (c *client) create(e object) object {
	c.t.Helper()
	return do[object](c, "POST", home+"/events", e)
}

func (c *client) update(id any, set object) object {
	c.t.Helper()
	return do[object](c, "PUT", home+"/events/"+str(id), set)
}

func (c *client) fault(spec string, times int) {
	c.t.Helper()
	if err := c.sim.Fault(spec, times); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) act(act string, args object) any {
	c.t.Helper()
	v, err := c.sim.Act(act, args)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

// kinds are the kinds of the effects so far.
func (c *client) kinds() []string {
	kinds := []string{}
	for _, e := range c.sim.Journal() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (c *client) wantKinds(want ...string) {
	c.t.Helper()
	if got := c.kinds(); !slices.Equal(got, want) {
		c.t.Errorf("effects %v, want %v", got, want)
	}
}

func str(v any) string {
	b, _ := json.Marshal(v)
	return string(bytes.Trim(b, `"`))
}

// note is the least that a create needs.
func note(name string) object {
	return object{"category": "NOTE", "start_date_local": "2026-12-09T00:00:00", "name": name}
}

// ride is a structured session.
func ride(name, text string) object {
	return object{"category": "WORKOUT", "type": "Ride", "start_date_local": "2026-12-09T08:00:00", "name": name, "description": text}
}

const threshold = "Warmup\n- 10m 55%\n\n3x\n- 8m 100%\n- 4m 55%\n\nCooldown\n- 10m 50%"

// tempo is the id of Thursday's session.
const tempo = 70010001

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/internal/secret"
	ledger "github.com/wetink/wetink/ledger/sqlite"
	store "github.com/wetink/wetink/store/sqlite"
	"github.com/wetink/wetink/wetinktest"
)

const pageOrigin = "http://localhost:7433"

// desk is a person in front of the page: real files, and an outside system that takes no time.
type desk struct {
	ledger *ledger.Ledger
	store  *store.Store
	engine *wetink.Engine
	page   *page.Server
	target *wetinktest.Target
	cookie string
	stop   func()
}

// anybody lets everybody in: signing in is not what is measured.
type anybody struct{}

func (anybody) Has(context.Context, wetink.Tenant, wetink.Person) (bool, error) { return true, nil }
func (anybody) Set(context.Context, wetink.Tenant, wetink.Person, secret.Bytes) (string, error) {
	return "", nil
}
func (anybody) Check(context.Context, wetink.Tenant, wetink.Person, secret.Bytes) (bool, error) {
	return false, nil
}
func (anybody) Approve(context.Context, wetink.Change, wetink.Person, string, time.Time, secret.Bytes) (wetink.Evidence, bool, error) {
	return wetink.Evidence{}, true, nil
}

func newDesk(ctx context.Context, dir string) (*desk, error) {
	l, err := ledger.Open(filepath.Join(dir, "ledger.db"), nil)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(filepath.Join(dir, "people.db"))
	if err != nil {
		return nil, err
	}
	if err := s.AddPerson(ctx, page.Person{ID: "ana", Approver: true, Created: time.Now()}); err != nil {
		return nil, err
	}
	d := &desk{ledger: l, store: s, target: wetinktest.NewTarget()}
	d.target.Put("a", `{"n":1}`)
	d.engine = wetink.New(l, map[string]wetink.Target{"test": d.target}, &wetink.Options{Policy: wetink.Floor{Level: wetink.Session, People: 1},
		Verifiers: map[string]wetink.Verifier{page.EvidenceSession: page.Verifier(s)}, Mode: wetink.ModeGuarded, TTL: time.Hour})
	d.page, err = page.New(ctx, pageOrigin, d.engine, l, s, &page.Options{Passphrases: anybody{}, Arm: time.Nanosecond, Budget: 1 << 30})
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.engine.Run(run)
	}()
	d.stop = func() {
		cancel()
		<-done
		_ = l.Close()
		_ = s.Close()
	}
	w := d.send("POST", "/signin", url.Values{"user": {"ana"}})
	if w.Code != http.StatusSeeOther {
		return nil, fmt.Errorf("sign in: %d", w.Code)
	}
	d.cookie, _, _ = strings.Cut(w.Header().Get("Set-Cookie"), ";")
	return d, nil
}

func (d *desk) send(method, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = "localhost:7433"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", pageOrigin)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Cookie", d.cookie)
	w := httptest.NewRecorder()
	d.page.ServeHTTP(w, r)
	return w
}

func (d *desk) preview(ctx context.Context, n int) (wetink.Change, error) {
	c, _, err := d.engine.Preview(ctx, "test", wetink.Request{Args: fmt.Appendf(nil, `{"ops":[{"action":"update","object":"a","set":{"n":%d}}]}`, n)})
	return c, err
}

var formField = regexp.MustCompile(`name="form" value="([^"]+)"`)

// press is the time from the press on the page until the change is applied and read back, and the size of that page.
func (d *desk) press(ctx context.Context, n int) (took time.Duration, size int, err error) {
	c, err := d.preview(ctx, n)
	if err != nil {
		return 0, 0, err
	}
	path := strings.TrimPrefix(d.page.Link(c), pageOrigin)
	shown := d.send("GET", path, nil).Body.String()
	form := formField.FindStringSubmatch(shown)
	if form == nil {
		return 0, 0, fmt.Errorf("no form on the page")
	}
	began := time.Now()
	if w := d.send("POST", path+"/approve", url.Values{"form": {form[1]}}); w.Code != http.StatusSeeOther {
		return 0, 0, fmt.Errorf("approve: %d", w.Code)
	}
	for {
		now, _, err := d.engine.Status(ctx, wetink.Principal{}, c.ID, time.Second)
		if err != nil {
			return 0, 0, err
		}
		if now.Status == wetink.Applied {
			return time.Since(began), len(shown), nil
		}
		if now.Status.Settled() {
			return 0, 0, fmt.Errorf("it is %s: %s", now.Status, now.Why)
		}
	}
}

// fill makes changes that wait.
func (d *desk) fill(ctx context.Context, n int) error {
	var all sync.WaitGroup
	failed := make(chan error, 64)
	for i := range 64 {
		all.Go(func() {
			for j := i; j < n; j += 64 {
				if _, err := d.preview(ctx, j+1_000_000); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// pageFigures measures the person's side.
func pageFigures(ctx context.Context, dir string, rounds int) ([]figure, error) {
	d, err := newDesk(ctx, filepath.Join(dir, "page"))
	if err != nil {
		return nil, err
	}
	defer d.stop()
	var presses, inbox, details []float64
	largest := 0
	for i := range 40 * rounds {
		took, size, err := d.press(ctx, i+2)
		if err != nil {
			return nil, err
		}
		presses, largest = append(presses, took.Seconds()*1e3), max(largest, size)
	}
	if err := d.fill(ctx, 10_000); err != nil {
		return nil, err
	}
	c, err := d.preview(ctx, 3)
	if err != nil {
		return nil, err
	}
	path := strings.TrimPrefix(d.page.Link(c), pageOrigin)
	for range 20 * rounds {
		began := time.Now()
		w := d.send("GET", "/", nil)
		inbox, largest = append(inbox, time.Since(began).Seconds()*1e3), max(largest, w.Body.Len())
		began = time.Now()
		d.send("GET", path, nil)
		details = append(details, time.Since(began).Seconds()*1e3)
	}
	limit := func(name string, v float64, unit string, goal float64) figure {
		return figure{name, v, unit, "", 0, fmt.Sprintf("≤ %g %s", goal, unit), v <= goal}
	}
	return []figure{
		limit("press on the page to applied, p50", median(presses), "ms", 5),
		limit("inbox whole, 10,000 changes waiting, p50", median(inbox), "ms", 10),
		limit("one change's page, 10,000 waiting, p50", median(details), "ms", 10),
		limit("largest page", float64(largest)/1024, "KB", 60),
	}, nil
}

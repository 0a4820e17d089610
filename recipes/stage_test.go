package recipes_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/recipes"
	"github.com/wetink/wetink/target/upstream"
	"github.com/wetink/wetink/wetinktest"
)

// stage is an engine before a server that a recipe guards.
type stage struct {
	*wetink.Engine
	t    *testing.T
	wire *wire
}

// wire is the connection to the server, and can lose an answer on the way back.
type wire struct {
	upstream.Server
	lose string // the tool whose next answer does not arrive
}

var errLost = errors.New("the connection was closed")

// Call implements upstream.Server.
func (w *wire) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, bool, error) {
	raw, sent, err := w.Server.Call(ctx, tool, args)
	if tool == w.lose {
		w.lose = ""
		return nil, true, errLost
	}
	return raw, sent, err
}

func guarded(t *testing.T, name string, s upstream.Server) *stage {
	t.Helper()
	r, ok := recipes.Named(name)
	if !ok {
		t.Fatalf("there is no recipe %q", name)
	}
	_, rules, err := r.Parse()
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Server: s}
	standing, _ := upstream.ParseAsk("card")
	target := upstream.New(name, w, rules, &upstream.Options{Default: standing})
	e := wetink.New(wetinktest.NewLedger(), map[string]wetink.Target{name: target}, &wetink.Options{
		Mode: wetink.ModeGuarded, Policy: asks{target},
		Verifiers: map[string]wetink.Verifier{wetinktest.EvidenceKind: voucher{}},
	})
	return &stage{e, t, w}
}

// asks is the Policy of what the rules demand.
type asks struct{ *upstream.Target }

// Decide implements wetink.Policy.
func (a asks) Decide(_ context.Context, t wetink.Terms, before []wetink.Snapshot) (wetink.Decision, error) {
	return a.Requires(t, before)
}

type voucher struct{}

// Verify implements wetink.Verifier.
func (voucher) Verify(context.Context, wetink.Change, wetink.Terms, wetink.Evidence) (wetink.Level, error) {
	return wetink.Passkey, nil
}

// Reach implements wetink.Verifier.
func (voucher) Reach(context.Context) wetink.Level { return wetink.Passkey }

func (s *stage) try(name, tool string, args map[string]any) (wetink.Change, error) {
	s.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := upstream.Call(wetinktest.By, tool, raw)
	if err != nil {
		s.t.Fatal(err)
	}
	c, _, err := s.Preview(s.t.Context(), name, req)
	return c, err
}

func (s *stage) preview(name, tool string, args map[string]any) wetink.Change {
	s.t.Helper()
	c, err := s.try(name, tool, args)
	if err != nil {
		s.t.Fatalf("preview of %s: %v", tool, err)
	}
	return c
}

// apply approves and applies, and returns where it ends.
func (s *stage) apply(c wetink.Change) wetink.Change {
	s.t.Helper()
	if _, err := s.Approve(s.t.Context(), wetinktest.By, c.ID, wetinktest.Vouch(c, wetink.Passkey, "ana")); err != nil {
		s.t.Fatalf("approve: %v", err)
	}
	c, _, err := s.Apply(s.t.Context(), wetinktest.By, c.ID, nil)
	if err != nil {
		s.t.Fatalf("apply: %v", err)
	}
	return c
}

func (s *stage) ends(c wetink.Change, want wetink.Status) wetink.Change {
	s.t.Helper()
	if c.Status != want {
		s.t.Fatalf("it is %s (%s %+v), want %s", c.Status, c.Why, c.Steps, want)
	}
	return c
}

// do is the whole life to Applied.
func (s *stage) do(name, tool string, args map[string]any) wetink.Change {
	s.t.Helper()
	return s.ends(s.apply(s.preview(name, tool, args)), wetink.Applied)
}

func (s *stage) undo(c wetink.Change) wetink.Change {
	s.t.Helper()
	u, _, err := s.Undo(s.t.Context(), wetinktest.By, c.ID, nil)
	if err != nil {
		s.t.Fatalf("undo: %v", err)
	}
	return s.ends(s.apply(u), wetink.Applied)
}

func (s *stage) noUndo(c wetink.Change, because error) {
	s.t.Helper()
	if _, _, err := s.Undo(s.t.Context(), wetinktest.By, c.ID, nil); !errors.Is(err, because) {
		s.t.Errorf("undo: got %v, want %v", err, because)
	}
}

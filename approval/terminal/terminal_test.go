package terminal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/wetinktest"
)

var shown = time.Date(2026, 7, 16, 14, 30, 0, 123456789, time.UTC)

// pending returns an engine at a level, and a Change that waits for approval there.
func pending(t *testing.T, level wetink.Level) (*wetinktest.Kit, wetink.Change) {
	t.Helper()
	k := wetinktest.New(t, &wetink.Options{Policy: wetink.Floor{Level: level, People: 1},
		Verifiers: map[string]wetink.Verifier{wetink.EvidenceTerminal: terminal.Verifier(), wetink.EvidenceReauth: upTo(level)}})
	return k, preview(t, k, "a")
}

// upTo is a channel that could give the level, and is not used.
func upTo(l wetink.Level) wetink.Verifier { return nobody(l) }

type nobody wetink.Level

func (nobody) Verify(context.Context, wetink.Change, wetink.Terms, wetink.Evidence) (wetink.Level, error) {
	return wetink.Auto, errors.New("nobody gave it")
}

func (n nobody) Reach(context.Context) wetink.Level { return wetink.Level(n) }

func preview(t *testing.T, k *wetinktest.Kit, object string) wetink.Change {
	t.Helper()
	c, _, err := k.Preview(t.Context(), "test", wetink.Request{By: wetinktest.By,
		Args: fmt.Appendf(nil, `{"ops":[{"action":"create","object":%q,"set":{"n":1}}]}`, object)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestATerminalWithoutAPassphraseGivesHost(t *testing.T) {
	k, c := pending(t, wetink.Host)
	e, err := terminal.Approve(c, "ana", shown)
	if err != nil {
		t.Fatal(err)
	}
	c, err = k.Approve(t.Context(), wetinktest.By, c.ID, e)
	if err != nil {
		t.Fatal(err)
	}
	if c.Status != wetink.Approved || c.Approvals[0].Level != wetink.Host || c.Approvals[0].Evidence.By != "ana" {
		t.Errorf("%s with %+v", c.Status, c.Approvals)
	}
	if got := c.Approvals[0].Sentence(); got != "Someone at a terminal of OS user ana approved this exact change." {
		t.Error(got)
	}
	if c, _, err = k.Apply(t.Context(), wetinktest.By, c.ID, nil); err != nil || c.Status != wetink.Applied {
		t.Errorf("%s, %v: the claim did not verify the stored bytes again", c.Status, err)
	}
}

func TestEvidenceOfAnythingElseIsRefused(t *testing.T) {
	k, c := pending(t, wetink.Host)
	sibling := preview(t, k, "b")
	sign := func(c wetink.Change) wetink.Evidence {
		e, err := terminal.Approve(c, "ana", shown)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	good := sign(c)
	for name, spoil := range map[string]func(e *wetink.Evidence, c *wetink.Change){
		"another digest shown": func(e *wetink.Evidence, _ *wetink.Change) { e.Digest[0] ^= 1 },
		"a replaced statement": func(e *wetink.Evidence, c *wetink.Change) { c.Statement = sibling.Statement },
		"a statement, digest too": func(e *wetink.Evidence, c *wetink.Change) {
			c.Statement = sibling.Statement
			e.Digest = c.Statement.Digest()
		},
		"another change":            func(e *wetink.Evidence, c *wetink.Change) { c.ID = sibling.ID },
		"another user":              func(e *wetink.Evidence, _ *wetink.Change) { e.By = "bo" },
		"no user":                   func(e *wetink.Evidence, _ *wetink.Change) { e.By = "" },
		"another time":              func(e *wetink.Evidence, _ *wetink.Change) { e.Shown = e.Shown.Add(time.Nanosecond) },
		"no time":                   func(e *wetink.Evidence, _ *wetink.Change) { e.Shown = time.Time{} },
		"no data":                   func(e *wetink.Evidence, _ *wetink.Change) { e.Data = nil },
		"a byte less":               func(e *wetink.Evidence, _ *wetink.Change) { e.Data = e.Data[:len(e.Data)-1] },
		"a bit of the last byte":    func(e *wetink.Evidence, _ *wetink.Change) { e.Data[len(e.Data)-1] ^= 1 },
		"a bit of the first byte":   func(e *wetink.Evidence, _ *wetink.Change) { e.Data[0] ^= 1 },
		"the evidence of a sibling": func(e *wetink.Evidence, _ *wetink.Change) { e.Data = sign(sibling).Data },
		"the other kind":            func(e *wetink.Evidence, _ *wetink.Change) { e.Kind = wetink.EvidenceReauth },
	} {
		e, row := good, c
		e.Data = slices.Clone(e.Data)
		spoil(&e, &row)
		if level, err := terminal.Verifier().Verify(t.Context(), row, wetink.Terms{}, e); err == nil || level != wetink.Auto {
			t.Errorf("%s: level %s, %v", name, level, err)
		}
	}
	if level, err := terminal.Verifier().Verify(t.Context(), c, wetink.Terms{}, good); err != nil || level != wetink.Host {
		t.Errorf("the control: %s, %v", level, err)
	}
}

func TestAHostApprovalIsNotEnoughForReauth(t *testing.T) {
	k, c := pending(t, wetink.Reauth)
	e, err := terminal.Approve(c, "ana", shown)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Approve(t.Context(), wetinktest.By, c.ID, e); !errors.Is(err, wetink.ErrLevel) {
		t.Error(err)
	}
}

package wetink_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/wetinktest"
)

func steps(o ...wetink.Outcome) (s []wetink.Step) {
	for i, v := range o {
		s = append(s, wetink.Step{Op: i, Outcome: v})
	}
	return s
}

func TestSettleSaysOnlyWhatIsKnown(t *testing.T) {
	const took, no, unknown, differs = wetink.TookEffect, wetink.NoEffect, wetink.Unknown, wetink.Differs
	for _, c := range []struct {
		name    string
		ops     int
		steps   []wetink.Step
		stopped bool
		want    wetink.Status
	}{
		{"all took effect", 2, steps(took, took), true, wetink.Applied},
		{"stale, nothing sent", 5, nil, true, wetink.Failed},
		{"crash after the claim", 1, nil, false, wetink.InDoubt},
		{"crash after op 2 of 5", 5, steps(took, took), false, wetink.InDoubt},
		{"bulk: 13 of 25 refused", 25, append(steps(slices.Repeat([]wetink.Outcome{took}, 12)...), wetink.Step{Op: 12, Outcome: no}), true, wetink.Partial},
		{"one op read back otherwise", 1, steps(differs), true, wetink.Partial},
		{"reply lost", 3, steps(took, unknown), true, wetink.InDoubt},
		{"looked up: op 3 never landed", 5, steps(took, took, no), true, wetink.Partial},
		{"switched off after op 2 of 5", 5, steps(took, took), true, wetink.Partial},
		{"looked up: the only op never landed", 1, steps(no), true, wetink.Failed},
	} {
		if got := wetink.Settle(c.ops, c.steps, c.stopped); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestShownKeepsTheArticlesWords(t *testing.T) {
	c := wetink.Change{Status: wetink.Applied}
	for s, want := range map[wetink.Status]string{wetink.Pending: "applied", wetink.Expired: "applied", wetink.Applying: "undoing",
		wetink.Applied: "undone", wetink.Failed: "undo_failed", wetink.Partial: "undo_partial", wetink.InDoubt: "undo_in_doubt"} {
		if got := wetink.Shown(c, &wetink.Change{Status: s}); got != want {
			t.Errorf("undo %s: %s, want %s", s, got, want)
		}
	}
	if got := wetink.Shown(wetink.Change{Status: wetink.Failed}, nil); got != "apply_failed" {
		t.Error(got)
	}
}

func TestNothingReturnsToPendingOrApproved(t *testing.T) {
	for _, from := range wetink.Statuses() {
		for _, to := range []wetink.Status{wetink.Pending, wetink.Approved} {
			if from != wetink.Pending && wetink.CanMove(from, to) {
				t.Errorf("%s → %s", from, to)
			}
		}
	}
}

func TestFourEyesCountsPeopleNotPresses(t *testing.T) {
	r := wetink.Require{Level: wetink.Session, People: 2, Other: true}
	terms := wetink.Terms{Requester: "ana"}
	by := func(p wetink.Person, l wetink.Level) wetink.Approval {
		return wetink.Approval{Evidence: wetink.Evidence{By: p}, Level: l}
	}
	for _, c := range []struct {
		got  []wetink.Approval
		want bool
	}{
		{[]wetink.Approval{by("bo", wetink.Session), by("bo", wetink.Passkey)}, false},
		{[]wetink.Approval{by("ana", wetink.Session), by("bo", wetink.Session)}, false},
		{[]wetink.Approval{by("bo", wetink.Session), by("cy", wetink.Host)}, false},
		{[]wetink.Approval{by("", wetink.Session), by("cy", wetink.Session)}, false},
		{[]wetink.Approval{by("bo", wetink.Session), by("cy", wetink.Session)}, true},
	} {
		if r.Met(terms, c.got) != c.want {
			t.Error(c)
		}
	}
}

func TestPayloadSurvivesTheStatement(t *testing.T) {
	p := json.RawMessage(`{"id":9007199254740993,"t":"<b> & \u2028","e":1e400,"z":-0}`)
	s, err := wetink.Encode(wetink.Terms{V: 1, Nonce: make([]byte, 32), Ops: []wetink.Op{{Payload: p, Before: wetink.Digest{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	back, err := s.Terms()
	if err != nil || string(back.Ops[0].Payload) != string(p) || back.Ops[0].Before != (wetink.Digest{1}) {
		t.Fatal(err, string(back.Ops[0].Payload))
	}
	if _, err := wetink.Encode(wetink.Terms{V: 1, Nonce: make([]byte, 32), Ops: []wetink.Op{{Payload: json.RawMessage(`{ "a": 1 }`)}}}); err == nil {
		t.Error("a payload that is not compact would be sent otherwise than stored")
	}
}

func TestStatementsThatWereTouchedAreRefused(t *testing.T) {
	s, err := wetink.Encode(wetink.Terms{V: 1, Nonce: make([]byte, 32), Change: "chg_1", Ops: []wetink.Op{{Action: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{
		{`"v":1`, `"v":2`},
		{`"change":"chg_1"`, `"change":"chg_1","change":"chg_2"`},
		{`"change":"chg_1"`, `"change":"chg_1","extra":1`},
		{`"change":"chg_1"`, `"Change":"chg_1"`},
	} {
		edited := wetink.Statement(strings.Replace(string(s), edit[0], edit[1], 1))
		if string(edited) == string(s) {
			t.Fatalf("%s is not in %s", edit[0], s)
		}
		if _, err := edited.Terms(); err == nil {
			t.Errorf("%s → %s was read", edit[0], edit[1])
		}
	}
	if s.Digest() == wetink.Statement(string(s)+" ").Digest() {
		t.Error("two statements, one digest")
	}
}

// Any part of a stored row that an approval binds, edited after the approval.
func TestARowEditedAfterApprovalIsRefused(t *testing.T) {
	for name, edit := range map[string]func(*wetink.Change){
		"statement": func(c *wetink.Change) {
			c.Statement = []byte(strings.Replace(string(c.Statement), `"n":2`, `"n":9`, 1))
		},
		"snapshot":           func(c *wetink.Change) { c.Before[0].Body = []byte(`{"n":9}`) },
		"snapshot object":    func(c *wetink.Change) { c.Before[0].Object = "b" },
		"snapshot gone":      func(c *wetink.Change) { c.Before = nil },
		"account":            func(c *wetink.Change) { c.Account = "acct-2" },
		"target":             func(c *wetink.Change) { c.Target = "other" },
		"undoes":             func(c *wetink.Change) { c.Undoes = []wetink.Undone{{Change: "chg_x", Effects: 1}} },
		"status alone":       func(c *wetink.Change) { c.Approvals = nil },
		"level of approval":  func(c *wetink.Change) { c.Approvals[0].Evidence.Data = []byte("host") },
		"digest of approval": func(c *wetink.Change) { c.Approvals[0].Evidence.Digest[0] ^= 1 },
		"kind of approval":   func(c *wetink.Change) { c.Approvals[0].Evidence.Kind = wetink.EvidenceOrdered },
	} {
		t.Run(name, func(t *testing.T) {
			l := &editedLedger{Ledger: wetinktest.NewLedger()}
			k := wetinktest.On(l, wetinktest.NewTarget(), nil)
			k.Target.Put("a", `{"n":1}`)
			c, _ := preview(t, k, setN2)
			approve(t, k, c)
			l.edit = edit
			_, _, err := k.Apply(ctx, by, c.ID, nil)
			if !errors.Is(err, wetink.ErrTampered) && !errors.Is(err, wetink.ErrEvidence) && !errors.Is(err, wetink.ErrLevel) && !errors.Is(err, wetink.ErrNotFound) {
				t.Errorf("apply: %v", err)
			}
			wantEffects(t, k, 0)
		})
	}
}

type editedLedger struct {
	wetink.Ledger
	edit func(*wetink.Change)
}

func (l *editedLedger) Get(ctx context.Context, tenant wetink.Tenant, id wetink.ChangeID) (wetink.Change, error) {
	c, err := l.Ledger.Get(ctx, tenant, id)
	if l.edit != nil && err == nil {
		c.Before, c.Approvals = slices.Clone(c.Before), slices.Clone(c.Approvals)
		l.edit(&c)
	}
	return c, err
}

// The bytes are the leaf of the audit log: this test never changes.
func TestEventBytesAreFrozen(t *testing.T) {
	e := wetink.Event{
		Seq: 7, At: time.Date(2026, 12, 1, 3, 4, 5, 6_000_000, time.UTC), Tenant: "t", Change: "chg_1", Rev: 3, Kind: wetink.KindSettled,
		From: wetink.Applying, To: wetink.Applied, Digest: wetink.Digest{0xab}, By: "ana <b>", Client: "c", Level: wetink.Reauth,
		Facts: map[string]string{"z": "1", "a": "2"},
	}
	const want = `{"v":1,"seq":7,"at":"2026-12-01T03:04:05.006Z","tenant":"t","change":"chg_1","rev":3,"kind":"settled","from":"applying","to":"applied","digest":"ab00000000000000000000000000000000000000000000000000000000000000","by":"ana <b>","client":"c","level":"reauth","facts":{"a":"2","z":"1"}}`
	if got := string(e.Bytes()); got != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
	const empty = `{"v":1,"seq":0,"at":"0001-01-01T00:00:00.000Z","tenant":"","change":"","rev":0,"kind":"","from":"","to":"","digest":"0000000000000000000000000000000000000000000000000000000000000000","by":"","client":"","level":"auto","facts":{}}`
	if got := string(wetink.Event{}.Bytes()); got != empty {
		t.Errorf("\ngot  %s\nwant %s", got, empty)
	}
}

func TestSentencesSayNoMoreThanTheLevelProves(t *testing.T) {
	for level := wetink.Auto; level <= wetink.Passkey; level++ {
		for _, kind := range []string{wetink.EvidenceTicket, wetink.EvidenceTerminal, wetink.EvidenceReauth, wetink.EvidenceRelogin, wetink.EvidenceOrdered, wetink.EvidencePolicy, "other"} {
			for _, via := range []string{"", wetink.DeliveredResult, wetink.DeliveredCard, wetink.DeliveredTerminal} {
				s := strings.ToLower(wetink.Approval{Level: level, Evidence: wetink.Evidence{Kind: kind, Via: via, By: "ana", Data: []byte(`{"issuer":"https://id.example"}`)}}.Sentence())
				for word, from := range map[string]wetink.Level{"human": wetink.Passkey + 1, "verified": wetink.Passkey + 1, "signed this": wetink.Passkey, "re-authenticated": wetink.Reauth} {
					if level < from && strings.Contains(s, word) {
						t.Errorf("%s %s says %q", level, kind, s)
					}
				}
			}
		}
	}
}

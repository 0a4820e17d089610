package ledgertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wetink/wetink"
)

// What other people, models and systems put into a ledger.
var nasty = []string{
	"", " ", "'; DROP TABLE changes; --", `" OR ""="`, `\'`, "%_?$1:a@p", "$1", "NULL", "0x00", "<script>&amp;",
	"é e\u0301 \u202e right to left \u2028 \U0001f58b\ufe0f \ufeff \ufffd", "a\r\nb\tc\x1b[31m\x7f",
	"nul\x00nul", "\x00", "\xff\xfe", "cut \xe2\x82", "\xed\xa0\x80 surrogate", strings.Repeat("long ", 20000),
}

// Text of every kind is stored exactly where it stands alone: Why above all, which holds answers of outside
// systems. A store may refuse names in bytes that are no UTF-8, as its columns may be text; then it writes
// nothing. Steps are never refused, as what happened has happened: there, bytes that are no UTF-8 may be
// replaced by U+FFFD in names and reasons, but never in the bytes of an answer.
func hostile(t *testing.T, open opener) {
	open.that(t, "a reason is stored exactly", func(f *fixture) {
		for i, s := range nasty {
			c := f.bring(row(fmt.Sprintf("chg_%d", i)), wetink.Pending)
			m := move(c, wetink.Rejected)
			m.Why = s
			f.advance(m)
			if got := f.get(c).Why; got != s {
				f.t.Errorf("%.99q came back as %.99q", s, got)
			}
		}
	})
	open.that(t, "names are stored exactly, or refused if they are no UTF-8", func(f *fixture) {
		for i, s := range nasty {
			c := row(fmt.Sprintf("chg_%d", i))
			c.Request.By.Person, c.Request.By.Client, c.Request.Tool, c.Target, c.Account = wetink.Person(s), s, s, s, wetink.Account(s)
			if s != "" {
				c.Request.By.Scopes = []string{s, s}
			}
			c.Replaces, c.Undoes = wetink.ChangeID(s), []wetink.Undone{{Change: wetink.ChangeID(s)}}
			c.Before = []wetink.Snapshot{{Object: s, Version: s}}
			m := born(c, wetink.Pending)
			m.Approval = &wetink.Approval{At: start, Evidence: wetink.Evidence{Kind: s, By: wetink.Person(s), Client: s, Via: s, Data: []byte(s)}}
			m.Ticket = &wetink.Sealed{Verb: s, Delivered: s, Expires: start}
			at := f.wall.forward()
			if !f.stored(s, m) {
				continue
			}
			want := c
			want.Rev, want.Status, want.Created, want.Updated = 1, wetink.Pending, at, at
			want.Approvals, want.Tickets = []wetink.Approval{*m.Approval}, []wetink.Sealed{*m.Ticket}
			f.same(f.get(c), want)
			if s != "" {
				for _, filter := range []wetink.Filter{{Target: s}, {Account: wetink.Account(s)}, {Undoes: wetink.ChangeID(s)}} {
					if got := ids(f.list(filter)); !slices.Equal(got, []string{string(c.ID)}) {
						f.t.Errorf("filtered by %.99q: %v", s, got)
					}
				}
			}
		}
	})
	open.that(t, "ids and tenants may have any characters", func(f *fixture) {
		for _, s := range nasty {
			if s == "" || !utf8.ValidString(s) || len(s) > 1000 {
				continue
			}
			c := row(s)
			c.Statement, c.Tenant = []byte("s"), wetink.Tenant(s)
			if f.stored(s, born(c, wetink.Pending)) {
				f.step(f.get(c), wetink.Rejected)
				if got := f.list(wetink.Filter{Tenant: wetink.Tenant(s)}); len(got) != 1 || string(got[0].ID) != s {
					f.t.Errorf("tenant %q has %v", s, ids(got))
				}
				if ev := f.events(0); string(ev[len(ev)-1].Change) != s || string(ev[len(ev)-1].Tenant) != s {
					f.t.Errorf("id %q: %s", s, ev[len(ev)-1].Bytes())
				}
			}
		}
	})
	open.that(t, "a step is never refused", func(f *fixture) {
		c := f.bring(row("chg_1"), wetink.Applying)
		for i, s := range nasty {
			step := wetink.Step{Op: i, Outcome: wetink.TookEffect, How: s, Why: s, Receipt: wetink.Receipt{
				Object: s, Raw: json.RawMessage(s), After: wetink.Snapshot{Object: s, Version: s, Body: json.RawMessage(s)}}}
			m := move(f.get(c), wetink.Applying)
			m.Step = &step
			f.advance(m)
			got, _ := f.get(c).StepOf(i)
			if !bytes.Equal(got.Receipt.Raw, step.Receipt.Raw) || !bytes.Equal(got.Receipt.After.Body, step.Receipt.After.Body) {
				f.t.Errorf("the answer %.99q came back as %.99q and %.99q", s, got.Receipt.Raw, got.Receipt.After.Body)
			}
			for _, name := range []string{got.How, got.Why, got.Receipt.Object, got.Receipt.After.Object, got.Receipt.After.Version} {
				if name != s && (utf8.ValidString(s) || strings.ToValidUTF8(name, "") != name || plain(name) != plain(s)) {
					f.t.Errorf("%.99q came back as %.99q", s, name)
				}
			}
		}
	})
	open.that(t, "an event keeps odd text, and its bytes stay the same for ever", func(f *fixture) {
		for i, s := range nasty {
			m := born(row(fmt.Sprintf("chg_%d", i)), wetink.Pending)
			m.Event.By, m.Event.Client, m.Event.Facts = wetink.Person(s), s, map[string]string{"reason": s}
			last := int64(len(f.events(0)))
			if !f.stored(s, m) {
				continue
			}
			e := f.events(last)[0]
			if utf8.ValidString(s) && (string(e.By) != s || e.Client != s || e.Facts["reason"] != s) {
				f.t.Errorf("%.99q came back as %.400s", s, e.Bytes())
			}
			back, err := wetink.ParseEvent(e.Bytes())
			if err != nil || !bytes.Equal(back.Bytes(), e.Bytes()) {
				f.t.Errorf("%.400s\nis parsed as %.400s: %v", e.Bytes(), back.Bytes(), err)
			}
		}
	})
	open.that(t, "a statement of 900 kB and as large a request are stored exactly", func(f *fixture) {
		c := row("chg_1")
		c.Statement = bytes.Repeat([]byte("{\"n\": \x00\xff\xe2'\"}"), 900_000/12)
		c.Request.Args = bytes.Repeat([]byte(" [1.0, \"\\u0041\"]"), 900_000/16)
		c.Before = []wetink.Snapshot{{Object: "o", Body: bytes.Repeat([]byte("{ }"), 300_000)}}
		got := f.bring(c, wetink.Applied)
		if !bytes.Equal(got.Statement, c.Statement) || !bytes.Equal(got.Request.Args, c.Request.Args) || got.Before[0].Digest() != c.Before[0].Digest() {
			f.t.Error("the bytes differ")
		}
	})
}

// plain is s without what stands for bad bytes, however many of those one sign replaces.
func plain(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\ufffd", "") }

// stored reports whether m was accepted. Only what is no UTF-8 may be refused, and then nothing is written.
// What Advance returned must be what is read.
func (f *fixture) stored(s string, m wetink.Move) bool {
	f.t.Helper()
	before := f.everything()
	ev, err := f.l.Advance(f.ctx, m)
	if err == nil {
		read := f.events(ev[0].Seq - 1)
		if len(read) != 1 || !bytes.Equal(read[0].Bytes(), ev[0].Bytes()) {
			f.t.Errorf("returned %.400s\nread %.400v", ev[0].Bytes(), read)
		}
		return true
	}
	if utf8.ValidString(s) {
		f.t.Errorf("%.99q is refused: %v", s, err)
	}
	f.unchanged(before)
	return false
}

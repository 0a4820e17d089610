package sqlite_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/sqlite"
	ledger "github.com/wetink/wetink/ledger/sqlite"
	"github.com/wetink/wetink/wetinktest"
)

// seal is a Verifier that binds what a signature binds: the digest and who signed.
type seal struct{ key []byte }

const sealKind = "seal"

func (s seal) sign(d wetink.Digest, by wetink.Person) []byte {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "%s %s", d, by)
	return h.Sum(nil)
}

func (s seal) Verify(_ context.Context, _ wetink.Change, _ wetink.Terms, e wetink.Evidence) (wetink.Level, error) {
	if !hmac.Equal(e.Data, s.sign(e.Digest, e.By)) {
		return 0, errors.New("it was not signed")
	}
	return wetink.Session, nil
}

func (seal) Reach(context.Context) wetink.Level { return wetink.Session }

// capped asks for a session and lets two of a day through.
type capped struct{}

func (capped) Decide(context.Context, wetink.Terms, []wetink.Snapshot) (wetink.Decision, error) {
	return wetink.Decision{Require: wetink.Require{Level: wetink.Session, People: 1}, Cap: &wetink.Cap{Name: "publish", Max: 2}, Day: "2026-01-02"}, nil
}

var signer = seal{[]byte("of this test")}

func kitOn(l wetink.Ledger, target *wetinktest.Target) *wetinktest.Kit {
	return wetinktest.On(l, target, &wetink.Options{Policy: capped{}, Verifiers: map[string]wetink.Verifier{sealKind: signer}})
}

func previewed(t testing.TB, k *wetinktest.Kit, object string) wetink.Change {
	t.Helper()
	k.Target.Put(object, `{"n":1}`)
	c, _, err := k.Preview(context.Background(), "test", wetink.Request{By: wetinktest.By,
		Args: []byte(`{"ops":[{"action":"update","object":"` + object + `","set":{"n":2}}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func signed(c wetink.Change) wetink.Evidence {
	d := c.Statement.Digest()
	return wetink.Evidence{Kind: sealKind, Digest: d, By: "bo", Data: signer.sign(d, "bo")}
}

func approved(t testing.TB, k *wetinktest.Kit, object string) wetink.Change {
	t.Helper()
	c := previewed(t, k, object)
	c, err := k.Approve(context.Background(), wetinktest.By, c.ID, signed(c))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An edit of the file between approval and apply. $V is the change that is then applied, $O another approved one, both
// as SQL strings.
type tampering struct {
	sql    string
	result string // "" refused, nothing sent; otherwise why it may be executed as it was approved, and only so
	waits  bool   // Apply takes it for another caller's and waits for its end
}

const (
	victim     = ` WHERE id = $V`
	itsContent = ` WHERE no = (SELECT content FROM changes WHERE id = $V)`
	itsFact    = ` WHERE kind = 1 AND change = (SELECT content FROM changes WHERE id = $V)`
	believed   = "whoever writes the file sets the limits of the day, the mode and the clock, too; what is sent is still only what was approved"
	people     = "for people"
	undone     = "it finds undos; each has a Statement of its own that names what it undoes, and needs an approval"
	overwrite  = "the claim writes it anew"
)

func swapText(table, column, where, old, new string) string {
	return fmt.Sprintf(`UPDATE %s SET %s = CAST(replace(CAST(%[2]s AS TEXT), '%s', '%s') AS BLOB)%s`, table, column, old, new, where)
}

// tamperings of every column. A new column fails the test until somebody has thought about it.
var tamperings = map[string][]tampering{
	"changes.tenant":   {{sql: `UPDATE changes SET tenant = 'acme'` + victim}},
	"changes.id":       {{sql: `UPDATE changes SET id = 'chg_00000000000000000000000001'` + victim}},
	"changes.rev":      {{sql: `UPDATE changes SET rev = rev + 7` + victim, result: "it orders Moves; the engine reads it just before"}},
	"changes.status":   {{sql: `UPDATE changes SET status = 1` + victim}, {sql: `UPDATE changes SET status = 5` + victim}, {sql: `UPDATE changes SET status = 3` + victim, waits: true}, {sql: `UPDATE changes SET status = 99` + victim}},
	"changes.content":  {{sql: `UPDATE changes SET content = (SELECT content FROM changes WHERE id = $O)` + victim}, {sql: `UPDATE changes SET content = 99` + victim}},
	"changes.target":   {{sql: `UPDATE changes SET target = 'other'` + victim}},
	"changes.account":  {{sql: `UPDATE changes SET account = 'acct-2'` + victim}},
	"changes.undoes":   {{sql: `UPDATE changes SET undoes = json_array(json_object('change', $O, 'effects', 1))` + victim}, {sql: `UPDATE changes SET undoes = $O` + victim}},
	"changes.replaces": {{sql: `UPDATE changes SET replaces = $O` + victim}},
	"changes.claim":    {{sql: `UPDATE changes SET claim = 'mine'` + victim}},
	"changes.owner":    {{sql: `UPDATE changes SET owner = 'another'` + victim, result: people}},
	"changes.lease":    {{sql: `UPDATE changes SET lease = 1` + victim, result: overwrite}, {sql: `UPDATE changes SET lease = 1e13` + victim, result: overwrite}},
	"changes.due":      {{sql: `UPDATE changes SET due = 1` + victim, result: "the Statement's own times decide"}, {sql: `UPDATE changes SET due = NULL` + victim, result: "the Statement's own times decide"}},
	"changes.cap":      {{sql: `UPDATE changes SET cap = 'another'` + victim, result: overwrite}},
	"changes.day":      {{sql: `UPDATE changes SET day = '2020-01-01'` + victim, result: overwrite}},
	"changes.created":  {{sql: `UPDATE changes SET created = 1` + victim, result: people}},
	"changes.updated":  {{sql: `UPDATE changes SET updated = 1` + victim, result: people}},

	"undos.parent": {{sql: `INSERT INTO undos (parent, tenant, undo) VALUES ($V, '', $O)`, result: undone}},
	"undos.tenant": {{sql: `INSERT INTO undos (parent, tenant, undo) VALUES ($V, 'acme', $O)`, result: undone}},
	"undos.undo":   {{sql: `INSERT INTO undos (parent, tenant, undo) VALUES ($V, '', 'chg_none')`, result: undone}},

	"content.no":        {{sql: `UPDATE content SET no = 99` + itsContent}},
	"content.statement": {{sql: swapText("content", "statement", itsContent, `"n":2`, `"n":3`)}, {sql: swapText("content", "statement", itsContent, `"level":"session"`, `"level":"agent"`)}, {sql: `UPDATE content SET statement = (SELECT statement FROM content WHERE no = (SELECT content FROM changes WHERE id = $O))` + itsContent}},
	"content.request":   {{sql: swapText("content", "request", itsContent, `"n":2`, `"n":3`), result: "it is only prepared again, for a new approval"}},
	"content.before":    {{sql: swapText("content", "before", itsContent, `"n":1`, `"n":7`)}, {sql: swapText("content", "before", itsContent, `"object":"a"`, `"object":"b"`)}},

	"facts.no": {{sql: `UPDATE facts SET no = no + 100` + itsFact, result: "one approval has no order"}},
	"facts.change": {{sql: `UPDATE facts SET change = 99` + itsFact},
		{sql: `UPDATE facts SET change = iif(change = (SELECT content FROM changes WHERE id = $V), (SELECT content FROM changes WHERE id = $O), (SELECT content FROM changes WHERE id = $V)) WHERE kind = 1`}},
	"facts.rev":  {{sql: `UPDATE facts SET rev = 1` + itsFact, result: "it only tells which Why is the present one"}},
	"facts.kind": {{sql: `UPDATE facts SET kind = 2` + itsFact}, {sql: `UPDATE facts SET kind = 3` + itsFact}, {sql: `UPDATE facts SET kind = 4` + itsFact}},
	"facts.bytes": {{sql: swapText("facts", "bytes", itsFact, `"by":"bo"`, `"by":"ana"`)}, {sql: swapText("facts", "bytes", itsFact, `"kind":"seal"`, `"kind":"policy"`)},
		{sql: swapText("facts", "bytes", itsFact, `"kind":"seal"`, `"kind":"ticket"`)}, {sql: swapText("facts", "bytes", itsFact, `"kind":"seal"`, `"kind":"ordered"`)},
		{sql: `UPDATE facts SET bytes = (SELECT bytes FROM facts WHERE kind = 1 AND change = (SELECT content FROM changes WHERE id = $O))` + itsFact},
		{sql: swapText("facts", "bytes", itsFact, `"level":"session"`, `"level":"passkey"`), result: "the level is computed again from the evidence"}},

	"events.seq":   {{sql: `UPDATE events SET seq = seq + 5 WHERE seq = (SELECT max(seq) FROM events)`, result: "history steers nothing; its readers find the gap"}},
	"events.at":    {{sql: `UPDATE events SET at = at + 100000000`}, {sql: `UPDATE events SET at = 1`, result: "the clock is not behind the wall clock"}},
	"events.bytes": {{sql: `UPDATE events SET bytes = X'7B7D'`, result: "history steers nothing; its readers find it broken"}},

	"daycount.tenant":  {{sql: `UPDATE daycount SET tenant = 'acme'`, result: believed}},
	"daycount.account": {{sql: `UPDATE daycount SET account = 'acct-2'`, result: believed}},
	"daycount.name":    {{sql: `UPDATE daycount SET name = 'another'`, result: believed}},
	"daycount.day":     {{sql: `UPDATE daycount SET day = '2020-01-01'`, result: believed}},
	"daycount.n":       {{sql: `UPDATE daycount SET n = 0`, result: believed}, {sql: `UPDATE daycount SET n = 2`}},

	"meta.one":    nil, // its CHECK allows one value; TestTheLedgersOwnRowIsOne
	"meta.ledger": {{sql: `UPDATE meta SET ledger = 'sqlite-another'`}},
	"meta.epoch":  {{sql: `UPDATE meta SET epoch = 2`}},
	"meta.mode":   {{sql: `UPDATE meta SET mode = 'off'`}, {sql: `UPDATE meta SET mode = 'Guarded'`}, {sql: `UPDATE meta SET mode = ''`, result: believed}},
}

func TestAnEditOfAnyColumnAfterApprovalIsRefusedOrHarmless(t *testing.T) {
	columns := columnsOf(t)
	for name := range tamperings {
		if !slices.Contains(columns, name) {
			t.Errorf("%s is not in the schema any more", name)
		}
	}
	for _, column := range columns {
		list, known := tamperings[column]
		if !known {
			t.Errorf("nobody has said what happens when %s is edited", column)
		}
		for _, edit := range list {
			t.Run(column, func(t *testing.T) { edit.try(t) })
		}
	}
	t.Run("rows that are gone", func(t *testing.T) {
		for _, sql := range []string{`DELETE FROM facts` + itsFact, `DELETE FROM content` + itsContent, `DELETE FROM changes` + victim} {
			tampering{sql: sql}.try(t)
		}
	})
}

func columnsOf(t *testing.T) []string {
	t.Helper()
	path := newPath(t)
	open(t, path, nil)
	list := rows(t, path, `SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1`)
	if len(list) < 30 {
		t.Fatalf("found only %v", list)
	}
	return list
}

func (e tampering) try(t *testing.T) {
	t.Helper()
	path, target := newPath(t), wetinktest.NewTarget()
	l, err := ledger.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := kitOn(l, target)
	if err := l.SetMode(context.Background(), wetink.ModeGuarded, "ana"); err != nil {
		t.Fatal(err)
	}
	if c, _, err := k.Apply(context.Background(), wetinktest.By, approved(t, k, "counted").ID, nil); err != nil || c.Status != wetink.Applied {
		t.Fatalf("%s, %v", c.Status, err)
	}
	v, o := approved(t, k, "a"), approved(t, k, "b")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sql := strings.NewReplacer("$V", "'"+string(v.ID)+"'", "$O", "'"+string(o.ID)+"'").Replace(e.sql)
	mustEdit(t, path, sql)

	l = open(t, path, nil)
	k = kitOn(l, target)
	wait := time.Minute
	if e.waits {
		wait = 100 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	var told []error
	for _, key := range keys(t, path) { // whatever the row is called now
		if key[1] == string(o.ID) {
			continue
		}
		by := wetinktest.By
		by.Tenant = wetink.Tenant(key[0])
		for range 2 {
			_, _, err := k.Apply(ctx, by, wetink.ChangeID(key[1]), nil)
			told = append(told, err)
		}
	}
	journal := target.Journal()[1:] // behind the one that was applied before
	asApproved := []wetinktest.Effect{{Account: "acct-1", Action: "update", Object: "a", Payload: `{"n":2}`}}
	switch {
	case e.result == "" && len(journal) > 0:
		t.Errorf("%s\nand it was sent: %v", sql, journal)
	case e.result != "" && !slices.Equal(journal, asApproved):
		t.Errorf("%s\nwhich should not matter, as %s: %v, %v", sql, e.result, journal, told)
	}
}

func keys(t *testing.T, path string) (list [][2]string) {
	t.Helper()
	for _, k := range rows(t, path, `SELECT tenant || '|' || id FROM changes`) {
		tenant, id, _ := strings.Cut(k, "|")
		list = append(list, [2]string{tenant, id})
	}
	return list
}

func TestTheControlOfTheEditsIsExecuted(t *testing.T) {
	tampering{sql: `UPDATE changes SET owner = owner`, result: "nothing was edited"}.try(t)
}

func TestTheLedgersOwnRowIsOne(t *testing.T) {
	path := newPath(t)
	l, err := ledger.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, sql := range []string{`UPDATE meta SET one = 2`, `INSERT INTO meta VALUES (2, 'another', 1, 'guarded')`} {
		if _, err := edit(path, sql); !errors.Is(err, sqlite.ErrConstraint) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	mustEdit(t, path, `DELETE FROM meta`)
	if l, err := ledger.Open(path, nil); !errors.Is(err, wetink.ErrTampered) {
		t.Errorf("without its row: %v, %v", l, err)
	}
}

func TestARowWithoutEvidenceIsNotExecutedWhateverItsStatusSays(t *testing.T) {
	path, target := newPath(t), wetinktest.NewTarget()
	k := kitOn(open(t, path, nil), target)
	c := previewed(t, k, "a")
	mustEdit(t, path, `UPDATE changes SET status = 2`)
	if _, _, err := k.Apply(context.Background(), wetinktest.By, c.ID, nil); !errors.Is(err, wetink.ErrLevel) || len(target.Journal()) > 0 {
		t.Errorf("%v, %v", err, target.Journal())
	}
}

// The state is as it was seen and the evidence is right. Only the claim that the row carries tells.
func TestWhatWasAppliedAndSetBackIsNotExecutedAgain(t *testing.T) {
	path, target := newPath(t), wetinktest.NewTarget()
	k := kitOn(open(t, path, nil), target)
	c := approved(t, k, "a")
	if c, _, err := k.Apply(context.Background(), wetinktest.By, c.ID, nil); err != nil || c.Status != wetink.Applied {
		t.Fatalf("%s, %v", c.Status, err)
	}
	target.Put("a", `{"n":1}`)
	mustEdit(t, path, `UPDATE changes SET status = 2, due = ? WHERE id = ?`, time.Now().Add(time.Hour).UnixMilli(), string(c.ID))
	if _, _, err := k.Apply(context.Background(), wetinktest.By, c.ID, nil); !errors.Is(err, wetink.ErrTampered) || len(target.Journal()) != 1 {
		t.Errorf("%v, %v", err, target.Journal())
	}
}

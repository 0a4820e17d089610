package passphrase_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/passphrase"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/wetinktest"
)

// shelf keeps records in memory.
type shelf struct {
	mu   sync.Mutex
	rows map[[2]string][]byte
}

func (s *shelf) PassphraseRecord(_ context.Context, tenant wetink.Tenant, person wetink.Person) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[[2]string{string(tenant), string(person)}], nil
}

func (s *shelf) PutPassphraseRecord(_ context.Context, tenant wetink.Tenant, person wetink.Person, record []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[[2]string{string(tenant), string(person)}] = record
	return nil
}

func (s *shelf) AnyPassphrase(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows) > 0, nil
}

var (
	phrase = secret.New([]byte("five words make a phrase"))
	shown  = time.Date(2026, 7, 16, 14, 30, 0, 123456789, time.UTC)
)

// anas is the record of ana's passphrase: argon2id is dear on purpose, so it is made once.
var anas = sync.OnceValue(func() []byte {
	s := &shelf{rows: map[[2]string][]byte{}}
	if why, err := passphrase.New(s, nil).Set(context.Background(), "", "ana", phrase); why != "" || err != nil {
		panic(fmt.Sprint(why, err))
	}
	return s.rows[[2]string{"", "ana"}]
})

func enrolled() (*shelf, *passphrase.Service) {
	s := &shelf{rows: map[[2]string][]byte{{"", "ana"}: anas()}}
	return s, passphrase.New(s, nil)
}

// pending returns an engine at a level, and a Change that waits for approval there.
func pending(t *testing.T, s *passphrase.Service) (*wetinktest.Kit, wetink.Change) {
	t.Helper()
	k := wetinktest.New(t, &wetink.Options{Policy: wetink.Floor{Level: wetink.Reauth, People: 1},
		Verifiers: map[string]wetink.Verifier{wetink.EvidenceReauth: s.Verifier()}})
	return k, preview(t, k, "a")
}

func preview(t *testing.T, k *wetinktest.Kit, object string) wetink.Change {
	t.Helper()
	c, _, err := k.Preview(t.Context(), "test", wetink.Request{By: wetinktest.By,
		Args: fmt.Appendf(nil, `{"ops":[{"action":"create","object":%q,"set":{"n":1}}]}`, object)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sign(t *testing.T, s *passphrase.Service, c wetink.Change) wetink.Evidence {
	t.Helper()
	e, wrong, err := s.Approve(t.Context(), c, "ana", "terminal", shown, phrase)
	if wrong || err != nil {
		t.Fatal(wrong, err)
	}
	return e
}

func TestAPassphraseGivesReauthAndIsVerifiedAgainByAnotherProcess(t *testing.T) {
	records, s := enrolled()
	k, c := pending(t, s)
	c, err := k.Approve(t.Context(), wetinktest.By, c.ID, sign(t, s, c))
	if err != nil || c.Approvals[0].Level != wetink.Reauth {
		t.Fatalf("%+v, %v", c.Approvals, err)
	}
	if got := c.Approvals[0].Sentence(); !strings.HasPrefix(got, "ana re-authenticated at ") {
		t.Error(got)
	}
	other := wetinktest.On(k.Ledger, k.Target, &wetink.Options{Policy: wetink.Floor{Level: wetink.Reauth, People: 1},
		Verifiers: map[string]wetink.Verifier{wetink.EvidenceReauth: passphrase.New(records, nil).Verifier()}})
	if c, _, err = other.Apply(t.Context(), wetinktest.By, c.ID, nil); err != nil || c.Status != wetink.Applied {
		t.Fatalf("%s, %v", c.Status, err)
	}
}

func TestAnApprovalIsVoidOnceItsKeyIsNoLongerSetUp(t *testing.T) {
	records, s := enrolled()
	k, c := pending(t, s)
	c, err := k.Approve(t.Context(), wetinktest.By, c.ID, sign(t, s, c))
	if err != nil {
		t.Fatal(err)
	}
	clear(records.rows)
	if _, _, err := k.Apply(t.Context(), wetinktest.By, c.ID, nil); !errors.Is(err, wetink.ErrEvidence) || !errors.Is(err, passphrase.ErrNoSetup) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := s.Set(t.Context(), "", "ana", phrase); err != nil { // the same words, another salt
		t.Fatal(err)
	}
	if _, _, err := k.Apply(t.Context(), wetinktest.By, c.ID, nil); !errors.Is(err, wetink.ErrEvidence) {
		t.Errorf("with another key: %v", err)
	}
	if len(k.Target.Journal()) != 0 {
		t.Error("something was sent")
	}
}

func TestEvidenceOfAnythingElseIsRefused(t *testing.T) {
	_, s := enrolled()
	k, c := pending(t, s)
	sibling := preview(t, k, "b")
	good := sign(t, s, c)
	for name, spoil := range map[string]func(e *wetink.Evidence, c *wetink.Change){
		"another digest shown": func(e *wetink.Evidence, _ *wetink.Change) { e.Digest[0] ^= 1 },
		"a replaced statement": func(e *wetink.Evidence, c *wetink.Change) { c.Statement = sibling.Statement },
		"a statement, digest too": func(e *wetink.Evidence, c *wetink.Change) {
			c.Statement = sibling.Statement
			e.Digest = c.Statement.Digest()
		},
		"another change":            func(_ *wetink.Evidence, c *wetink.Change) { c.ID = sibling.ID },
		"another tenant":            func(_ *wetink.Evidence, c *wetink.Change) { c.Tenant = "other" },
		"another client":            func(e *wetink.Evidence, _ *wetink.Change) { e.Client = "page" },
		"another user":              func(e *wetink.Evidence, _ *wetink.Change) { e.By = "bo" },
		"no user":                   func(e *wetink.Evidence, _ *wetink.Change) { e.By = "" },
		"another time":              func(e *wetink.Evidence, _ *wetink.Change) { e.Shown = e.Shown.Add(time.Nanosecond) },
		"no time":                   func(e *wetink.Evidence, _ *wetink.Change) { e.Shown = time.Time{} },
		"no data":                   func(e *wetink.Evidence, _ *wetink.Change) { e.Data = nil },
		"a byte less":               func(e *wetink.Evidence, _ *wetink.Change) { e.Data = e.Data[:len(e.Data)-1] },
		"a bit of the last byte":    func(e *wetink.Evidence, _ *wetink.Change) { e.Data[len(e.Data)-1] ^= 1 },
		"a bit of the first byte":   func(e *wetink.Evidence, _ *wetink.Change) { e.Data[0] ^= 1 },
		"the evidence of a sibling": func(e *wetink.Evidence, _ *wetink.Change) { e.Data = sign(t, s, sibling).Data },
		"the other kind":            func(e *wetink.Evidence, _ *wetink.Change) { e.Kind = wetink.EvidenceTerminal },
	} {
		e, row := good, c
		e.Data = slices.Clone(good.Data)
		spoil(&e, &row)
		if level, err := s.Verifier().Verify(t.Context(), row, wetink.Terms{}, e); err == nil || level != wetink.Auto {
			t.Errorf("%s: level %s, %v", name, level, err)
		}
	}
	if level, err := s.Verifier().Verify(t.Context(), c, wetink.Terms{}, good); err != nil || level != wetink.Reauth {
		t.Errorf("the control: %s, %v", level, err)
	}
}

func TestAWrongPassphraseApprovesNothing(t *testing.T) {
	_, s := enrolled()
	_, c := pending(t, s)
	almost := secret.New([]byte("five words make a phrasE"))
	if e, wrong, err := s.Approve(t.Context(), c, "ana", "page", shown, almost); !wrong || err != nil || e.Data != nil {
		t.Error(wrong, err)
	}
	if _, wrong, err := s.Approve(t.Context(), c, "bo", "page", shown, phrase); !wrong || err != nil {
		t.Error("somebody who has none:", wrong, err)
	}
	c.Tenant = "other"
	if _, wrong, err := s.Approve(t.Context(), c, "ana", "page", shown, phrase); !wrong || err != nil {
		t.Error("ana of another tenant:", wrong, err)
	}
}

// Who is not there and who gave a wrong one must not be told apart by the clock, so both derive a key.
func TestSomebodyUnknownTakesAsLongAsAWrongPassphrase(t *testing.T) {
	_, s := enrolled()
	took := func(person wetink.Person) time.Duration {
		began := time.Now()
		if wrong, err := s.Check(t.Context(), "", person, secret.New([]byte("not the right one"))); !wrong || err != nil {
			t.Fatal(wrong, err)
		}
		return time.Since(began)
	}
	known, unknown := took("ana"), took("nobody")
	if unknown < known/5 {
		t.Errorf("%s for somebody who is there, %s for who is not", known, unknown)
	}
}

func TestFiveWrongOnesInARowHaveToWait(t *testing.T) {
	now := time.Now()
	records, _ := enrolled()
	s := passphrase.New(records, &passphrase.Options{Now: func() time.Time { return now }})
	wrong := secret.New([]byte("not the right one"))
	for range 5 {
		if is, err := s.Check(t.Context(), "", "ana", wrong); !is || err != nil {
			t.Fatal(is, err)
		}
	}
	if _, err := s.Check(t.Context(), "", "ana", phrase); !errors.Is(err, passphrase.ErrTries) || !strings.Contains(err.Error(), "wait 30 s") {
		t.Errorf("the right one, at once: %v", err)
	}
	waiting := 0 // names share buckets by chance; that three of them share one does not happen
	for _, other := range []wetink.Person{"bo", "cy", "di"} {
		if _, err := s.Check(t.Context(), "", other, wrong); err != nil {
			waiting++
		}
	}
	if waiting == 3 {
		t.Error("everybody else waits, too")
	}
	now = now.Add(31 * time.Second)
	if is, err := s.Check(t.Context(), "", "ana", wrong); !is || err != nil {
		t.Errorf("after the wait: %v", err)
	}
	now = now.Add(31 * time.Second)
	if _, err := s.Check(t.Context(), "", "ana", phrase); !errors.Is(err, passphrase.ErrTries) {
		t.Errorf("a sixth: %v", err)
	}
	now = now.Add(time.Minute)
	if is, err := s.Check(t.Context(), "", "ana", phrase); is || err != nil {
		t.Errorf("the right one: %v", err)
	}
	if is, err := s.Check(t.Context(), "", "ana", wrong); !is || err != nil {
		t.Errorf("counted from anew: %v", err)
	}
}

func TestOfManyGuessesAtOnceNoMoreThanFiveAreJudged(t *testing.T) {
	_, s := enrolled()
	var judged atomic.Int32
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			switch _, err := s.Check(t.Context(), "", "ana", secret.New([]byte("not the right one"))); {
			case err == nil:
				judged.Add(1)
			case !errors.Is(err, passphrase.ErrTries):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := judged.Load(); n != 5 {
		t.Errorf("%d were judged", n)
	}
}

// Names cost nothing, and neither does a caller who hangs up before the derivation: if a flood of them made the count
// of ana be forgotten, it would buy five more guesses each time.
func TestNoFloodOfNamesForgetsWhatWasCounted(t *testing.T) {
	_, s := enrolled()
	wrong := secret.New([]byte("not the right one"))
	for range 5 {
		if _, err := s.Check(t.Context(), "", "ana", wrong); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 30_000 {
		if _, err := s.Check(gone, "", wetink.Person(fmt.Sprint("nobody ", i)), wrong); err == nil {
			t.Fatal("a caller who is gone was answered")
		}
	}
	if _, err := s.Check(t.Context(), "", "ana", phrase); !errors.Is(err, passphrase.ErrTries) {
		t.Errorf("after the flood: %v", err)
	}
}

func TestARightOneForgetsTheWrongOnesBefore(t *testing.T) {
	_, s := enrolled()
	wrong := secret.New([]byte("not the right one"))
	for i, p := range []secret.Bytes{wrong, wrong, wrong, wrong, phrase, wrong, phrase} {
		if _, err := s.Check(t.Context(), "", "ana", p); err != nil {
			t.Errorf("try %d: %v", i+1, err)
		}
	}
}

func TestNothingIsDerivedForACallerWhoIsGone(t *testing.T) {
	_, s := enrolled()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Check(ctx, "", "ana", phrase); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheSamePassphraseInAnotherNormalFormIsTheSame(t *testing.T) {
	_, s := enrolled()
	if why, err := s.Set(t.Context(), "", "bo", secret.New([]byte("cr\u00e8me br\u00fbl\u00e9e at noon"))); why != "" || err != nil {
		t.Fatal(why, err)
	}
	if wrong, err := s.Check(t.Context(), "", "bo", secret.New([]byte("cre\u0300me bru\u0302le\u0301e at noon"))); wrong || err != nil {
		t.Error(wrong, err)
	}
}

func TestAShortPassphraseIsNotTaken(t *testing.T) {
	_, s := enrolled()
	for _, p := range []string{"", "elevenchars", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", "\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4\xf3", strings.Repeat("x", 1025)} {
		if why, err := s.Set(t.Context(), "", "bo", secret.New([]byte(p))); why == "" || err != nil {
			t.Errorf("%.20q: %q, %v", p, why, err)
		}
	}
	if has, err := s.Has(t.Context(), "", "bo"); has || err != nil {
		t.Error(has, err)
	}
}

func TestReachIsWhatIsSetUp(t *testing.T) {
	records, s := enrolled()
	if got := s.Verifier().Reach(t.Context()); got != wetink.Reauth {
		t.Errorf("with a passphrase: %s", got)
	}
	clear(records.rows)
	if got := s.Verifier().Reach(t.Context()); got != wetink.Auto {
		t.Errorf("without one: %s", got)
	}
}

func TestNoPassphraseIsStored(t *testing.T) {
	if strings.Contains(string(anas()), "five words") {
		t.Errorf("%s", anas())
	}
}

func TestARecordThatCannotBeTrustedIsRefusedAndNotTakenForNone(t *testing.T) {
	for name, edit := range map[string][2]string{
		"cheaper to guess":     {`"passes":3`, `"passes":1`},
		"too dear to read":     {`"memory_kib":65536`, `"memory_kib":65536000`},
		"a later version":      {`"v":1`, `"v":2`},
		"another function":     {`argon2id`, `argon2i`},
		"an unknown member":    {`"v":1`, `"v":1,"plain":"x"`},
		"a member twice":       {`"v":1`, `"v":1,"v":1`},
		"without a public key": {`"public_key":"`, `"public_key":"","`},
		"of somebody else":     {`"person":"ana"`, `"person":"bo"`},
		"of another tenant":    {`"tenant":""`, `"tenant":"x"`},
		"empty":                {string(anas()), ""},
	} {
		spoiled := strings.Replace(string(anas()), edit[0], edit[1], 1)
		if spoiled == string(anas()) {
			t.Fatalf("%s: %q is not in it", name, edit[0])
		}
		s := passphrase.New(&shelf{rows: map[[2]string][]byte{{"", "ana"}: []byte(spoiled)}}, nil)
		if has, err := s.Has(t.Context(), "", "ana"); has || !errors.Is(err, passphrase.ErrUntrusted) {
			t.Errorf("%s: has %t, %v", name, has, err)
		}
		if wrong, err := s.Check(t.Context(), "", "ana", phrase); !wrong || !errors.Is(err, passphrase.ErrUntrusted) {
			t.Errorf("%s: wrong %t, %v", name, wrong, err)
		}
		e := wetink.Evidence{Kind: wetink.EvidenceReauth, By: "ana", Shown: shown, Digest: wetink.Statement(nil).Digest()}
		if _, err := s.Verifier().Verify(t.Context(), wetink.Change{}, wetink.Terms{}, e); !errors.Is(err, passphrase.ErrUntrusted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package terminal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/wetinktest"
)

var (
	phrase = terminal.NewPassphrase("five words make a phrase")
	shown  = time.Date(2026, 7, 16, 14, 30, 0, 123456789, time.UTC)
)

// pending returns an engine at a level, and a Change that waits for approval there.
func pending(t *testing.T, home string, level wetink.Level) (*wetinktest.Kit, wetink.Change) {
	t.Helper()
	k := wetinktest.New(t, &wetink.Options{Policy: wetink.Floor{Level: level, People: 1}, Verifiers: terminal.Verifiers(home)})
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

// key is made once: argon2id is dear on purpose.
var key = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "wetink-terminal-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := terminal.Setup(dir, "ana", phrase); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "approver.json"))
})

// home returns a folder where ana has set up the passphrase.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	b, err := key()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "approver.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestATerminalWithoutAPassphraseGivesHost(t *testing.T) {
	k, c := pending(t, t.TempDir(), wetink.Host)
	e, err := terminal.Approve(c, terminal.Approver{User: "ana", Shown: shown})
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

func TestAPassphraseGivesReauthAndIsVerifiedAgainByAnotherProcess(t *testing.T) {
	dir := home(t)
	k, c := pending(t, dir, wetink.Reauth)
	e, err := terminal.Approve(c, terminal.Approver{Home: dir, User: "ana", Shown: shown, Passphrase: phrase})
	if err != nil {
		t.Fatal(err)
	}
	if c, err = k.Approve(t.Context(), wetinktest.By, c.ID, e); err != nil || c.Approvals[0].Level != wetink.Reauth {
		t.Fatalf("%+v, %v", c.Approvals, err)
	}
	other := wetinktest.On(k.Ledger, k.Target, &wetink.Options{Policy: wetink.Floor{Level: wetink.Reauth, People: 1}, Verifiers: terminal.Verifiers(dir)})
	if c, _, err = other.Apply(t.Context(), wetinktest.By, c.ID, nil); err != nil || c.Status != wetink.Applied {
		t.Fatalf("%s, %v", c.Status, err)
	}
}

func TestAnApprovalIsVoidOnceItsKeyIsNoLongerSetUp(t *testing.T) {
	dir := home(t)
	k, c := pending(t, dir, wetink.Reauth)
	e, err := terminal.Approve(c, terminal.Approver{Home: dir, User: "ana", Shown: shown, Passphrase: phrase})
	if err != nil {
		t.Fatal(err)
	}
	if c, err = k.Approve(t.Context(), wetinktest.By, c.ID, e); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "approver.json")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Apply(t.Context(), wetinktest.By, c.ID, nil); !errors.Is(err, wetink.ErrEvidence) || !errors.Is(err, terminal.ErrNoSetup) {
		t.Errorf("without a key: %v", err)
	}
	if err := terminal.Setup(dir, "ana", phrase); err != nil { // the same words, another salt
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
	dir := home(t)
	k, c := pending(t, dir, wetink.Host)
	sibling := preview(t, k, "b")
	sign := func(c wetink.Change, p terminal.Passphrase) wetink.Evidence {
		e, err := terminal.Approve(c, terminal.Approver{Home: dir, User: "ana", Shown: shown, Passphrase: p})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	none := terminal.Passphrase{}
	good := map[string]wetink.Evidence{wetink.EvidenceTerminal: sign(c, none), wetink.EvidenceReauth: sign(c, phrase)}
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
		"the evidence of a sibling": func(e *wetink.Evidence, _ *wetink.Change) { e.Data = sign(sibling, none).Data },
		"the other kind":            func(e *wetink.Evidence, _ *wetink.Change) { e.Kind = other(e.Kind) },
	} {
		for kind, e := range good {
			row := c
			e.Data = slices.Clone(e.Data)
			v := terminal.Verifiers(dir)
			if _, err := v[kind].Verify(t.Context(), row, wetink.Terms{}, e); err != nil {
				t.Fatalf("%s as it was made: %v", kind, err)
			}
			spoil(&e, &row)
			if level, err := v[e.Kind].Verify(t.Context(), row, wetink.Terms{}, e); err == nil || level != wetink.Auto {
				t.Errorf("%s with %s: level %s, %v", kind, name, level, err)
			}
		}
	}
}

func other(kind string) string {
	if kind == wetink.EvidenceReauth {
		return wetink.EvidenceTerminal
	}
	return wetink.EvidenceReauth
}

func TestAHostApprovalIsNotEnoughForReauth(t *testing.T) {
	dir := home(t)
	k, c := pending(t, dir, wetink.Reauth)
	e, err := terminal.Approve(c, terminal.Approver{User: "ana", Shown: shown})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Approve(t.Context(), wetinktest.By, c.ID, e); !errors.Is(err, wetink.ErrLevel) {
		t.Error(err)
	}
}

func TestAWrongPassphraseApprovesNothing(t *testing.T) {
	dir := home(t)
	_, c := pending(t, dir, wetink.Reauth)
	_, err := terminal.Approve(c, terminal.Approver{Home: dir, User: "ana", Shown: shown, Passphrase: terminal.NewPassphrase("five words make a phrasE")})
	if !errors.Is(err, terminal.ErrPassphrase) {
		t.Error(err)
	}
	if _, err = terminal.Approve(c, terminal.Approver{Home: dir, User: "bo", Shown: shown, Passphrase: phrase}); err == nil {
		t.Error("another OS user approved with the passphrase")
	}
	if _, err = terminal.Approve(c, terminal.Approver{Home: t.TempDir(), User: "ana", Shown: shown, Passphrase: phrase}); !errors.Is(err, terminal.ErrNoSetup) {
		t.Error(err)
	}
}

func TestTheSamePassphraseInAnotherNormalFormIsTheSame(t *testing.T) {
	dir := t.TempDir()
	if err := terminal.Setup(dir, "ana", terminal.NewPassphrase("cr\u00e8me br\u00fbl\u00e9e at noon")); err != nil {
		t.Fatal(err)
	}
	_, c := pending(t, dir, wetink.Reauth)
	decomposed := terminal.NewPassphrase("cre\u0300me bru\u0302le\u0301e at noon")
	if _, err := terminal.Approve(c, terminal.Approver{Home: dir, User: "ana", Shown: shown, Passphrase: decomposed}); err != nil {
		t.Error(err)
	}
}

func TestReachIsWhatIsSetUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	reach := func() (best wetink.Level) {
		for _, v := range terminal.Verifiers(dir) {
			best = max(best, v.Reach(context.Background()))
		}
		return best
	}
	if got := reach(); got != wetink.Host {
		t.Errorf("without a passphrase: %s", got)
	}
	if err := terminal.Setup(dir, "ana", phrase); err != nil {
		t.Fatal(err)
	}
	if got := reach(); got != wetink.Reauth {
		t.Errorf("with a passphrase: %s", got)
	}
	if ok, err := terminal.Enrolled(dir); !ok || err != nil {
		t.Errorf("enrolled: %t, %v", ok, err)
	}
}

func TestSetupNeverReplacesAKey(t *testing.T) {
	dir := home(t)
	before, err := os.ReadFile(filepath.Join(dir, "approver.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := terminal.Setup(dir, "ana", terminal.NewPassphrase("another five words here")); !errors.Is(err, terminal.ErrSetup) {
		t.Error(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "approver.json"))
	if err != nil || string(before) != string(after) {
		t.Errorf("the key changed: %v", err)
	}
	if err := terminal.Setup(t.TempDir(), "ana", terminal.NewPassphrase("elevenchars")); !errors.Is(err, terminal.ErrWeak) {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".approver-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNoPassphraseIsStored(t *testing.T) {
	dir := home(t)
	b, err := os.ReadFile(filepath.Join(dir, "approver.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "five words") {
		t.Error("the passphrase is in the file")
	}
	hidden := struct{ p terminal.Passphrase }{phrase}
	for _, s := range []string{fmt.Sprint(phrase), fmt.Sprintf("%+v", phrase), fmt.Sprintf("%#v", phrase), fmt.Sprintf("%q", phrase),
		fmt.Sprint(hidden), fmt.Sprintf("%+v", hidden), fmt.Sprintf("%#v", hidden)} {
		if strings.Contains(s, "five") {
			t.Errorf("it prints as %s", s)
		}
	}
}

func TestAKeyFileThatCannotBeTrustedIsRefusedAndNotTakenForNone(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"readable by the group": func(f string) error { return os.Chmod(f, 0o640) },
		"writable by others":    func(f string) error { return os.Chmod(f, 0o602) },
		"a link": func(f string) error {
			return errors.Join(os.Rename(f, f+".real"), os.Symlink(f+".real", f))
		},
		"a folder":             func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o600)) },
		"empty":                func(f string) error { return os.Truncate(f, 0) },
		"cheaper to guess":     edit(`"passes": 3`, `"passes": 1`),
		"too dear to read":     edit(`"memory_kib": 65536`, `"memory_kib": 65536000`),
		"a later version":      edit(`"v": 1`, `"v": 2`),
		"another function":     edit(`argon2id`, `argon2i`),
		"an unknown member":    edit(`"v": 1`, `"v": 1, "plain": "x"`),
		"a member twice":       edit(`"v": 1`, `"v": 1, "v": 1`),
		"without a public key": edit(`"public_key": "`, `"public_key": "", "`),
		"without a user":       edit(`"user": "ana"`, `"user": ""`),
	} {
		t.Run(name, func(t *testing.T) {
			dir := home(t)
			_, c := pending(t, dir, wetink.Reauth)
			e := wetink.Evidence{Kind: wetink.EvidenceReauth, Digest: c.Statement.Digest(), By: "ana", Shown: shown}
			if err := spoil(filepath.Join(dir, "approver.json")); err != nil {
				t.Fatal(err)
			}
			if ok, err := terminal.Enrolled(dir); ok || !errors.Is(err, terminal.ErrUntrusted) {
				t.Errorf("enrolled: %t, %v", ok, err)
			}
			if _, err := terminal.Verifiers(dir)[wetink.EvidenceReauth].Verify(t.Context(), c, wetink.Terms{}, e); !errors.Is(err, terminal.ErrUntrusted) {
				t.Errorf("verify: %v", err)
			}
			if got := terminal.Verifiers(dir)[wetink.EvidenceReauth].Reach(t.Context()); got != wetink.Auto {
				t.Errorf("reach: %s", got)
			}
		})
	}
}

func edit(old, replacement string) func(string) error {
	return func(file string) error {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		s := strings.Replace(string(b), old, replacement, 1)
		if s == string(b) {
			return fmt.Errorf("%q is not in the file", old)
		}
		return os.WriteFile(file, []byte(s), 0o600)
	}
}

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/oidc"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/passkey"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/internal/sqlite"
	"github.com/wetink/wetink/wetinktest"
)

// An edit of people.db between approval and apply. cy approved four changes that ana asked for, each in another way;
// bo is there, too, with a passphrase and a passkey of his own.
type peopleEdit struct {
	sql   string
	stays string // the kinds of evidence that still count, and are executed exactly as they were approved; the others are refused
	why   string // they may
}

const (
	every   = "session reauth passkey oidc"
	byOne   = "each kind of evidence is checked against what it was made with"
	signIn  = "it is asked for to sign in, and what was approved meanwhile stays approved"
	telling = "it steers who is told, and what a person is told of themselves"
)

// peopleEdits of every column. A new column fails the test until somebody has thought about it.
var peopleEdits = map[string][]peopleEdit{
	"person.tenant":   {{sql: `UPDATE person SET tenant = 'acme' WHERE id = 'cy'`}},
	"person.id":       {{sql: `UPDATE person SET id = 'dy' WHERE id = 'cy'`}},
	"person.name":     {{`UPDATE person SET name = 'Bo' WHERE id = 'cy'`, every, "it is for people to read; records name the id"}},
	"person.approver": {{sql: `UPDATE person SET approver = 0 WHERE id = 'cy'`}, {sql: `UPDATE person SET approver = 0, admin = 1 WHERE id = 'cy'`}},
	"person.admin":    {{`UPDATE person SET admin = 1 WHERE id = 'cy'`, every, "an approver may already"}},
	"person.no_keys":  {{`UPDATE person SET no_keys = 1`, every, "a preference"}},
	"person.created":  {{`UPDATE person SET created = 1`, every, "it is for people to read"}},
	"person.removed":  {{sql: `UPDATE person SET removed = 1 WHERE id = 'cy'`}, {sql: `UPDATE person SET removed = -1 WHERE id = 'cy'`}},

	"session.hash":    {{`UPDATE session SET hash = CAST(X'00' || hash AS BLOB)`, every, signIn}},
	"session.tenant":  {{`UPDATE session SET tenant = 'acme'`, every, signIn}},
	"session.person":  {{`UPDATE session SET person = 'bo'`, every, signIn}},
	"session.how":     {{`UPDATE session SET how = 'oidc'`, every, signIn}},
	"session.agent":   {{`UPDATE session SET agent = ''`, every, signIn}},
	"session.created": {{`UPDATE session SET created = 1`, every, signIn}},
	"session.seen":    {{`UPDATE session SET seen = 1`, every, signIn}},
	"session.expires": {{`UPDATE session SET expires = 1`, every, signIn}},

	"invitation.hash":    {{`UPDATE invitation SET hash = X'00' WHERE person = 'cy'`, every, signIn}},
	"invitation.tenant":  {{`UPDATE invitation SET tenant = 'acme'`, every, signIn}},
	"invitation.person":  {{`UPDATE invitation SET person = 'bo'`, every, signIn}},
	"invitation.expires": {{`UPDATE invitation SET expires = 1e13`, every, signIn}},

	"identity.tenant":  {{`UPDATE identity SET tenant = 'acme' WHERE person = 'cy'`, "session reauth passkey", byOne}},
	"identity.issuer":  {{`UPDATE identity SET issuer = 'https://evil.example' WHERE person = 'cy'`, "session reauth passkey", byOne}},
	"identity.subject": {{`UPDATE identity SET subject = 'another' WHERE person = 'cy'`, "session reauth passkey", byOne}},
	"identity.person":  {{`UPDATE identity SET person = 'dy' WHERE person = 'cy'`, "session reauth passkey", byOne}},

	"passphrase.tenant": {{`UPDATE passphrase SET tenant = 'acme' WHERE person = 'cy'`, "session passkey oidc", byOne}},
	"passphrase.person": {{`UPDATE passphrase SET person = 'dy' WHERE person = 'cy'`, "session passkey oidc", byOne}},
	"passphrase.record": {
		{`UPDATE passphrase SET record = (SELECT record FROM passphrase WHERE person = 'bo') WHERE person = 'cy'`, "session passkey oidc", byOne},
		{`UPDATE passphrase SET record = X'7B7D' WHERE person = 'cy'`, "session passkey oidc", byOne},
	},

	"passkey.id":     {{`UPDATE passkey SET id = X'00' WHERE person = 'cy'`, "session reauth oidc", byOne}},
	"passkey.tenant": {{`UPDATE passkey SET tenant = 'acme' WHERE person = 'cy'`, "session reauth oidc", byOne}},
	"passkey.person": {{`UPDATE passkey SET person = 'bo' WHERE person = 'cy'`, "session reauth oidc", byOne}},
	"passkey.record": {
		{`UPDATE passkey SET record = (SELECT record FROM passkey WHERE person = 'bo') WHERE person = 'cy'`, "session reauth oidc", byOne},
		{`UPDATE passkey SET record = CAST(replace(CAST(record AS TEXT), '"rp":"localhost"', '"rp":"evil.example"') AS BLOB) WHERE person = 'cy'`, "session reauth oidc", byOne},
		// The same id with the key of somebody else: what was signed fits the old key only.
		{`UPDATE passkey SET record = CAST(replace(CAST(record AS TEXT), '"spki":"$CY"', '"spki":"$BO"') AS BLOB) WHERE person = 'cy'`, "session reauth oidc", byOne},
	},

	"decision.tenant": {{`UPDATE decision SET tenant = 'acme'`, every, telling}},
	"decision.person": {{`UPDATE decision SET person = 'bo'`, every, telling}},
	"decision.at":     {{`UPDATE decision SET at = at + 1`, every, telling}},
	"decision.change": {{`UPDATE decision SET change = change || 'x'`, every, telling}},
	"decision.yes":    {{`UPDATE decision SET yes = 0`, every, telling}},
	"decision.looked": {{`UPDATE decision SET looked = 0`, every, telling}},

	"cursor.name": {{`UPDATE cursor SET name = 'x' WHERE name = 'of cy'`, every, telling}},
	"cursor.seq":  {{`UPDATE cursor SET seq = 0`, every, telling}},

	"subscription.endpoint": {{`UPDATE subscription SET endpoint = 'https://evil.example/' WHERE person = 'cy'`, every, telling}},
	"subscription.tenant":   {{`UPDATE subscription SET tenant = 'acme'`, every, telling}},
	"subscription.person":   {{`UPDATE subscription SET person = 'bo'`, every, telling}},
	"subscription.record":   {{`UPDATE subscription SET record = X'00'`, every, telling}},

	"secret.name":  {{`UPDATE secret SET name = 'another' WHERE name = 'page'`, "reauth passkey", byOne}},
	"secret.bytes": {{`UPDATE secret SET bytes = zeroblob(32) WHERE name = 'page'`, "reauth passkey", byOne}},
}

// forging are the columns with which whoever can write the file makes a yes where there was none. That is the OS user,
// and the threat model has to say so of each.
var forging = []string{"person.approver", "person.removed", "session.hash", "session.person", "invitation.hash", "invitation.person", "invitation.expires",
	"identity.subject", "identity.person", "passphrase.record", "passkey.person", "passkey.record", "secret.bytes", "decision.at"}

func TestAnEditOfAnyColumnOfPeopleAfterApprovalIsRefusedOrHarmless(t *testing.T) {
	first := newDesk(t)
	columns := first.columns()
	for name := range peopleEdits {
		if !slices.Contains(columns, name) {
			t.Errorf("%s is not in the schema any more", name)
		}
	}
	model, err := os.ReadFile(filepath.Join("..", "..", "docs", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range forging {
		if !slices.Contains(columns, name) || !strings.Contains(string(model), "`"+name+"`") {
			t.Errorf("the threat model does not say what %s gives to who writes it", name)
		}
	}
	for _, column := range columns {
		list := peopleEdits[column]
		if len(list) == 0 {
			t.Errorf("nobody has said what happens when %s is edited", column)
		}
		for _, e := range list {
			t.Run(column, func(t *testing.T) { e.try(t, first) })
		}
	}
	t.Run("rows that are gone", func(t *testing.T) {
		for _, e := range []peopleEdit{{sql: `DELETE FROM person WHERE id = 'cy'`}, {`DELETE FROM passphrase WHERE person = 'cy'`, "session passkey oidc", byOne},
			{`DELETE FROM passkey WHERE person = 'cy'`, "session reauth oidc", byOne}, {`DELETE FROM identity WHERE person = 'cy'`, "session reauth passkey", byOne}, {`DELETE FROM secret`, "reauth passkey", byOne}, {`DELETE FROM session`, every, signIn}} {
			e.try(t, first)
		}
	})
	t.Run("the control", func(t *testing.T) {
		peopleEdit{`UPDATE person SET name = name`, every, "nothing was edited"}.try(t, first)
	})
}

func (e peopleEdit) try(t *testing.T, first *peopleDesk) {
	t.Helper()
	if (e.stays == "") != (e.why == "") {
		t.Fatalf("%s: what counts still needs a reason", e.sql)
	}
	d := first.copied(t)
	approved := d.approved()
	d.edit(strings.NewReplacer("$CY", d.spki["cy"], "$BO", d.spki["bo"]).Replace(e.sql))
	k := d.kit()
	for kind, c := range approved {
		before := len(d.target.Journal())
		done, _, err := k.Apply(t.Context(), wetinktest.By, c.ID, nil)
		sent := d.target.Journal()[before:]
		want := []wetinktest.Effect{{Account: "acct-1", Action: "update", Object: kind, Payload: `{"n":2}`}}
		switch stays := slices.Contains(strings.Fields(e.stays), kind); {
		case stays && (err != nil || done.Status != wetink.Applied || !slices.Equal(sent, want)):
			t.Errorf("%s\nwhich should not matter to %s, as %s: %s, %v, %v", e.sql, kind, e.why, done.Status, err, sent)
		case !stays && (!errors.Is(err, wetink.ErrEvidence) || len(sent) > 0):
			t.Errorf("%s\nand what was approved by %s is executed: %s, %v, %v", e.sql, kind, done.Status, err, sent)
		}
	}
}

// peopleDesk is a home with people, and a ledger and an outside system in memory: the ledger's own rows are edited in
// its own tests.
type peopleDesk struct {
	t      *testing.T
	cfg    Config
	ledger wetink.Ledger
	target *wetinktest.Target
	spki   map[wetink.Person]string // base64, of each one's passkey
	keys   map[wetink.Person]ed25519.PrivateKey
}

func newDesk(t *testing.T) *peopleDesk {
	t.Helper()
	cfg, err := loadConfig(func(k string) string {
		return map[string]string{"WETINK_HOME": filepath.Join(t.TempDir(), "home"), "WETINK_WRITE_MODE": "guarded"}[k]
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.OIDC = &OIDC{client: oidc.Config{Issuer: counterIssuer}}
	d := &peopleDesk{t: t, cfg: cfg, ledger: wetinktest.NewLedger(), target: wetinktest.NewTarget(), spki: map[wetink.Person]string{}, keys: map[wetink.Person]ed25519.PrivateKey{}}
	d.with(func(who *people) {
		ctx := t.Context()
		for _, id := range []wetink.Person{"bo", "cy"} {
			public, private, err := ed25519.GenerateKey(nil)
			if err != nil {
				t.Fatal(err)
			}
			der, err := x509.MarshalPKIXPublicKey(public)
			if err != nil {
				t.Fatal(err)
			}
			d.keys[id], d.spki[id] = private, base64.StdEncoding.EncodeToString(der)
			record, err := json.Marshal(map[string]any{"v": 1, "id": credential(id), "name": "laptop", "rp": "localhost", "cose": []byte{}, "spki": der, "alg": -8,
				"aaguid": []byte{}, "attestation": []byte{}, "format": "none", "can_sync": false, "synced": false, "count": 0, "created": time.Now().UTC()})
			if err != nil {
				t.Fatal(err)
			}
			why, err := "", errors.Join(who.AddPerson(ctx, page.Person{ID: id, Approver: true, Created: time.Now()}), who.PutPasskeyRecord(ctx, "", id, credential(id), record),
				who.AddInvitation(ctx, page.Invitation{Hash: sha256.Sum256([]byte(id)), Person: id, Expires: time.Now().Add(time.Hour)}),
				who.SetCursor(ctx, "of "+string(id), 1), who.BindIdentity(ctx, "", id, counterIssuer, "subject of "+string(id)), who.PutSubscription(ctx, "", id, "https://push.example/"+string(id), []byte("x")))
			if err == nil {
				why, err = who.passphrases.Set(ctx, "", id, phraseOf(id))
			}
			if why != "" || err != nil {
				t.Fatal(why, err)
			}
		}
	})
	return d
}

// copied is a desk of its own with the same people: to make a passphrase takes long, on purpose.
func (d *peopleDesk) copied(t *testing.T) *peopleDesk {
	t.Helper()
	next := *d
	next.t, next.cfg.Home, next.ledger, next.target = t, filepath.Join(t.TempDir(), "home"), wetinktest.NewLedger(), wetinktest.NewTarget()
	files, err := os.ReadDir(d.cfg.Home)
	if err = errors.Join(err, os.Mkdir(next.cfg.Home, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(d.cfg.Home, f.Name()))
		if err = errors.Join(err, os.WriteFile(filepath.Join(next.cfg.Home, f.Name()), b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return &next
}

func credential(id wetink.Person) []byte { return []byte("passkey of " + id) }

func phraseOf(id wetink.Person) secret.Bytes { return secret.New([]byte("five words of " + id)) }

// with opens the people for a moment: who edits the file does so while nobody has it open.
func (d *peopleDesk) with(f func(*people)) {
	d.t.Helper()
	who, err := d.cfg.OpenPeople()
	if err != nil {
		d.t.Fatal(err)
	}
	f(who)
	if err := who.Close(); err != nil {
		d.t.Fatal(err)
	}
}

// kit is an engine as every process of this home has it.
func (d *peopleDesk) kit() *wetinktest.Kit {
	o := d.cfg.Options(peopleOf(d.t, d.cfg))
	o.Policy = wetink.Floor{Level: wetink.Session, People: 1}
	return wetinktest.On(d.ledger, d.target, o)
}

// approved are the changes that cy said yes to, by how. No page asked for those by passphrase and passkey: their evidence is
// made as it does.
func (d *peopleDesk) approved() map[string]wetink.Change {
	d.t.Helper()
	ctx, list := d.t.Context(), map[string]wetink.Change{}
	d.with(func(who *people) {
		o := d.cfg.Options(who)
		for _, kind := range []string{"session", "reauth", "passkey", "oidc"} {
			level := wetink.Session
			if kind == "oidc" { // only then does the page ask for it
				level = wetink.Reauth
			}
			o.Policy = wetink.Floor{Level: level, People: 1}
			k := wetinktest.On(d.ledger, d.target, o)
			d.target.Put(kind, `{"n":1}`)
			c, _, err := k.Preview(ctx, "test", wetink.Request{By: wetink.Principal{Person: "ana", Client: "agent"}, Args: []byte(`{"ops":[{"action":"update","object":"` + kind + `","set":{"n":2}}]}`)})
			if err != nil {
				d.t.Fatal(err)
			}
			switch kind {
			case "session":
				d.press(ctx, who, k, c)
			case "oidc":
				d.pressAfterIssuer(ctx, who, k, c)
			case "reauth":
				ev, wrong, err := who.passphrases.Approve(ctx, c, "cy", "page", time.Now(), phraseOf("cy"))
				if err == nil && !wrong {
					_, err = k.Approve(ctx, wetink.Principal{Person: "cy"}, c.ID, ev)
				}
				if wrong || err != nil {
					d.t.Fatal(wrong, err)
				}
			case "passkey":
				if _, err := k.Approve(ctx, wetink.Principal{Person: "cy"}, c.ID, d.signed(c)); err != nil {
					d.t.Fatal(err)
				}
			}
			if list[kind], err = d.ledger.Get(ctx, "", c.ID); err != nil || list[kind].Status != wetink.Approved {
				d.t.Fatalf("%s: %s %v", kind, list[kind].Status, err)
			}
		}
	})
	return list
}

var formField = regexp.MustCompile(`name="form" value="([^"]+)"`)

// press signs cy in on the page and approves c there.
func (d *peopleDesk) press(ctx context.Context, who *people, k *wetinktest.Kit, c wetink.Change) {
	d.t.Helper()
	p, err := page.New(ctx, deskOrigin, k.Engine, d.ledger, who, &page.Options{Passphrases: who.passphrases, Arm: time.Nanosecond})
	if err != nil {
		d.t.Fatal(err)
	}
	b, path := d.browse(p), strings.TrimPrefix(p.Link(c), deskOrigin)
	form := formField.FindStringSubmatch(b.get(path))
	if form == nil {
		d.t.Fatal("no form on the page")
	}
	if w := b.send("POST", path+"/approve", url.Values{"form": {form[1]}}); w.Code != http.StatusSeeOther {
		d.t.Fatalf("%d %s", w.Code, w.Body)
	}
}

const counterIssuer = "https://id.example"

// counter is an issuer at which cy stands.
type counter struct{}

func (counter) Start(context.Context, bool) (string, []byte, error) {
	return counterIssuer + "/authorize", []byte("x"), nil
}

func (counter) Finish(context.Context, []byte, url.Values) (page.Identity, error) {
	return page.Identity{Issuer: counterIssuer, Subject: "subject of cy", Person: "cy", AuthTime: time.Now()}, nil
}

// pressAfterIssuer signs cy in at the issuer, again for c, and approves it.
func (d *peopleDesk) pressAfterIssuer(ctx context.Context, who *people, k *wetinktest.Kit, c wetink.Change) {
	d.t.Helper()
	p, err := page.New(ctx, deskOrigin, k.Engine, d.ledger, who, &page.Options{SignOn: &page.SignOn{Issuer: counter{}, Name: "Firm"}, Arm: time.Nanosecond})
	if err != nil {
		d.t.Fatal(err)
	}
	b, path := &tab{d.t, p, nil, map[string]string{}}, strings.TrimPrefix(p.Link(c), deskOrigin)
	form := func() url.Values {
		m := formField.FindStringSubmatch(b.send("GET", path, "same-origin", nil).Body.String())
		if m == nil {
			d.t.Fatal("no form on the page")
		}
		return url.Values{"form": {m[1]}}
	}
	b.send("POST", "/signin/oidc", "same-origin", nil)
	b.send("GET", callbackPath, "cross-site", nil)
	b.send("POST", path+"/prove", "same-origin", form())
	b.send("GET", callbackPath, "cross-site", nil)
	if w := b.send("POST", path+"/approve", "same-origin", form()); w.Code != http.StatusSeeOther {
		d.t.Fatalf("%d %s", w.Code, w.Body)
	}
}

const deskOrigin = "http://localhost:7433"

// deskBrowser sends what cy's browser sends.
type deskBrowser struct {
	page   http.Handler
	cookie string
}

func (d *peopleDesk) browse(p http.Handler) *deskBrowser {
	d.t.Helper()
	b := &deskBrowser{page: p}
	w := b.send("POST", "/signin", url.Values{"user": {"cy"}, "pass": {string(phraseOf("cy").Reveal())}})
	if b.cookie, _, _ = strings.Cut(w.Header().Get("Set-Cookie"), ";"); b.cookie == "" {
		d.t.Fatalf("cy cannot sign in: %d", w.Code)
	}
	return b
}

func (b *deskBrowser) send(method, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = "localhost:7433"
	r.Header = http.Header{"Origin": {deskOrigin}, "Sec-Fetch-Site": {"same-origin"}, "Content-Type": {"application/x-www-form-urlencoded"}, "Cookie": {b.cookie}}
	w := httptest.NewRecorder()
	b.page.ServeHTTP(w, r)
	return w
}

func (b *deskBrowser) get(path string) string { return b.send("GET", path, nil).Body.String() }

// signed is cy's passkey's signature of c, as an authenticator and a browser make it (WebAuthn Level 3, section 6.3.3).
func (d *peopleDesk) signed(c wetink.Change) wetink.Evidence {
	d.t.Helper()
	nonce, rp := make([]byte, 32), sha256.Sum256([]byte("localhost"))
	challenge := passkey.Challenge(c.ID, c.Statement.Digest(), c.Tenant, "cy", "localhost", deskOrigin, nonce)
	client := fmt.Appendf(nil, `{"type":"webauthn.get","challenge":%q,"origin":%q}`, base64.RawURLEncoding.EncodeToString(challenge), deskOrigin)
	data := append(rp[:], 0x05, 0, 0, 0, 1) // user present and verified; the counter
	hash := sha256.Sum256(client)
	der, err := base64.StdEncoding.DecodeString(d.spki["cy"])
	if err != nil {
		d.t.Fatal(err)
	}
	b, err := json.Marshal(passkey.Assertion{V: 1, Credential: credential("cy"), SPKI: der, Alg: -8, RP: "localhost", Origin: deskOrigin, Nonce: nonce,
		ClientData: client, AuthenticatorData: data, Signature: ed25519.Sign(d.keys["cy"], append(slices.Clone(data), hash[:]...))})
	if err != nil {
		d.t.Fatal(err)
	}
	return wetink.Evidence{Kind: passkey.EvidenceKind, Digest: c.Statement.Digest(), By: "cy", Client: "page", Shown: time.Now().UTC().Round(0), Data: b}
}

// direct opens the file behind the store's back: with as many steps of the schema as it has, none is run.
func (d *peopleDesk) direct(f func(*sqlite.DB) error) {
	d.t.Helper()
	for n := 1; ; n++ {
		db, err := sqlite.Open(filepath.Join(d.cfg.Home, "people.db"), &sqlite.Options{Migrations: make([]string, n)})
		if errors.Is(err, sqlite.ErrNewerSchema) && n < 100 {
			continue
		}
		if err == nil {
			err = errors.Join(f(db), db.Close())
		}
		if err != nil {
			d.t.Fatal(err)
		}
		return
	}
}

func (d *peopleDesk) columns() []string {
	d.t.Helper()
	found := map[string]bool{}
	d.direct(func(db *sqlite.DB) error {
		return db.Read(context.Background(), func(tx *sqlite.Tx) error {
			for row, err := range tx.Query(`SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`) {
				if err != nil {
					return err
				}
				found[row.Text(0)] = true
			}
			return nil
		})
	})
	if len(found) < 40 {
		d.t.Fatalf("found only %d columns", len(found))
	}
	return slices.Sorted(maps.Keys(found))
}

func (d *peopleDesk) edit(sql string) {
	d.t.Helper()
	d.direct(func(db *sqlite.DB) error {
		return db.Write(context.Background(), func(tx *sqlite.Tx) error {
			n, err := tx.Exec(sql)
			if err == nil && n == 0 {
				err = errors.New("no row was edited")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
			return nil
		})
	})
}

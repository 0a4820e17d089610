package passphrase

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
)

// Errors of this package.
var (
	ErrUntrusted = errors.New("the stored passphrase cannot be trusted")
	ErrTries     = errors.New("too many wrong passphrases")
	ErrNoSetup   = errors.New("no passphrase is set up") // run `wetink setup`
)

// Min is the least number of characters, Max the most. Length is all that is asked for, as NIST SP 800-63B advises.
const (
	Min = 12
	Max = 1024
)

// Records keeps what is stored of a passphrase; nil if there is none. store/sqlite implements it. All methods are safe
// for concurrent use.
type Records interface {
	PassphraseRecord(ctx context.Context, tenant wetink.Tenant, person wetink.Person) ([]byte, error)
	PutPassphraseRecord(ctx context.Context, tenant wetink.Tenant, person wetink.Person, record []byte) error
	AnyPassphrase(ctx context.Context) (bool, error)
}

// Options of a Service. nil is the production default.
type Options struct {
	Now func() time.Time // nil: time.Now
}

// Service checks passphrases and signs with them. All methods are safe for concurrent use. Wrong tries are counted in
// this process: another one has its own count.
type Service struct {
	records Records
	now     func() time.Time
	slots   chan struct{} // each derivation takes 64 MiB

	mu    sync.Mutex
	seed  maphash.Seed // of bucket; random, so that nobody can choose a name that shares the bucket of another
	tries [buckets]tries
}

// buckets of counts. A table of fixed size needs no room for names that somebody makes up, and forgets none: what is
// cleared when it is full, a flood of names would clear. Two names in one bucket wait for one another, which gives
// nobody more guesses, and looks the same for names that are there and names that are not.
const buckets = 1 << 16

type who struct {
	tenant wetink.Tenant
	person wetink.Person
}

type tries struct {
	wrong int
	until time.Time
}

// New returns a Service on the records.
func New(records Records, o *Options) *Service {
	s := &Service{records: records, now: time.Now, slots: make(chan struct{}, 2), seed: maphash.MakeSeed()}
	if o != nil && o.Now != nil {
		s.now = o.Now
	}
	return s
}

// Has reports whether the person has one. A record that cannot be trusted is an error, not "no": whoever spoiled it
// would have lowered the level.
func (s *Service) Has(ctx context.Context, tenant wetink.Tenant, person wetink.Person) (bool, error) {
	_, err := s.load(ctx, tenant, person)
	if errors.Is(err, ErrNoSetup) {
		return false, nil
	}
	return err == nil, err
}

func (s *Service) load(ctx context.Context, tenant wetink.Tenant, person wetink.Person) (record, error) {
	b, err := s.records.PassphraseRecord(ctx, tenant, person)
	if err != nil {
		return record{}, fmt.Errorf("read the passphrase record: %w", err)
	}
	if b == nil {
		return record{}, ErrNoSetup
	}
	return readRecord(b, tenant, person)
}

// Set stores a first or another passphrase. why says in words what is wrong with it, "" if nothing. Approvals that were
// given with an earlier one and not used yet are void. Whoever calls it must know who is asking.
func (s *Service) Set(ctx context.Context, tenant wetink.Tenant, person wetink.Person, phrase secret.Bytes) (why string, err error) {
	switch n := utf8.RuneCount(norm.NFC.Bytes(phrase.Reveal())); {
	case !utf8.Valid(phrase.Reveal()):
		return "it is not UTF-8", nil
	case n < Min:
		return fmt.Sprintf("it has %d characters; use %d or more, such as five words", n, Min), nil
	case n > Max:
		return fmt.Sprintf("it has %d characters; use %d at most", n, Max), nil
	}
	release, err := s.slot(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	b, err := newRecord(tenant, person, phrase).encode()
	if err != nil {
		return "", err
	}
	return "", s.records.PutPassphraseRecord(ctx, tenant, person, b)
}

// slot bounds the memory that many callers at once can take. Who gave up waiting takes none.
func (s *Service) slot(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil { // a free slot and an ended context: select would toss a coin
		return nil, err
	}
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Check tells whether it is the person's passphrase. Somebody who has none, or is not there, looks the same as a wrong
// one, in time too. After five wrong ones in a row it refuses with ErrTries for a while.
func (s *Service) Check(ctx context.Context, tenant wetink.Tenant, person wetink.Person, phrase secret.Bytes) (wrong bool, err error) {
	_, key, err := s.unlock(ctx, tenant, person, phrase)
	return key == nil, err
}

func (s *Service) unlock(ctx context.Context, tenant wetink.Tenant, person wetink.Person, phrase secret.Bytes) (record, ed25519.PrivateKey, error) {
	w := who{tenant, person}
	r, err := s.load(ctx, tenant, person)
	nobody := errors.Is(err, ErrNoSetup)
	if err != nil && !nobody {
		return record{}, nil, err
	}
	if nobody { // takes as long, and fails
		r = record{Salt: make([]byte, saltSize), PublicKey: make([]byte, ed25519.PublicKeySize)}
	}
	if err := s.try(w); err != nil {
		return record{}, nil, err
	}
	release, err := s.slot(ctx)
	if err != nil {
		return record{}, nil, err
	}
	defer release()
	key := r.unlock(phrase)
	if key != nil {
		s.right(w)
	}
	return r, key, nil
}

// freeTries are the wrong ones in a row after which it takes longer and longer.
const freeTries = 5

// try counts one as wrong before it is judged: counted after it, any number sent at once would all be judged.
func (s *Service) try(w who) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.bucket(w)
	if left := t.until.Sub(s.now()); left > 0 {
		return fmt.Errorf("%w: wait %d s", ErrTries, int(math.Ceil(left.Seconds())))
	}
	if t.wrong++; t.wrong >= freeTries {
		t.until = s.now().Add(min(30*time.Second<<min(t.wrong-freeTries, 10), 15*time.Minute))
	}
	return nil
}

func (s *Service) bucket(w who) *tries { return &s.tries[maphash.Comparable(s.seed, w)%buckets] }

// right forgets what was counted.
func (s *Service) right(w who) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.bucket(w) = tries{}
}

// Approve makes the evidence that person gave their passphrase for c's stored Statement, which was shown at that time by
// client, "terminal" or "page". It trusts its caller to have shown the change.
func (s *Service) Approve(ctx context.Context, c wetink.Change, person wetink.Person, client string, shown time.Time, phrase secret.Bytes) (ev wetink.Evidence, wrong bool, err error) {
	if person == "" || shown.IsZero() {
		return wetink.Evidence{}, false, fmt.Errorf("approve %s with a passphrase: who saw it, and when, is not known", c.ID)
	}
	r, key, err := s.unlock(ctx, c.Tenant, person, phrase)
	if err != nil || key == nil {
		return wetink.Evidence{}, err == nil, err
	}
	e := wetink.Evidence{Kind: wetink.EvidenceReauth, Digest: c.Statement.Digest(), By: person, Client: client, Shown: shown.UTC().Round(0)}
	m, fp := message(c, e), r.fingerprint()
	e.Data = append(fp[:], ed25519.Sign(key, m[:])...)
	return e, false, nil
}

// Verifier turns stored evidence into level Reauth. The claim asks it, maybe in another process.
func (s *Service) Verifier() wetink.Verifier { return verifier{s} }

type verifier struct{ s *Service }

// Verify implements wetink.Verifier.
func (v verifier) Verify(ctx context.Context, c wetink.Change, _ wetink.Terms, e wetink.Evidence) (wetink.Level, error) {
	switch {
	case e.Kind != wetink.EvidenceReauth:
		return wetink.Auto, fmt.Errorf("evidence of kind %q", e.Kind)
	case e.Digest != c.Statement.Digest():
		return wetink.Auto, errors.New("the statement is not the one that was shown")
	case e.By == "" || e.Shown.IsZero():
		return wetink.Auto, errors.New("it does not say who saw it, or when")
	}
	r, err := v.s.load(ctx, c.Tenant, e.By)
	if err != nil {
		return wetink.Auto, err
	}
	fp := r.fingerprint()
	switch m := message(c, e); {
	case len(e.Data) != len(fp)+ed25519.SignatureSize:
		return wetink.Auto, errors.New("the signature is not complete")
	case !bytes.Equal(e.Data[:len(fp)], fp[:]):
		return wetink.Auto, errors.New("it was signed with a passphrase that is no longer set up; approve it again")
	case !ed25519.Verify(r.PublicKey, m[:], e.Data[len(fp):]):
		return wetink.Auto, errors.New("the signature does not fit this change")
	}
	return wetink.Reauth, nil
}

// Reach implements wetink.Verifier.
func (v verifier) Reach(ctx context.Context) wetink.Level {
	if any, err := v.s.records.AnyPassphrase(ctx); err != nil || !any {
		return wetink.Auto // of this kind there is none
	}
	return wetink.Reauth
}

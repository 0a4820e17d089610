package page

import (
	"context"
	"errors"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
)

// What a Store refuses.
var (
	ErrUnknown = errors.New("no such person, session or link")
	ErrTaken   = errors.New("that name is taken")
)

// Store is what the page needs to remember of people, apart from the ledger: who they are, and which browsers are
// signed in. Secrets arrive hashed, but for the one that Secret makes. All methods are safe for concurrent use, also by
// several processes. storetest holds the conformance suite; store/sqlite and store/postgres implement it.
type Store interface {
	People
	Sessions
	Invitations
	Identities
	Decisions
	// Secret returns 32 random bytes, made at the first call and the same for every process from then on. Links,
	// forms and the evidence of a browser session are bound by keys that are derived from it.
	Secret(ctx context.Context) (secret.Bytes, error)
}

// People are those who may sign in.
type People interface {
	// Person is ErrUnknown for who is not there, or was removed.
	Person(ctx context.Context, tenant wetink.Tenant, id wetink.Person) (Person, error)
	// AddPerson is ErrTaken if there is one of that id.
	AddPerson(ctx context.Context, p Person) error
	// UpdatePerson stores name, roles and preferences of who is there; ErrUnknown if nobody is. With Removed set it ends
	// their sessions and invitations, too.
	UpdatePerson(ctx context.Context, p Person) error
	ListPeople(ctx context.Context, tenant wetink.Tenant) ([]Person, error)
	// AnyPerson reports whether anybody of any tenant is there.
	AnyPerson(ctx context.Context) (bool, error)
}

// Person is somebody who may sign in.
type Person struct {
	Tenant   wetink.Tenant
	ID       wetink.Person // what records say: an OS user on one machine, a subject of the company's sign-in, a mail address
	Name     string        // for people
	Approver bool          // may decide about what others asked for; everybody may decide about what they asked for
	Admin    bool          // may invite others
	NoKeys   bool          // single-letter keys are off (WCAG 2.1.4)
	Created  time.Time
	Removed  time.Time // set: no sign-in, and approvals that were given and not used yet are void
}

// Sessions are browsers that are signed in.
type Sessions interface {
	AddSession(ctx context.Context, s Session) error
	// Session is ErrUnknown for one that ended.
	Session(ctx context.Context, hash wetink.Digest) (Session, error)
	// TouchSession moves Seen.
	TouchSession(ctx context.Context, hash wetink.Digest, seen time.Time) error
	EndSession(ctx context.Context, hash wetink.Digest) error
	ListSessions(ctx context.Context, tenant wetink.Tenant, person wetink.Person) ([]Session, error)
}

// Session is one browser of one person.
type Session struct {
	Hash    wetink.Digest // SHA-256 of the cookie's secret
	Tenant  wetink.Tenant
	Person  wetink.Person
	How     string // "passkey", "passphrase", "oidc"; "oidc, fresh" after a proof that was made for it
	Agent   string // the browser's own name, for the list of sessions; at most 200 bytes
	Created time.Time
	Seen    time.Time
	Expires time.Time
}

// Invitations are one-time links that let somebody set up their way to sign in.
type Invitations interface {
	AddInvitation(ctx context.Context, i Invitation) error
	// Invitation looks without using it up; ErrUnknown for one that was used. The caller checks Expires.
	Invitation(ctx context.Context, hash wetink.Digest) (Invitation, error)
	// TakeInvitation uses it up: of two callers at once one gets it, the other ErrUnknown.
	TakeInvitation(ctx context.Context, hash wetink.Digest) (Invitation, error)
	// SweepInvitations deletes those that are not good any more at that time.
	SweepInvitations(ctx context.Context, now time.Time) error
}

// Invitation of a person who is known already by name.
type Invitation struct {
	Hash    wetink.Digest // SHA-256 of the link's secret
	Tenant  wetink.Tenant
	Person  wetink.Person
	Expires time.Time
}

// Identities say which person a subject of an issuer is (OpenID Connect Core 1.0, section 5.7).
type Identities interface {
	// Identity is ErrUnknown for a subject that is nobody's. Of somebody who was removed it still says who: a subject does not
	// become somebody else.
	Identity(ctx context.Context, tenant wetink.Tenant, issuer, subject string) (wetink.Person, error)
	// BindIdentity is ErrUnknown for who is not there, and ErrTaken if the subject is somebody else's, or the person another
	// subject of that issuer. What is bound already may be bound again. It is one step: of two subjects that come for one
	// person at once, one gets it.
	BindIdentity(ctx context.Context, tenant wetink.Tenant, person wetink.Person, issuer, subject string) error
	// AnyIdentity reports whether somebody of any tenant who was not removed is a subject of that issuer.
	AnyIdentity(ctx context.Context, issuer string) (bool, error)
}

// Decisions are what people decided on the page and how long they looked, so that they can be told.
type Decisions interface {
	AddDecision(ctx context.Context, tenant wetink.Tenant, person wetink.Person, change wetink.ChangeID, yes bool, looked time.Duration, at time.Time) error
	Decisions(ctx context.Context, tenant wetink.Tenant, person wetink.Person, since time.Time) (approved, total int, median time.Duration, err error)
}

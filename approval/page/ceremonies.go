package page

import (
	"context"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
)

// Passkeys runs the ceremonies of WebAuthn (Level 3). approval/passkey implements it. Options and responses are the
// JSON that PublicKeyCredential's parse…FromJSON and toJSON exchange; state is kept by the page, sealed, until the
// browser answers.
type Passkeys interface {
	// Has reports whether the person has one that counts.
	Has(ctx context.Context, tenant wetink.Tenant, person wetink.Person) (bool, error)
	BeginEnrol(ctx context.Context, tenant wetink.Tenant, person wetink.Person, name string) (options, state []byte, err error)
	// FinishEnrol stores the new passkey under the name that the person gave it.
	FinishEnrol(ctx context.Context, tenant wetink.Tenant, person wetink.Person, name string, state, response []byte) error
	BeginSignIn(ctx context.Context) (options, state []byte, err error)
	FinishSignIn(ctx context.Context, state, response []byte) (wetink.Tenant, wetink.Person, error)
	// BeginApproval asks for a signature of the person's passkeys over the change's digest and the nonce (32 random
	// bytes that the page chose when it drew the change, and that come back to FinishApproval).
	BeginApproval(ctx context.Context, c wetink.Change, person wetink.Person, nonce []byte) (options []byte, err error)
	FinishApproval(ctx context.Context, c wetink.Change, person wetink.Person, nonce []byte, shown time.Time, response []byte) (wetink.Evidence, error)
	// List and Remove are for the settings page.
	List(ctx context.Context, tenant wetink.Tenant, person wetink.Person) ([]PasskeyInfo, error)
	Remove(ctx context.Context, tenant wetink.Tenant, person wetink.Person, id string) error
}

// PasskeyInfo is what the settings page shows of a passkey.
type PasskeyInfo struct {
	ID      string // base64url of the credential's id
	Name    string
	Created time.Time
	Synced  bool // it can be on several devices of the person
}

// Passphrases turns a passphrase into sign-in and evidence. approval/passphrase implements it. wrong is true when the
// passphrase, or the person, is not the right one: the two look alike from outside, in time too.
type Passphrases interface {
	Has(ctx context.Context, tenant wetink.Tenant, person wetink.Person) (bool, error)
	// Set stores a first or another passphrase; why says in words what is wrong with it, "" if nothing.
	Set(ctx context.Context, tenant wetink.Tenant, person wetink.Person, phrase secret.Bytes) (why string, err error)
	Check(ctx context.Context, tenant wetink.Tenant, person wetink.Person, phrase secret.Bytes) (wrong bool, err error)
	// Approve makes evidence of kind wetink.EvidenceReauth; client is "page".
	Approve(ctx context.Context, c wetink.Change, person wetink.Person, client string, shown time.Time, phrase secret.Bytes) (ev wetink.Evidence, wrong bool, err error)
}

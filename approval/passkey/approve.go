package passkey

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-webauthn/webauthn/protocol"

	"github.com/wetink/wetink"
)

// EvidenceKind is the Kind of the Evidence that this package makes.
const EvidenceKind = "passkey"

// BeginApproval makes the options of navigator.credentials.get for a signature of person under c's stored Statement.
// nonce is 32 random bytes, chosen when the change was drawn.
func (s *Service) BeginApproval(ctx context.Context, c wetink.Change, person wetink.Person, nonce []byte) ([]byte, error) {
	list, err := s.of(ctx, c.Tenant, person)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: %s has no passkey for %s; add one in the settings", ErrRefused, person, s.rp.ID)
	}
	if len(nonce) != nonceSize {
		return nil, errors.New("approve with a passkey: the nonce is not 32 bytes")
	}
	options := protocol.PublicKeyCredentialRequestOptions{
		Challenge: Challenge(c.ID, c.Statement.Digest(), c.Tenant, person, s.rp.ID, s.rp.Origin, nonce),
		Timeout:   int(life.Milliseconds()), RelyingPartyID: s.rp.ID, UserVerification: protocol.VerificationRequired,
	}
	for _, r := range list {
		d := r.credential()
		options.AllowedCredentials = append(options.AllowedCredentials, d.Descriptor())
	}
	return json.Marshal(options)
}

// FinishApproval makes evidence of the browser's answer. It is checked here as it is checked ever after.
func (s *Service) FinishApproval(ctx context.Context, c wetink.Change, person wetink.Person, nonce []byte, shown time.Time, response []byte) (wetink.Evidence, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return wetink.Evidence{}, refused(err)
	}
	a := Assertion{V: 1, Credential: parsed.RawID, RP: s.rp.ID, Origin: s.rp.Origin, Nonce: nonce,
		ClientData: parsed.Raw.AssertionResponse.ClientDataJSON, AuthenticatorData: parsed.Raw.AssertionResponse.AuthenticatorData,
		Signature: parsed.Raw.AssertionResponse.Signature}
	r, err := s.owned(ctx, c.Tenant, person, a.Credential)
	if err != nil {
		return wetink.Evidence{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	a.SPKI, a.Alg = r.SPKI, r.Alg
	if err := Check(a, c.ID, c.Statement.Digest(), c.Tenant, person); err != nil {
		return wetink.Evidence{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	data, err := json.Marshal(a)
	if err != nil {
		return wetink.Evidence{}, err
	}
	d := parsed.Response.AuthenticatorData
	s.counted(ctx, c.Tenant, person, r, d.Counter, d.Flags.HasBackupState())
	return wetink.Evidence{Kind: EvidenceKind, Digest: c.Statement.Digest(), By: person, Client: "page",
		Shown: shown.UTC().Round(0), Data: data}, nil
}

// owned is a passkey that is registered to that person for this site.
func (s *Service) owned(ctx context.Context, tenant wetink.Tenant, person wetink.Person, id []byte) (record, error) {
	t, p, b, err := s.records.PasskeyRecord(ctx, id)
	if err != nil {
		return record{}, fmt.Errorf("that passkey is not registered any more, or never was; approve it again: %w", err)
	}
	r, err := readRecord(b)
	if err != nil {
		return record{}, err
	}
	if t != tenant || p != person || r.RP != s.rp.ID || !bytes.Equal(r.ID, id) {
		return record{}, fmt.Errorf("that passkey is not registered to %s", person)
	}
	return r, nil
}

// Verifier turns stored evidence into level Passkey. The claim asks it, maybe in another process: it checks the
// signature from the stored bytes, and that the key is still registered to who signed.
func (s *Service) Verifier() wetink.Verifier { return verifier{s} }

type verifier struct{ s *Service }

// Verify implements wetink.Verifier.
func (v verifier) Verify(ctx context.Context, c wetink.Change, _ wetink.Terms, e wetink.Evidence) (wetink.Level, error) {
	digest := c.Statement.Digest()
	switch {
	case e.Kind != EvidenceKind:
		return wetink.Auto, fmt.Errorf("evidence of kind %q", e.Kind)
	case e.Digest != digest:
		return wetink.Auto, errors.New("the statement is not the one that was signed")
	case e.By == "" || e.Shown.IsZero():
		return wetink.Auto, errors.New("it does not say who signed, or when")
	}
	a, err := ParseAssertion(e.Data)
	if err != nil {
		return wetink.Auto, err
	}
	if a.RP != v.s.rp.ID || a.Origin != v.s.rp.Origin {
		return wetink.Auto, fmt.Errorf("it was signed at %s, and this is %s; approve it again", a.Origin, v.s.rp.Origin)
	}
	if err := Check(a, c.ID, digest, c.Tenant, e.By); err != nil {
		return wetink.Auto, err
	}
	r, err := v.s.owned(ctx, c.Tenant, e.By, a.Credential)
	if err != nil {
		return wetink.Auto, err
	}
	if !bytes.Equal(r.SPKI, a.SPKI) || r.Alg != a.Alg {
		return wetink.Auto, errors.New("it was signed with another key than the registered one")
	}
	return wetink.Passkey, nil
}

// Reach implements wetink.Verifier.
func (v verifier) Reach(ctx context.Context) wetink.Level {
	if any, err := v.s.records.AnyPasskey(ctx); err != nil || !any {
		return wetink.Auto // of this kind there is none
	}
	return wetink.Passkey
}

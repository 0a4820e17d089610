package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/passkey"
	"github.com/wetink/wetink/approval/passphrase"
	"github.com/wetink/wetink/approval/terminal"
	store "github.com/wetink/wetink/store/sqlite"
)

// people are those who may say yes on this machine, and how they prove it.
type people struct {
	*store.Store
	passphrases *passphrase.Service
	passkeys    *passkey.Service
	issuer      string // where they sign in, too; "": nowhere
}

// OpenPeople opens the one file of the home that knows of people, and makes it if there is none.
func (c Config) OpenPeople() (*people, error) {
	s, err := store.Open(filepath.Join(c.Home, "people.db"))
	if err != nil {
		return nil, fmt.Errorf("open the people of %s: %w", c.Home, err)
	}
	keys, err := passkey.New(s, passkey.RP{ID: c.Page.Hostname(), Origin: c.Page.String(), Name: "wetink"}, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: page.url: %w", ErrConfig, err), s.Close())
	}
	who := &people{s, passphrase.New(s, nil), keys, ""}
	if c.OIDC != nil {
		who.issuer = c.OIDC.client.Issuer
	}
	return who, nil
}

// verifiers are all that can check an approval here.
func (p *people) verifiers() map[string]wetink.Verifier {
	list := map[string]wetink.Verifier{
		wetink.EvidenceTerminal: terminal.Verifier(),
		wetink.EvidenceReauth:   page.Entitled(p, p.passphrases.Verifier()),
		passkey.EvidenceKind:    page.Entitled(p, p.passkeys.Verifier()),
		page.EvidenceSession:    page.Verifier(p),
	}
	if p.issuer != "" {
		list[wetink.EvidenceRelogin] = page.ReloginVerifier(p, p.issuer)
	}
	return list
}

// enrolled reports whether anybody can prove who they are.
func (p *people) enrolled(ctx context.Context) (bool, error) {
	phrase, err := p.AnyPassphrase(ctx)
	if err != nil || phrase {
		return phrase, err
	}
	if key, err := p.AnyPasskey(ctx); err != nil || key {
		return key, err
	}
	return p.AnyIdentity(ctx, p.issuer)
}

// known makes sure that the OS user is among the people: who owns the home decides in it.
func (p *people) known(ctx context.Context, id wetink.Person) error {
	err := p.AddPerson(ctx, page.Person{ID: id, Name: string(id), Approver: true, Admin: true, Created: time.Now()})
	if errors.Is(err, page.ErrTaken) {
		return nil
	}
	return err
}

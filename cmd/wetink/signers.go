package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

// PeopleCmd lists who may sign in, and removes somebody.
type PeopleCmd struct {
	Output
	Remove string `placeholder:"NAME" help:"Take somebody away: they are signed out, and approvals of theirs that were not used yet are void."`
	Yes    bool   `help:"With --remove: also the last one who can sign in."`
}

// signer is one of the people, and how they prove who they are.
type signer struct {
	Name       wetink.Person `json:"name"`
	Approver   bool          `json:"approver"`
	Admin      bool          `json:"admin"`
	Passphrase bool          `json:"passphrase"`
	Passkey    bool          `json:"passkey"`
	Issuer     bool          `json:"oidc"`
}

func (m signer) enrolled() bool { return m.Passphrase || m.Passkey || m.Issuer }

// Run implements the command.
func (c *PeopleCmd) Run(ctx context.Context) error {
	s, err := open(c.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	list, err := s.signers(ctx)
	switch {
	case err != nil:
		return err
	case c.Remove != "":
		return c.remove(ctx, s, list)
	case c.Yes:
		return usage{errors.New("--yes belongs to --remove")}
	case s.json:
		return s.printJSON(map[string]any{"people": list})
	case len(list) == 0:
		s.say("Nobody is known yet: run wetink setup.\n")
	}
	for _, m := range list {
		var is []string
		for word, holds := range map[string]bool{"approver": m.Approver, "admin": m.Admin, "passphrase": m.Passphrase, "passkey": m.Passkey, "signs in at the issuer": m.Issuer, "cannot sign in yet": !m.enrolled()} {
			if holds {
				is = append(is, word)
			}
		}
		slices.Sort(is)
		s.say("%s: %s\n", render.Line(string(m.Name)), strings.Join(is, ", "))
	}
	return nil
}

func (s *session) signers(ctx context.Context) ([]signer, error) {
	people, err := s.people.ListPeople(ctx, s.me.Tenant)
	list := make([]signer, 0, len(people))
	for _, p := range people {
		m := signer{Name: p.ID, Approver: p.Approver, Admin: p.Admin}
		// What cannot be trusted is one, too: whoever spoiled it must not look as if they had none.
		phrase, err := s.people.passphrases.Has(ctx, p.Tenant, p.ID)
		m.Passphrase = phrase || err != nil
		if m.Passkey, err = s.people.passkeys.Has(ctx, p.Tenant, p.ID); err != nil {
			return nil, err
		}
		if m.Issuer, err = s.people.HasIdentity(ctx, p.Tenant, p.ID, s.people.issuer); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, err
}

// remove takes somebody away. Without anybody who can sign in, what a change needs at least would fall by itself.
func (c *PeopleCmd) remove(ctx context.Context, s *session, list []signer) error {
	i := slices.IndexFunc(list, func(m signer) bool { return m.Name == wetink.Person(c.Remove) })
	if i < 0 {
		return usage{fmt.Errorf("%q is not among the people: look with wetink people", c.Remove)}
	}
	gone := list[i]
	if rest := slices.Delete(slices.Clone(list), i, i+1); gone.enrolled() && !slices.ContainsFunc(rest, signer.enrolled) && !c.Yes {
		then := "nobody could approve what needs more than " + called(wetink.Host) + " any more"
		if s.cfg.Approval == "" {
			then = "from the next preview on a change would need no more than somebody at a terminal: " + called(wetink.Host)
		}
		return usage{fmt.Errorf("%s is the last one who can sign in: without them %s. Nobody was removed; if that is what you want, say --yes", render.Line(c.Remove), then)}
	}
	p, err := s.people.Person(ctx, s.me.Tenant, gone.Name)
	if err != nil {
		return err
	}
	p.Removed = time.Now()
	if err := s.people.UpdatePerson(ctx, p); err != nil {
		return err
	}
	if s.json {
		return s.printJSON(map[string]any{"removed": gone.Name})
	}
	s.say("%s was removed. Approvals of theirs that were not used yet are void.\n", render.Line(c.Remove))
	return nil
}

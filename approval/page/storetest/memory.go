package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/internal/secret"
)

// Memory is a Store for tests. It passes Run.
type Memory struct {
	mu          sync.Mutex
	people      []page.Person
	sessions    []page.Session
	invitations []page.Invitation
	identities  []identity
	decisions   []decision
	bytes       []byte
}

type identity struct {
	tenant          wetink.Tenant
	person          wetink.Person
	issuer, subject string
}

type decision struct {
	tenant wetink.Tenant
	person wetink.Person
	yes    bool
	looked time.Duration
	at     time.Time
}

// NewMemory returns an empty one.
func NewMemory() *Memory {
	b := make([]byte, 32)
	rand.Read(b)
	return &Memory{bytes: b}
}

var _ page.Store = (*Memory)(nil)

// Secret implements page.Store.
func (m *Memory) Secret(context.Context) (secret.Bytes, error) { return secret.New(m.bytes), nil }

func (m *Memory) lock() func() { m.mu.Lock(); return m.mu.Unlock }

func (m *Memory) find(tenant wetink.Tenant, id wetink.Person) int {
	return slices.IndexFunc(m.people, func(p page.Person) bool { return p.Tenant == tenant && p.ID == id })
}

// Person implements page.People.
func (m *Memory) Person(_ context.Context, tenant wetink.Tenant, id wetink.Person) (page.Person, error) {
	defer m.lock()()
	if i := m.find(tenant, id); i >= 0 && m.people[i].Removed.IsZero() {
		return m.people[i], nil
	}
	return page.Person{}, fmt.Errorf("person: %w", page.ErrUnknown)
}

// AddPerson implements page.People.
func (m *Memory) AddPerson(_ context.Context, p page.Person) error {
	defer m.lock()()
	switch {
	case p.ID == "":
		return errors.New("a person needs a name")
	case m.find(p.Tenant, p.ID) >= 0:
		return page.ErrTaken
	}
	m.people = append(m.people, p)
	return nil
}

// UpdatePerson implements page.People.
func (m *Memory) UpdatePerson(_ context.Context, p page.Person) error {
	defer m.lock()()
	i := m.find(p.Tenant, p.ID)
	if i < 0 || !m.people[i].Removed.IsZero() {
		return page.ErrUnknown
	}
	p.Created = m.people[i].Created
	if m.people[i] = p; !p.Removed.IsZero() {
		m.sessions = slices.DeleteFunc(m.sessions, func(s page.Session) bool { return s.Tenant == p.Tenant && s.Person == p.ID })
		m.invitations = slices.DeleteFunc(m.invitations, func(i page.Invitation) bool { return i.Tenant == p.Tenant && i.Person == p.ID })
	}
	return nil
}

// ListPeople implements page.People.
func (m *Memory) ListPeople(_ context.Context, tenant wetink.Tenant) (list []page.Person, err error) {
	defer m.lock()()
	for _, p := range m.people {
		if p.Tenant == tenant && p.Removed.IsZero() {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b page.Person) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list, nil
}

// AnyPerson implements page.People.
func (m *Memory) AnyPerson(context.Context) (bool, error) {
	defer m.lock()()
	return slices.ContainsFunc(m.people, func(p page.Person) bool { return p.Removed.IsZero() }), nil
}

func (m *Memory) session(hash wetink.Digest) int {
	return slices.IndexFunc(m.sessions, func(s page.Session) bool { return s.Hash == hash })
}

// AddSession implements page.Sessions.
func (m *Memory) AddSession(_ context.Context, s page.Session) error {
	defer m.lock()()
	m.sessions = append(m.sessions, s)
	return nil
}

// Session implements page.Sessions.
func (m *Memory) Session(_ context.Context, hash wetink.Digest) (page.Session, error) {
	defer m.lock()()
	if i := m.session(hash); i >= 0 {
		return m.sessions[i], nil
	}
	return page.Session{}, page.ErrUnknown
}

// TouchSession implements page.Sessions.
func (m *Memory) TouchSession(_ context.Context, hash wetink.Digest, seen time.Time) error {
	defer m.lock()()
	if i := m.session(hash); i >= 0 && seen.After(m.sessions[i].Seen) {
		m.sessions[i].Seen = seen
	}
	return nil
}

// EndSession implements page.Sessions.
func (m *Memory) EndSession(_ context.Context, hash wetink.Digest) error {
	defer m.lock()()
	if i := m.session(hash); i >= 0 {
		m.sessions = slices.Delete(m.sessions, i, i+1)
	}
	return nil
}

// ListSessions implements page.Sessions.
func (m *Memory) ListSessions(_ context.Context, tenant wetink.Tenant, person wetink.Person) (list []page.Session, err error) {
	defer m.lock()()
	for _, s := range slices.Backward(m.sessions) {
		if s.Tenant == tenant && s.Person == person {
			list = append(list, s)
		}
	}
	return list, nil
}

// AddInvitation implements page.Invitations.
func (m *Memory) AddInvitation(_ context.Context, i page.Invitation) error {
	defer m.lock()()
	m.invitations = append(m.invitations, i)
	return nil
}

func (m *Memory) invitation(hash wetink.Digest, take bool) (page.Invitation, error) {
	defer m.lock()()
	i := slices.IndexFunc(m.invitations, func(i page.Invitation) bool { return i.Hash == hash })
	if i < 0 {
		return page.Invitation{}, page.ErrUnknown
	}
	found := m.invitations[i]
	if take {
		m.invitations = slices.Delete(m.invitations, i, i+1)
	}
	return found, nil
}

// Invitation implements page.Invitations.
func (m *Memory) Invitation(_ context.Context, hash wetink.Digest) (page.Invitation, error) {
	return m.invitation(hash, false)
}

// TakeInvitation implements page.Invitations.
func (m *Memory) TakeInvitation(_ context.Context, hash wetink.Digest) (page.Invitation, error) {
	return m.invitation(hash, true)
}

// Invitations lists those that are stored, for tests.
func (m *Memory) Invitations() []page.Invitation {
	defer m.lock()()
	return slices.Clone(m.invitations)
}

// SweepInvitations implements page.Invitations.
func (m *Memory) SweepInvitations(_ context.Context, now time.Time) error {
	defer m.lock()()
	m.invitations = slices.DeleteFunc(m.invitations, func(i page.Invitation) bool { return !now.Before(i.Expires) })
	return nil
}

// Identity implements page.Identities.
func (m *Memory) Identity(_ context.Context, tenant wetink.Tenant, issuer, subject string) (wetink.Person, error) {
	defer m.lock()()
	for _, i := range m.identities {
		if i.tenant == tenant && i.issuer == issuer && i.subject == subject {
			return i.person, nil
		}
	}
	return "", page.ErrUnknown
}

// AnyIdentity implements page.Identities.
func (m *Memory) AnyIdentity(_ context.Context, issuer string) (bool, error) {
	defer m.lock()()
	return slices.ContainsFunc(m.identities, func(i identity) bool {
		n := m.find(i.tenant, i.person)
		return i.issuer == issuer && n >= 0 && m.people[n].Removed.IsZero()
	}), nil
}

// BindIdentity implements page.Identities.
func (m *Memory) BindIdentity(_ context.Context, tenant wetink.Tenant, person wetink.Person, issuer, subject string) error {
	defer m.lock()()
	if i := m.find(tenant, person); i < 0 || !m.people[i].Removed.IsZero() {
		return page.ErrUnknown
	}
	n := identity{tenant, person, issuer, subject}
	switch {
	case issuer == "" || subject == "":
		return errors.New("an identity needs an issuer and a subject")
	case slices.Contains(m.identities, n):
		return nil
	case slices.ContainsFunc(m.identities, func(o identity) bool {
		return o.tenant == tenant && o.issuer == issuer && (o.subject == subject || o.person == person)
	}):
		return page.ErrTaken
	}
	m.identities = append(m.identities, n)
	return nil
}

// AddDecision implements page.Decisions.
func (m *Memory) AddDecision(_ context.Context, tenant wetink.Tenant, person wetink.Person, _ wetink.ChangeID, yes bool, looked time.Duration, at time.Time) error {
	defer m.lock()()
	m.decisions = append(m.decisions, decision{tenant, person, yes, looked, at})
	return nil
}

// Decisions implements page.Decisions.
func (m *Memory) Decisions(_ context.Context, tenant wetink.Tenant, person wetink.Person, since time.Time) (approved, total int, median time.Duration, err error) {
	defer m.lock()()
	var looked []time.Duration
	for _, d := range m.decisions {
		if d.tenant == tenant && d.person == person && !d.at.Before(since) {
			if total++; d.yes {
				approved++
			}
			looked = append(looked, d.looked)
		}
	}
	if slices.Sort(looked); total > 0 {
		median = looked[total/2]
	}
	return approved, total, median, nil
}

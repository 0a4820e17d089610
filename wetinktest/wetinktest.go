// Package wetinktest has what a test of a guarded tool needs: a ready engine on a ledger in memory, an
// outside system that can be made to misbehave at any call, and evidence of any level.
//
// Nothing here proves anything about people: never link it into a server.
package wetinktest

import (
	"context"
	"testing"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/memory"
)

// Kit is an engine with a ledger in memory and one Target, called "test", in write mode guarded.
type Kit struct {
	*wetink.Engine
	Ledger wetink.Ledger
	Target *Target
}

// New returns a Kit. Options may change anything but what New has to set; nil asks level Session of everything.
func New(t testing.TB, o *wetink.Options) *Kit {
	t.Helper()
	return On(NewLedger(), NewTarget(), o)
}

// NewLedger returns an empty ledger in memory.
func NewLedger() wetink.Ledger { return memory.New(nil) }

// On returns a Kit on a ledger and a target that other Kits may share, as another process would.
func On(l wetink.Ledger, target *Target, o *wetink.Options) *Kit {
	opt := wetink.Options{}
	if o != nil {
		opt = *o
	}
	if opt.Verifiers == nil {
		opt.Verifiers = map[string]wetink.Verifier{EvidenceKind: voucher{}}
	}
	if opt.Mode == wetink.ModeUnset {
		opt.Mode = wetink.ModeGuarded
	}
	targets := map[string]wetink.Target{}
	if target != nil {
		targets["test"] = target
	}
	return &Kit{wetink.New(l, targets, &opt), l, target}
}

// By is the caller of tests: known, and with every scope.
var By = wetink.Principal{Person: "ana", Client: "test"}

// EvidenceKind of Vouch.
const EvidenceKind = "vouched"

// Vouch is evidence that counts as level, for Kits only.
func Vouch(c wetink.Change, level wetink.Level, by wetink.Person) wetink.Evidence {
	return wetink.Evidence{Kind: EvidenceKind, Digest: c.Statement.Digest(), By: by, Data: []byte(level.String())}
}

type voucher struct{}

func (voucher) Verify(_ context.Context, _ wetink.Change, _ wetink.Terms, e wetink.Evidence) (l wetink.Level, err error) {
	err = l.UnmarshalText(e.Data)
	return l, err
}

func (voucher) Reach(context.Context) wetink.Level { return wetink.Passkey }

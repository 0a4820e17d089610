package wetink

import (
	"context"
	"time"
)

// Policy is asked twice: at preview for the Statement, and before the claim so that rules that became
// stricter win. It must be a pure function of its arguments and its rules.
type Policy interface {
	Decide(ctx context.Context, t Terms, before []Snapshot) (Decision, error)
}

// Decision is a Policy's answer.
type Decision struct {
	Deny    string // reason; "" allows
	Require Require
	TTL     time.Duration // 0: the engine's
	Cap     *Cap
	Day     string   // of the account, for Cap: YYYY-MM-DD; "": the UTC day of the ledger
	Why     []string // for the page, in order of weight
	Version string
}

// Cap counts claims; a claim that ends Failed gives its place back, one in doubt keeps it.
type Cap struct {
	Name string `json:"name"` // "publish"
	Max  int    `json:"max"`  // for one tenant, account and day
}

// Floor is the Policy that asks for the same level everywhere.
type Floor Require

// Decide implements Policy.
func (f Floor) Decide(context.Context, Terms, []Snapshot) (Decision, error) {
	return Decision{Require: Require(f), Version: "floor/" + f.Level.String()}, nil
}

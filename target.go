package wetink

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink/internal/strictjson"
)

// Account is a resolved identity ("i317…", a DID), never an alias and never a credential.
type Account string

// ErrNotApplied is a proof, not an opinion: nothing was sent, or the system said that it refused.
// Any other error of Execute leaves the outcome unknown.
var ErrNotApplied = errors.New("not applied")

// Target is one outside system. A Target may also be a [Judge], an [Undoer], a [Differ] and an [Explainer].
//
// Methods are called from several goroutines. Account, Prepare and Observe only read and may be repeated.
type Target interface {
	// Account asks who the present credentials belong to, and which version of the mapping from requests to
	// effects would execute. Asked before every claim: another account, or another version, is refused.
	Account(ctx context.Context) (acct Account, version string, err error)
	// Prepare normalises, reads and snapshots. It writes nothing and it may be called at any time.
	// What is wrong with the request is a *RequestError.
	Prepare(ctx context.Context, req Request) (Prepared, error)
	// Observe reads op's object now; a create is looked up by op.Key. An object that is not there is a
	// Snapshot with Absent set, not an error.
	Observe(ctx context.Context, acct Account, op Op) (Snapshot, error)
	// Execute sends op once, to acct, with op.IfMatch and op.Key, and never sends it again.
	// blobs are verified bytes.
	Execute(ctx context.Context, acct Account, op Op, blobs BlobReader) (Receipt, error)
}

// Judge is implemented by Targets that can tell what an observation means. Pure. Without it an
// unknown outcome stays in doubt until a person resolves it, and nothing is read back.
type Judge interface {
	// Judge compares now with what op would have made of before. The string is for people: what differs.
	Judge(op Op, before, now Snapshot) (Verdict, string)
	// Flight is the longest time a request of ours can still land after we stopped waiting.
	// Before it is over, seeing the old state proves nothing. 0: never; a person resolves.
	Flight() time.Duration
}

// Verdict of a Judge.
type Verdict string

const (
	AsApproved Verdict = "as_approved"
	Otherwise  Verdict = "otherwise" // ours landed, but not as approved
	Untouched  Verdict = "untouched" // the state from before
	Foreign    Verdict = "foreign"   // neither: somebody else wrote
	// Opaque: nothing that can be read tells what became of the Op: it is not the state from before, and what it should
	// be is not known; or nothing can be read at all. The system's answer is taken as its word; without one nothing is proved.
	Opaque Verdict = "opaque"
)

// Undoer plans the way back, from what was really done. The plan goes through Prepare like any request.
// It needs to know what an Op left: the Target is a Judge, too, so that it is read back, or Execute fills in
// Receipt.After.
type Undoer interface {
	// Invert returns the request that undoes ops, of which steps tell the outcome, and how far it can go.
	// It is pure. Only Ops that took effect are undone; the last is undone first.
	Invert(ops []Op, before []Snapshot, steps []Step) (Request, Promise, error)
	// Unmoved reports whether nobody else changed the object since we left it as after. Here, and only here,
	// a Target may ignore what its system recomputes by itself. The strings name what moved.
	Unmoved(after, now Snapshot) (bool, []string)
}

// Differ explains an Op to people field by field. Pure. Without it, Diff compares payload and snapshot.
type Differ interface {
	Diff(op Op, before Snapshot) []FieldChange
}

// Request is what was asked for, by whom. Args were read by strictjson and are kept as they came.
type Request struct {
	By   Principal       `json:"by"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// ToolUndo is the Tool of a Request that Invert made. No caller from outside can set it.
const ToolUndo = "undo"

// RequestError says which part of a request is wrong and how to mend it. Nothing was written.
type RequestError struct {
	Field  string // path in the arguments, such as event.start_date_local; "" for the whole
	Reason string
	Fix    string // the next step, in the imperative
}

func (e *RequestError) Error() string {
	s := e.Reason
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// Principal is who is at the other end of a call, as far as the transport proved it. It is checked again
// at the claim.
type Principal struct {
	Tenant Tenant   `json:"tenant"`
	Person Person   `json:"person"` // "" on stdio
	Client string   `json:"client"` // OAuth client id; on stdio the name the client claims
	Scopes []string `json:"scopes"` // nil on stdio: the operator's own process
}

// Scopes of a Principal.
const (
	ScopePrepare = "changes:prepare"
	ScopeApply   = "changes:apply" // apply and undo
)

// May reports whether the Principal holds the scope.
func (p Principal) May(scope string) bool { return p.Scopes == nil || slices.Contains(p.Scopes, scope) }

// Prepared is what Prepare found and would do.
type Prepared struct {
	Account   Account
	Ops       []Op       // Before is filled in by the engine
	Before    []Snapshot // one an Op
	Undo      Promise
	OnFailure OnFailure // zero: stop
	Warnings  []string
	Context   json.RawMessage // for the target's own Explain; compact, nil: none
}

// Snapshot is what was observed of one object.
type Snapshot struct {
	Object  string          `json:"object,omitempty"`
	Absent  bool            `json:"absent,omitempty"`
	Version string          `json:"version,omitempty"` // ETag, CID, updated: what IfMatch wants
	Body    json.RawMessage `json:"body,omitempty"`    // what the approval is bound to: everything received but what moves by itself
	At      time.Time       `json:"at,omitzero"`
}

// Digest binds an approval to the state. It covers object and Body, not Version and At: what a version
// number tells that the body does not is no change that a person could have seen. Zero: absent.
func (s Snapshot) Digest() Digest {
	if s.Absent {
		return Digest{}
	}
	h := sha256.New()
	fmt.Fprintf(h, "wetink/snapshot/v1\x00%d\x00%s\x00", len(s.Object), s.Object)
	h.Write(s.Body)
	return Digest(h.Sum(nil))
}

// Receipt is what the system answered to one Op.
type Receipt struct {
	Object string          `json:"object,omitempty"` // the id it gave
	After  Snapshot        `json:"after,omitzero"`   // what was read back
	Raw    json.RawMessage `json:"raw,omitempty"`
}

// BlobReader gives bytes by their digest.
type BlobReader interface {
	Blob(ctx context.Context, d Digest) ([]byte, error)
}

// verifiedBlobs never hands out bytes that are not the ones in the Statement.
type verifiedBlobs struct{ BlobReader }

func (v verifiedBlobs) Blob(ctx context.Context, d Digest) ([]byte, error) {
	if v.BlobReader == nil {
		return nil, fmt.Errorf("blob %s: no blob store: %w", d, ErrNotFound)
	}
	b, err := v.BlobReader.Blob(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", d, err)
	}
	if sha256.Sum256(b) != d {
		return nil, fmt.Errorf("blob %s: %w", d, ErrTampered)
	}
	return b, nil
}

// asRequestError turns what strictjson says of outside JSON into what a caller is told. A request that is too
// long as a whole is told which text makes it so.
func asRequestError(args []byte, err error) error {
	var je *strictjson.Error
	if !errors.As(err, &je) {
		return &RequestError{Reason: err.Error()}
	}
	re := &RequestError{Field: je.Path, Reason: je.Reason}
	if errors.Is(err, strictjson.ErrLimit) && je.Path == "" {
		re.Field = longest(args)
		re.Fix = "shorten it"
	}
	return re
}

// longest is the path of the longest text in an oversized request, "" if it is none.
func longest(args []byte) (path string) {
	var v any
	if len(args) > 16<<20 || json.Unmarshal(args, &v) != nil {
		return ""
	}
	most := 0
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case string:
			if len(v) > most {
				most, path = len(v), at
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s[%d]", at, i), e)
			}
		case map[string]any:
			for k, e := range v {
				walk(strings.TrimPrefix(at+"."+k, "."), e)
			}
		}
	}
	walk("", v)
	return path
}

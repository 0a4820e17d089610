// Package crashpoint lets a test kill the process at a named point, to look at what a crash there leaves behind.
//
// A point marks a moment between two effects whose order matters: [Here] does nothing in a normal build, where it is
// an empty function that the compiler removes. In a build with the tag crashpoint, the environment variable
// WETINK_CRASH=NAME:N sends SIGKILL to the process at the N-th hit (from 1) of the point NAME, counted over the whole
// process. SIGKILL runs no deferred function, closes no file and flushes nothing. It does keep what was written to
// the operating system's page cache, so it tests the order of effects and not what survives a loss of power.
//
// A name that is not in the table ends such a process at start with status 2, so that a renamed point cannot turn a
// crash test into one that passes without a crash. For the same reason a crash test must check that its process
// was really ended by SIGKILL.
package crashpoint

// Env is the environment variable that arms one point: NAME:N.
const Env = "WETINK_CRASH"

// Point is a place in the life of a Change where a crash has a meaning of its own.
type Point int

// "Before" is just before the commit (or the send), with nothing of it durable; "after" is just after it,
// before the next effect and before anybody was told.
const (
	BeforePreview Point = iota
	AfterPreview
	BeforeApprove
	AfterApprove
	BeforeClaim
	AfterClaim
	BeforeSend
	AfterSend // the answer is here, its Step is not recorded
	BeforeStep
	AfterStep
	BeforeSettle
	AfterSettle
	BeforeBornUndo // a settle that also creates the undo that the Terms ordered on failure
	AfterBornUndo

	points int = iota
)

// names is the one table: what WETINK_CRASH may say.
var names = [points]string{
	BeforePreview:  "before-preview",
	AfterPreview:   "after-preview",
	BeforeApprove:  "before-approve",
	AfterApprove:   "after-approve",
	BeforeClaim:    "before-claim",
	AfterClaim:     "after-claim",
	BeforeSend:     "before-send",
	AfterSend:      "after-send",
	BeforeStep:     "before-step",
	AfterStep:      "after-step",
	BeforeSettle:   "before-settle",
	AfterSettle:    "after-settle",
	BeforeBornUndo: "before-born-undo",
	AfterBornUndo:  "after-born-undo",
}

// String is the name that WETINK_CRASH knows the point by.
func (p Point) String() string { return names[p] }

// All lists every point in the order of a Change's life, so that a crash test can leave none out.
func All() []Point {
	all := make([]Point, points)
	for i := range all {
		all[i] = Point(i)
	}
	return all
}

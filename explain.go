package wetink

import "context"

// Explainer is implemented by Targets that can say what their payloads mean, so that a person need not read
// JSON. Pure: all it tells follows from the Statement and the Snapshots that it binds, so that any process can
// show a Change, also one without credentials.
//
// A changed field without a Meaning is uninspectable: it is shown as such, and the change then needs level
// Reauth at least. A Target that is no Explainer has generic fields, which are read as they stand.
type Explainer interface {
	Explain(t Terms, before []Snapshot) Explanation
}

// Explanation is what a Target tells people about a Change besides its diff. It is data: package render makes
// text and pictures of it, and reveals what hides in it.
type Explanation struct {
	Noun   string          // what one object is called, such as "session"; "": object. An Op may have its own
	Zone   string          // IANA name of the account's time zone; "": times have their own
	Owner  string          // whose account it is, in words; "": the account's id says it
	Ops    []OpExplanation // one an Op
	Around []Entry         // what else stands in the days concerned
	Hidden int             // how many more stand there, too many to list
}

// OpExplanation explains one Op.
type OpExplanation struct {
	Noun   string             // "": the Explanation's
	Verb   string             // the outcome in a word or two, such as "move and shorten"; "": the Op's action
	Name   string             // of the object, as people know it
	Fields map[string]Meaning // by FieldChange.Field
	Was    *Entry             // where it stood in a calendar, and will stand
	Will   *Entry
	Shape  [2]*Profile // of a workout, before and after
	Post   *Post       // as it will appear
	Call   string      // method and path, for the exact call; "" if the target has none
	Type   string      // what a person has to type before they approve; "": what the page asks by itself
}

// Meaning says how the values of a field are read.
type Meaning struct {
	Label string // "Starts"; "": the field's name
	Kind  Kind
	Unit  string // of a Number, such as "W"
	Note  string // what else a person should know of this very change, such as "1 day later, same time"
}

// Kind of a value.
type Kind string

const (
	Plain    Kind = ""         // one line of text, a choice, a list: as it stands
	Prose    Kind = "prose"    // several lines of text: shown as a line diff
	Moment   Kind = "moment"   // RFC 3339, or without a zone: then in the Explanation's
	Day      Kind = "day"      // YYYY-MM-DD
	Seconds  Kind = "seconds"  // a length of time
	Metres   Kind = "metres"   // a distance
	Number   Kind = "number"   // with Unit
	Flag     Kind = "flag"     // yes or no
	Link     Kind = "link"     // a URL: its host is what counts
	Markdown Kind = "markdown" // shown as a line diff, never rendered
)

// Entry is something that stands in a calendar.
type Entry struct {
	Day   string // YYYY-MM-DD
	Start string // HH:MM; "": the whole day
	Short string // one word
	Name  string
}

// Profile is the shape of a workout.
type Profile struct {
	Segments []Segment
	Load     int    // training load; 0: unknown
	Estimate bool   // the load is ours, and rough
	Scale    string // what height 1 is, such as "100 % FTP, 250 W"
	Says     string // all of it in one sentence
	Ignored  []string
}

// Segment of a Profile: from one height to another, 1 being threshold.
type Segment struct {
	Seconds  float64
	From, To float64
}

// Post is a text for others to read, as it will appear.
type Post struct {
	Author, Handle string
	Text           string
	Spans          []Span // in order, not overlapping
	Lang           []string
	Card           *Card
	Images         []Image
	Audience       string // who can read it, in words
	Warning        string // content warning, shown before the text
	Replies, Quote string // to what, in words; "": nothing
	Count, Limit   int    // in the network's own units
	Unit           string // "characters"
	Bytes          int
}

// Span is a piece of a Post's text that does something: offsets in bytes.
type Span struct {
	From, To int
	URL      string // link; for a mention what it resolves to
	Kind     string // link, mention, tag
}

// Card is the preview of a link. Without Title it is unknown what the network will draw.
type Card struct{ URL, Title, Description string }

// Image of a Post.
type Image struct {
	Digest Digest
	Alt    string
	Type   string
	Size   int64
}

// uninspectable are the changed fields that the target cannot explain, as "field of operation".
func uninspectable(target Target, t Terms, before []Snapshot) []string {
	ex, ok := target.(Explainer)
	if !ok {
		return nil
	}
	diff := Diff
	if d, ok := target.(Differ); ok {
		diff = d.Diff
	}
	e := ex.Explain(t, before)
	var found []string
	for i, op := range t.Ops {
		for _, f := range diff(op, before[i]) {
			if i >= len(e.Ops) {
				found = append(found, f.Field)
			} else if _, known := e.Ops[i].Fields[f.Field]; !known {
				found = append(found, f.Field)
			}
		}
	}
	return found
}

// decide asks the policy, and adds what no rule can lower: what nobody could explain to the person needs more
// than a session.
func (e *Engine) decide(ctx context.Context, target Target, t Terms, before []Snapshot) (Decision, error) {
	d, err := e.opt.Policy.Decide(ctx, t, before)
	if err != nil || d.Deny != "" {
		return d, err
	}
	if len(uninspectable(target, t, before)) > 0 {
		d.Require = Stricter(d.Require, Require{Level: Reauth, People: 1})
	}
	return d, nil
}

package wetink_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/memory"
	"github.com/wetink/wetink/wetinktest"
)

// docs/model/change.pml is the machine as Spin checks it, exhaustively. These tests hold the code against it: the
// table, and the lives that the model tells (docs/model/traces.txt), each lived again by real engines.

var birth = wetink.Status("")

// edges of the table, by their ends.
type edge struct{ from, to wetink.Status }

func table() map[edge]bool {
	out := map[edge]bool{}
	for _, from := range append(wetink.Statuses(), birth) {
		for _, to := range append(wetink.Statuses(), birth) {
			if wetink.CanMove(from, to) {
				out[edge{from, to}] = true
			}
		}
	}
	return out
}

func wantTable(t *testing.T, got map[edge]bool) {
	t.Helper()
	want := table()
	for e := range want {
		if !got[e] {
			t.Errorf("lacks %q to %q", e.from, e.to)
		}
	}
	for e := range got {
		if !want[e] {
			t.Errorf("has %q to %q, which CanMove refuses", e.from, e.to)
		}
	}
}

func readModel(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("docs/model/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func status(name string) wetink.Status {
	if name == "none" || name == "[*]" {
		return birth
	}
	return wetink.Status(name)
}

func TestSpinModelHasTheTable(t *testing.T) {
	got := map[edge]bool{}
	line := regexp.MustCompile(`\(f == (\w+) && \((.*?)\)\)`)
	for _, m := range line.FindAllStringSubmatch(readModel(t, "change.pml"), -1) {
		for _, to := range strings.Split(m[2], " || ") {
			got[edge{status(m[1]), status(strings.TrimPrefix(to, "t == "))}] = true
		}
	}
	wantTable(t, got)
}

func TestDrawingHasTheTable(t *testing.T) {
	got := map[edge]bool{}
	ends := map[wetink.Status]bool{}
	for line := range strings.Lines(readModel(t, "states.mmd")) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " --> ")
		if !ok {
			continue
		}
		if to, _, _ = strings.Cut(to, ":"); to == "[*]" {
			ends[status(from)] = true
			continue
		}
		got[edge{status(from), status(to)}] = true
	}
	wantTable(t, got)
	for _, s := range wetink.Statuses() {
		leaves := slices.ContainsFunc(wetink.Statuses(), func(to wetink.Status) bool { return wetink.CanMove(s, to) })
		if leaves == ends[s] {
			t.Errorf("%s: drawn as an end: %t, can be left: %t", s, ends[s], leaves)
		}
	}
}

// trace is one line of traces.txt.
type trace struct {
	name    string
	kind    string // honest, liar (the flight is longer than declared, and a person guesses) or seeded
	liar    bool
	ops     int
	level   string
	sight   bool
	ordered bool
	acts    []act
	end     [2]wetink.Status
	effects [3]int
}

// act is what somebody did, and the moves that it made of each change. A move that keeps the status is left out:
// how many there are is not the model's business.
type act struct {
	text  string
	who   string
	verb  string
	words []string
	moves [2][]edge
}

func (a act) word(i int) string {
	if i < len(a.words) {
		return a.words[i]
	}
	return ""
}

func (a act) num(i int) int {
	n, err := strconv.Atoi(a.word(i))
	if err != nil {
		panic(fmt.Sprintf("traces.txt: %q: %v", a.text, err))
	}
	return n
}

var isMove = regexp.MustCompile(`^([01]):(\w+)>(\w+)$`)

func parseTrace(t *testing.T, line string) trace {
	t.Helper()
	parts := strings.Split(line, "; ")
	if len(parts) < 3 {
		t.Fatalf("traces.txt: %q", line)
	}
	tr := trace{name: parts[0], liar: strings.Contains(parts[0], "liar")}
	tr.kind, _, _ = strings.Cut(tr.name, " ")
	for _, f := range strings.Fields(parts[1])[1:] {
		k, v, _ := strings.Cut(f, "=")
		switch k {
		case "ops":
			tr.ops, _ = strconv.Atoi(v)
		case "level":
			tr.level = v
		case "sight":
			tr.sight = v == "1"
		case "ordered":
			tr.ordered = v == "1"
		default:
			t.Fatalf("traces.txt: %q", f)
		}
	}
	for _, text := range parts[2 : len(parts)-1] {
		f := strings.Fields(text)
		a := act{text: text}
		a.who, a.verb, _ = strings.Cut(f[0], ".")
		for _, w := range f[1:] {
			if m := isMove.FindStringSubmatch(w); m == nil {
				a.words = append(a.words, w)
			} else if m[2] != m[3] {
				c := int(m[1][0] - '0')
				a.moves[c] = append(a.moves[c], edge{status(m[2]), status(m[3])})
			}
		}
		tr.acts = append(tr.acts, a)
	}
	end := strings.Fields(parts[len(parts)-1])
	if len(end) != 6 || end[0] != "=" {
		t.Fatalf("traces.txt: end of %q", line)
	}
	tr.end = [2]wetink.Status{status(end[1]), status(end[2])}
	for i := range tr.effects {
		tr.effects[i], _ = strconv.Atoi(end[3+i])
	}
	return tr
}

func traces(t *testing.T) (out []trace) {
	t.Helper()
	for line := range strings.Lines(readModel(t, "traces.txt")) {
		out = append(out, parseTrace(t, strings.TrimSpace(line)))
	}
	return out
}

// Every life that the model tells is lived by the engine with the same moves after every step and the same effects
// at the end; and together they go over every line of the table.
func TestEngineLivesAsTheSpinModelTells(t *testing.T) {
	seen := map[edge]bool{}
	n := 0
	for _, tr := range traces(t) {
		if tr.kind == "seeded" {
			continue
		}
		n++
		t.Run(tr.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tr, true)
				defer w.stop()
				w.live()
				w.wantEnd()
				maps.Copy(seen, w.edges)
			})
		})
	}
	if n < 200 {
		t.Errorf("only %d traces", n)
	}
	for e := range table() {
		if !seen[e] {
			t.Errorf("no trace goes from %q to %q", e.from, e.to)
		}
	}
}

// The counterexample of every seeded bug is tried on the engine: it does as much of it as it lets happen, and comes
// out with a true record.
func TestEngineHasNoneOfTheSeededBugs(t *testing.T) {
	found := map[string]bool{}
	for _, tr := range traces(t) {
		if tr.kind != "seeded" {
			continue
		}
		found[strings.Fields(tr.name)[1]] = true
		t.Run(tr.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tr, false)
				defer w.stop()
				w.live()
				w.finish()
				w.wantTruth()
			})
		})
	}
	for line := range strings.Lines(readModel(t, "seeded.txt")) {
		if name := strings.Fields(line)[0]; !found[name] {
			t.Errorf("no counterexample of %s", name)
		}
	}
}

// Times of the world. A flight is short beside a lease, so that an older claim's flight is over before a younger
// claim's lease runs down; reading back takes seconds and is short beside both.
const (
	modelLease  = time.Hour
	modelFlight = 10 * time.Minute
)

// world is what a trace plays in: one ledger, one outside system, and processes that stop at every point where the
// model lets something else happen first.
type world struct {
	t       *testing.T
	tr      trace
	strict  bool // the engine has to follow; else what it does not let happen is left out
	ledger  wetink.Ledger
	target  *wetinktest.Target
	options *wetink.Options
	desk    *wetinktest.Kit // where people sit
	evRead  int64
	edges   map[edge]bool
	ids     [2]wetink.ChangeID
	ticket  wetink.Evidence
	running map[string]*process
	wire    map[[2]int]func() // requests on their way, by change and op
	cancel  context.CancelFunc
	ctx     context.Context
}

func newWorld(t *testing.T, tr trace, strict bool) *world {
	level := wetink.Floor{Level: wetink.Session, People: 1}
	switch tr.level {
	case "agent":
		level.Level = wetink.Agent
	case "two":
		level.People = 2
	}
	w := &world{t: t, tr: tr, strict: strict, ledger: memory.New(nil), target: wetinktest.NewTarget(),
		options: &wetink.Options{Policy: level, TTL: 24 * time.Hour, Start: 24 * time.Hour, Lease: modelLease, Sweep: time.Minute},
		running: map[string]*process{}, wire: map[[2]int]func(){}, edges: map[edge]bool{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.target.SetPromise(wetink.Promise{Extent: wetink.FullUndo, Until: 10000 * time.Hour})
	w.target.SetFlight(0)
	if tr.sight {
		w.target.SetFlight(modelFlight)
	}
	w.desk = wetinktest.On(w.ledger, w.target, w.options)
	onFailure, more := "stop", ""
	if tr.ordered {
		onFailure = "undo"
	}
	if tr.ops == 2 {
		more = `,{"action":"create","object":"1","set":{"n":1}}`
	}
	c, ticket := preview(t, w.desk, `{"on_failure":"`+onFailure+`","ops":[{"action":"create","object":"0","set":{"n":1}}`+more+`]}`)
	w.ids[0], w.ticket = c.ID, ticket
	if moves := w.moves(); !slices.Equal(moves[0], []edge{{birth, wetink.Pending}}) {
		t.Fatalf("birth: %v", moves)
	}
	return w
}

func (w *world) row(c int) wetink.Change { return get(w.t, w.desk, w.ids[c]) }

// moves returns what moved since it was asked last.
func (w *world) moves() (out [2][]edge) {
	for e, err := range w.ledger.Events(w.ctx, w.evRead, false) {
		if err != nil {
			w.t.Fatal(err)
		}
		w.evRead = e.Seq
		if e.Kind == wetink.KindOrdered {
			w.ids[1] = e.Change
		}
		c := slices.Index(w.ids[:], e.Change)
		if e.Change == "" || c < 0 {
			continue // the switch, or the change that replaces this one
		}
		w.edges[edge{e.From, e.To}] = true
		if e.From != e.To {
			out[c] = append(out[c], edge{e.From, e.To})
		}
	}
	return out
}

func (w *world) live() {
	for i, a := range w.tr.acts {
		err := w.do(a)
		moved := w.moves()
		if !w.strict {
			continue
		}
		if err != nil {
			w.t.Fatalf("step %d, %s: %v", i, a.text, err)
		}
		for c := range moved {
			if !slices.Equal(moved[c], a.moves[c]) {
				w.t.Fatalf("step %d, %s: change %d moved %v, the model %v", i, a.text, c, moved[c], a.moves[c])
			}
		}
	}
}

// do returns an error when the engine is not where it could do that.
func (w *world) do(a act) error {
	defer synctest.Wait()
	switch a.who {
	case "A", "B":
		return w.process(a)
	case "net":
		return w.land([2]int{a.num(0), a.num(1)})
	case "clock":
		return w.clock(a)
	case "sweeper":
		return w.sweep(a)
	case "person":
		return w.person(a)
	case "switch":
		m := wetink.ModeGuarded
		if a.verb == "off" {
			m = wetink.ModeOff
		}
		return w.ledger.SetMode(w.ctx, m, "op")
	}
	return fmt.Errorf("nobody is called %s", a.who)
}

func (w *world) process(a act) error {
	if a.verb == "try" {
		c := a.num(0)
		if p := w.running[a.who]; p != nil && p.at != "" {
			return fmt.Errorf("it is at %s", p.at)
		}
		if w.ids[c] == "" {
			return errors.New("there is no such change")
		}
		p := w.start()
		w.running[a.who] = p
		var ev *wetink.Evidence
		if c == 0 && w.tr.level == "agent" {
			ev = &w.ticket
		}
		go func() { _, _, p.err = p.kit.Apply(w.ctx, by, w.ids[c], ev) }()
		synctest.Wait()
		if p.at != "claim" {
			return fmt.Errorf("it came to %q: %v", p.at, p.err)
		}
		return nil
	}
	p := w.running[a.who]
	switch {
	case a.verb == "crash" && (p == nil || p.at == ""):
		return errors.New("it is idle")
	case a.verb == "crash":
	case p == nil || p.at != a.verb:
		at := "idle"
		if p != nil {
			at = p.at
		}
		return fmt.Errorf("it is at %q", at)
	}
	order := a.word(0)
	if a.verb == "crash" {
		order = "crash"
	}
	if !w.strict && a.verb == "send" && order == "" && p.ended() {
		order = "ended"
	}
	p.orders <- order
	if a.verb == "readback" {
		time.Sleep(5 * time.Second)
	}
	return nil
}

func (w *world) land(key [2]int) error {
	request := w.wire[key]
	if request == nil {
		return errors.New("nothing is on the wire")
	}
	row := w.row(key[0])
	if !w.tr.liar && !w.now().Before(row.Claim.Lease.Add(modelFlight)) {
		return errors.New("it is longer on the way than a request can be")
	}
	delete(w.wire, key)
	request()
	return nil
}

func (w *world) now() time.Time {
	now, err := w.ledger.Now(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return now
}

func (w *world) clock(a act) error {
	c := a.num(0)
	if w.ids[c] == "" {
		return errors.New("there is no such change")
	}
	row := w.row(c)
	terms, err := row.Terms()
	if err != nil {
		return err
	}
	lease := row.Claim.Lease
	var until time.Time
	switch a.verb + a.word(1) {
	case "age1":
		until = terms.Expires
	case "age2":
		until = terms.StartBy
	case "lease1":
		until = lease.Add(-modelLease / 6)
	case "lease2":
		until = lease
	case "lease3":
		until = lease.Add(modelFlight)
	}
	if strings.HasPrefix(a.verb, "lease") && lease.IsZero() {
		return errors.New("nobody has claimed it")
	}
	if w.strict && !w.now().Before(until) {
		return fmt.Errorf("it is %s already", until)
	}
	time.Sleep(until.Add(time.Second).Sub(w.now()))
	return nil
}

func (w *world) sweep(a act) error {
	c := a.num(0)
	if w.ids[c] == "" {
		return errors.New("there is no such change")
	}
	if a.verb == "reconcile" {
		_, _, err := w.looker().Reconcile(w.ctx, by, w.ids[c])
		if errors.Is(err, errDead) {
			return nil
		}
		return err
	}
	// A process without targets expires and doubts, and starts and reconciles nothing.
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = wetinktest.On(w.ledger, nil, w.options).Run(ctx) }()
	synctest.Wait()
	stop()
	<-done
	return nil
}

func (w *world) person(a act) error {
	c := a.num(0)
	if w.ids[c] == "" {
		return errors.New("there is no such change")
	}
	id := w.ids[c]
	var err error
	switch a.verb {
	case "approve":
		row := w.row(c)
		_, err = w.desk.Approve(w.ctx, by, id, wetinktest.Vouch(row, wetink.Session, wetink.Person("p"+strconv.Itoa(len(row.Approvals)))))
	case "reject":
		_, err = w.desk.Reject(w.ctx, by, id, "no")
	case "replace":
		_, _, err = w.desk.Replace(w.ctx, by, id, nil)
	case "again":
		_, _, err = w.desk.Apply(w.ctx, by, id, &w.ticket)
	case "resolve":
		row := w.row(c)
		terms, bad := row.Terms()
		if bad != nil {
			return bad
		}
		var found []wetink.Step
		for _, op := range wetink.OpenOps(row, terms) {
			s := wetink.Step{Op: op, Outcome: wetink.NoEffect}
			if a.num(1+op) == 1 {
				s.Outcome = wetink.TookEffect
			}
			found = append(found, s)
		}
		_, _, err = w.looker().Resolve(w.ctx, by, id, found)
	}
	return err
}

func (w *world) effects() (n [3]int) {
	for _, e := range w.target.Journal() {
		switch {
		case e.Action == "delete":
			n[2]++
		case e.Object == "0":
			n[0]++
		default:
			n[1]++
		}
	}
	return n
}

func (w *world) wantEnd() {
	for c, want := range w.tr.end {
		switch {
		case want == birth && w.ids[c] != "":
			w.t.Errorf("change %d was born", c)
		case want != birth && w.ids[c] == "":
			w.t.Errorf("change %d was not born", c)
		case want != birth:
			wantStatus(w.t, w.row(c), want)
		}
	}
	if got := w.effects(); got != w.tr.effects {
		w.t.Errorf("effects %v, the model has %v", got, w.tr.effects)
	}
}

// finish lets everybody who is still there go on to the end, and all clocks run down.
func (w *world) finish() {
	for _, p := range w.running {
		for range 50 {
			if p.at == "" {
				break
			}
			switch p.at {
			case "answer":
				p.orders <- "lost"
			case "send":
				p.orders <- map[bool]string{true: "ended"}[p.ended()]
			default:
				p.orders <- ""
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
	}
	if err := w.ledger.SetMode(w.ctx, wetink.ModeGuarded, "op"); err != nil {
		w.t.Fatal(err)
	}
	run(w.t, w.desk)
	time.Sleep(100 * time.Hour)
	w.moves()
	// What only a person can tell, a person tells, who looked.
	for c, id := range w.ids {
		if id == "" || w.row(c).Status != wetink.InDoubt {
			continue
		}
		n := w.effects()
		words := []string{strconv.Itoa(c), strconv.Itoa(min(n[2*c], 1)), strconv.Itoa(min(n[1], 1))}
		if err := w.person(act{text: "resolve", verb: "resolve", words: words}); err != nil {
			w.t.Error(err)
		}
	}
}

// wantTruth asks that the record tells what the journal does.
func (w *world) wantTruth() {
	n := w.effects()
	if n[0] > 1 || n[1] > 1 || n[2] > 1 {
		w.t.Errorf("more than one effect of one operation: %v", n)
	}
	took, all := n[0]+n[1], w.tr.ops
	for c := range w.ids {
		if w.ids[c] == "" {
			continue
		}
		if c == 1 {
			took, all = n[2], 1
		}
		row := w.row(c)
		ok := took == 0 // for all that are not named: nothing was sent
		switch row.Status {
		case wetink.Applied:
			ok = took == all
		case wetink.Partial:
			ok = took > 0 && took < all
		case wetink.Applying, wetink.Approved, wetink.InDoubt:
			ok = false // it should have come to an end
		case wetink.Pending, wetink.Failed, wetink.Expired, wetink.Rejected, wetink.Superseded:
		}
		if !ok {
			w.t.Errorf("change %d is %s (%s) with %d of %d effects", c, row.Status, row.Why, took, all)
		}
	}
}

// stop kills what still runs.
func (w *world) stop() {
	for _, p := range w.running {
		p.dead.Store(true)
		if p.at != "" {
			p.orders <- "crash"
		}
	}
	w.cancel()
	time.Sleep(time.Minute)
}

// process is one call of Apply or Reconcile in a process of its own: an engine whose ledger and target stop at each
// of the model's points and wait for orders. After "crash" both fail for good, and nothing is sent.
type process struct {
	wetink.Ledger
	w      *world
	kit    *wetink.Engine
	orders chan string
	err    error // what Apply answered

	at        string // the point where it waits; "": nowhere
	stage     string // what it did last
	current   wetink.ChangeID
	claim     string // how its claim is to end
	mine      string // the id of its claim
	sending   context.Context
	more      int         // ops that are not sent yet
	yes, ever bool        // the last one was answered as done; one was, of those that it will read back
	renews    bool        // it reads the row next to renew its lease
	blind     bool        // its reads fail
	dead      atomic.Bool // read by engines that nobody waits for any more
	claimless bool        // it dies at a claim
}

var errDead = errors.New("this process is dead")

func (w *world) start() *process {
	p := &process{Ledger: w.ledger, w: w, orders: make(chan string), stage: "started"}
	o := *w.options
	o.Mode = wetink.ModeGuarded
	o.Verifiers = map[string]wetink.Verifier{wetinktest.EvidenceKind: vouched{}}
	p.kit = wetink.New(p, map[string]wetink.Target{"test": outside{w.target, p}}, &o)
	return p
}

// looker is a process that reconciles. Were there a clean-up to run after it, it dies before it claims that.
func (w *world) looker() *wetink.Engine {
	p := w.start()
	p.claimless, p.stage = true, ""
	return p.kit
}

// vouched believes what wetinktest.Vouch says.
type vouched struct{}

func (vouched) Verify(_ context.Context, _ wetink.Change, _ wetink.Terms, e wetink.Evidence) (l wetink.Level, err error) {
	err = l.UnmarshalText(e.Data)
	return l, err
}

func (vouched) Reach(context.Context) wetink.Level { return wetink.Passkey }

func (p *process) wait(at string) string {
	if p.dead.Load() {
		return "crash"
	}
	p.at = at
	order := <-p.orders
	p.at = ""
	if order == "crash" {
		p.dead.Store(true)
	}
	return order
}

func (p *process) ended() bool { return p.sending != nil && p.sending.Err() != nil }

func (p *process) Advance(ctx context.Context, moves ...wetink.Move) ([]wetink.Event, error) {
	if p.dead.Load() {
		return nil, errDead
	}
	i := slices.IndexFunc(moves, func(m wetink.Move) bool { return m.From == wetink.Approved && m.To == wetink.Applying })
	if i < 0 {
		ev, err := p.Ledger.Advance(ctx, moves...)
		switch {
		case err != nil:
		case slices.ContainsFunc(moves, func(m wetink.Move) bool { return m.From == birth }):
			p.stage = "born" // the clean-up comes next, and its claim is where to stop again
		case p.stage == "recorded" && (!p.yes || p.more == 0):
			p.readback()
		}
		return ev, err
	}
	terms, err := p.w.row(slices.Index(p.w.ids[:], moves[i].ID)).Terms()
	if err != nil {
		return nil, err
	}
	p.mine, p.current, p.more, p.yes, p.ever = moves[i].Claim.ID, moves[i].ID, len(terms.Ops), false, false
	if p.claim == "commit_lost" {
		p.stage = "asking"
		return nil, errLost
	}
	ev, err := p.Ledger.Advance(ctx, moves...)
	switch {
	case errors.Is(err, wetink.ErrConflict):
		p.dead.Store(true) // it would wait for the winner to end, and tell; the model has no use for that
		return nil, err
	case err != nil:
		return nil, err
	case p.claim == "answer_lost":
		p.stage = "asking"
		return nil, errLost
	}
	p.stage = "claimed"
	return ev, nil
}

// late reports whether the lease runs down, so that the engine renews it before it reads on, and sends no more.
func (p *process) late() bool {
	return p.w.row(slices.Index(p.w.ids[:], p.current)).Claim.Lease.Sub(p.w.now()) < modelLease/2
}

func (p *process) readback() {
	p.stage = "reading"
	p.blind = p.wait("readback") == "fails"
	p.renews = p.ever && p.late()
}

// Now is asked right before the claim, when all that can refuse it without the ledger has agreed; and right before
// a send.
func (p *process) Now(ctx context.Context) (time.Time, error) {
	switch {
	case p.stage == "started" || p.stage == "born":
		p.stage = ""
		if p.claimless {
			p.dead.Store(true)
		}
		if !p.dead.Load() {
			p.claim = p.wait("claim")
		}
	case p.stage == "checked" && p.late():
		p.readback()
	}
	if p.dead.Load() {
		return time.Time{}, errDead
	}
	return p.Ledger.Now(ctx)
}

func (p *process) Get(ctx context.Context, tenant wetink.Tenant, id wetink.ChangeID) (wetink.Change, error) {
	asked := p.stage == "asking"
	if id == p.current && !p.dead.Load() {
		p.stopAtGet()
	}
	if p.dead.Load() {
		return wetink.Change{}, errDead
	}
	c, err := p.Ledger.Get(ctx, tenant, id)
	switch {
	case asked && c.Claim.ID == p.mine:
		p.stage = "claimed"
	case id == p.current && p.stage == "recorded" && c.Status != wetink.Applying:
		p.stage, p.ever = "lost", p.yes
	}
	return c, err
}

func (p *process) stopAtGet() {
	switch p.stage {
	case "asking":
		p.wait("ask")
		p.stage = ""
	case "executed":
		p.wait("record")
		p.stage = "recorded"
	case "lost":
		p.readback()
		if p.renews { // in vain
			p.renews = false
			return
		}
		p.settle()
	case "reading", "unreadable":
		if p.renews {
			p.renews = false
			return
		}
		p.settle()
	case "settled":
		if p.w.row(slices.Index(p.w.ids[:], p.current)).Status == wetink.InDoubt {
			p.wait("look")
		}
		p.stage = ""
	}
}

func (p *process) settle() {
	p.wait("settle")
	p.blind, p.stage = false, "settled"
}

func (p *process) Mode(ctx context.Context) (wetink.Mode, error) {
	if p.stage == "observed" || p.stage == "recorded" {
		p.wait("check")
		p.stage = "checked"
	}
	if p.dead.Load() {
		return wetink.ModeOff, errDead
	}
	m, err := p.Ledger.Mode(ctx)
	if p.stage == "checked" && m == wetink.ModeOff {
		p.readback()
		if p.dead.Load() {
			return wetink.ModeOff, errDead
		}
	}
	return m, err
}

// outside is the outside system as one process reaches it.
type outside struct {
	*wetinktest.Target
	p *process
}

func (o outside) Observe(ctx context.Context, acct wetink.Account, op wetink.Op) (wetink.Snapshot, error) {
	if o.p.stage == "claimed" {
		o.p.stage = "observed"
		if o.p.wait("observe") == "fails" {
			o.p.stage = "unreadable"
			return wetink.Snapshot{}, errLost
		}
	}
	if o.p.dead.Load() || o.p.blind {
		return wetink.Snapshot{}, errDead
	}
	return o.Target.Observe(ctx, acct, op)
}

// Execute puts the request on the wire, where the world decides whether and when it lands, and waits for the answer
// that the world gives.
func (o outside) Execute(ctx context.Context, acct wetink.Account, op wetink.Op, blobs wetink.BlobReader) (wetink.Receipt, error) {
	p := o.p
	p.sending, p.yes = ctx, false
	p.more--
	order := p.wait("send")
	switch {
	case p.dead.Load():
		return wetink.Receipt{}, errDead
	case order == "ended", p.ended():
		if order != "ended" || !p.ended() {
			p.w.t.Errorf("ordered to send: %t; its context ended: %t", order == "", p.ended())
		}
		p.stage = "executed"
		return wetink.Receipt{}, errors.Join(context.DeadlineExceeded, errLost)
	}
	key := [2]int{slices.Index(p.w.ids[:], p.current), 0}
	if op.Object == "1" && key[0] == 0 {
		key[1] = 1
	}
	p.w.wire[key] = func() {
		if _, err := o.Target.Execute(context.WithoutCancel(ctx), acct, op, blobs); err != nil {
			p.w.t.Errorf("%s %s: %v", op.Action, op.Object, err)
		}
	}
	order = p.wait("answer")
	p.stage = "executed"
	switch {
	case p.dead.Load():
		return wetink.Receipt{}, errDead
	case order == "yes":
		p.yes, p.ever = true, true
		return wetink.Receipt{Object: op.Object}, nil
	case order == "no":
		delete(p.w.wire, key)
		return wetink.Receipt{}, fmt.Errorf("403: %w", wetink.ErrNotApplied)
	}
	return wetink.Receipt{}, errLost
}

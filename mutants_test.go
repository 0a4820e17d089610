//go:build mutants

package wetink_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is the code without one check. Each must be killed by the test that is there for that check: a
// security test that no mutant can fail shows nothing.
type mutant struct {
	file, from, to string // from stands exactly once in file
	pkg, run       string // the tests that must fail
}

var mutants = map[string]mutant{
	// What is executed is what was approved.
	"row and statement are not compared": {"change.go", "case t.Change != c.ID, t.Tenant != c.Tenant, t.Target != c.Target, t.Account != c.Account,\n\t\t!slices.Equal(t.Undoes, c.Undoes), t.Replaces != c.Replaces:", "case false:", ".", "TestARowEditedAfterApproval"},
	"snapshots are not compared":         {"change.go", "c.Before[i].Digest() != op.Before", "c.Before[i].Digest() != op.Before && false", ".", "TestARowEditedAfterApproval"},
	"snapshot digest without its object": {"target.go", "len(s.Object), s.Object)", "0, \"\")", ".", "TestARowEditedAfterApproval"},
	"payload need not be compact":        {"statement.go", "if !bytes.Equal(op.Payload, back.Ops[i].Payload) {", "if !bytes.Equal(op.Payload, back.Ops[i].Payload) && false {", ".", "TestPayloadSurvives"},
	"any version of a statement":         {"statement.go", "if t.V != 1 {", "if false {", ".", "TestStatementsThatWereTouched"},
	"evidence of another statement":      {"verify.go", "\tif ev.Digest != digest {\n\t\treturn Approval{}, fmt.Errorf(\"%w: what was shown", "\tif false {\n\t\treturn Approval{}, fmt.Errorf(\"%w: what was shown", ".", "TestApprovalOfAnotherStatement"},
	"stored approvals are believed":      {"execute.go", "again, err := e.verify(ctx, c, t, a.Evidence)", "again, err := a, error(nil)", ".", "TestARowEditedAfterApproval"},

	// Tickets.
	"any ticket opens":                 {"ticket.go", "subtle.ConstantTimeCompare(got[:], s.Hash[:]) == 1", "subtle.ConstantTimeCompare(got[:], s.Hash[:]) >= 0", ".", "TestWrongTicket"},
	"a ticket is not bound to change":  {"ticket.go", "s.Expires.UnixMilli(), id)\n\th.Write(d[:])", "s.Expires.UnixMilli(), \"\")", ".", "TestWrongTicket|TestTicketsAreBound"},
	"a ticket is not bound to verb":    {"ticket.go", "s.Verb, s.Delivered, s.Expires.UnixMilli(), id)", "\"\", s.Delivered, s.Expires.UnixMilli(), id)", ".", "TestTicketsAreBound"},
	"a ticket is not bound to its way": {"ticket.go", "s.Verb, s.Delivered, s.Expires.UnixMilli(), id)", "s.Verb, \"\", s.Expires.UnixMilli(), id)", ".", "TestTicketsAreBound"},
	"a ticket is not bound to its end": {"ticket.go", "s.Verb, s.Delivered, s.Expires.UnixMilli(), id)", "s.Verb, s.Delivered, 0, id)", ".", "TestTicketsAreBound"},
	"a ticket prints":                  {"ticket.go", "func (Ticket) Format(s fmt.State, _ rune)   { fmt.Fprint(s, \"[redacted]\") }", "func (t Ticket) Format(s fmt.State, _ rune) { fmt.Fprint(s, t.Reveal()) }", ".", "TestSecretsPrint"},
	"an undo ticket has no end":        {"undo.go", "m.Before = s.Expires", "_ = s.Expires", ".", "TestAnEditedRow"},
	"the older undo ticket lives":      {"undo.go", "m.Ticket, m.Due, m.Why = &sealed, c.Due, c.Why", "m.Due, m.Why = sealed.Expires, c.Why", ".", "TestApplySentAgain"},

	// Before the claim.
	"no expiry at approval":     {"verify.go", "m.Before, m.Due, m.Approval = t.Expires, due, &a", "m.Due, m.Approval = due, &a", ".", "TestExpiry|TestExpiredStays"},
	"no end of starting":        {"execute.go", "m.After, m.Before, m.Due = t.NotBefore, t.StartBy, s.claim.Lease", "m.After, m.Due = t.NotBefore, s.claim.Lease", ".", "TestApprovedButNeverStarted"},
	"writes off is not asked":   {"execute.go", "if m != ModeGuarded {", "if false {", ".", "TestWritesOff"},
	"account is not asked":      {"execute.go", "case acct != t.Account:", "case acct != t.Account && false:", ".", "TestAccountSwitched"},
	"mapping is not asked":      {"execute.go", "if version != t.Version {", "if version != t.Version && false {", ".", "TestUpgradedMapping"},
	"policy is not asked again": {"execute.go", "required := Stricter(t.Require, d.Require)", "required := t.Require", ".", "TestPolicyMadeStricter"},
	"a denial is ignored":       {"execute.go", "\tif d.Deny != \"\" {\n\t\treturn refuse", "\tif false {\n\t\treturn refuse", ".", "TestPolicyMadeStricter"},
	"a laxer policy lowers":     {"approval.go", "return Require{max(a.Level, b.Level)", "return Require{min(a.Level, b.Level)", ".", "TestPolicyMadeStricter"},
	"scopes are not asked":      {"target.go", "return p.Scopes == nil || slices.Contains(p.Scopes, scope)", "return p.Scopes == nil || slices.Contains(p.Scopes, scope) || true", ".", "TestScopes"},
	"presses count as people":   {"approval.go", "people[a.Evidence.By] = true", "people[Person(a.Evidence.By+Person(rune('a'+len(people))))] = true", ".", "TestFourEyes|TestTwoPeople"},
	"the requester counts":      {"approval.go", "r.Other && a.Evidence.By == t.Requester", "false", ".", "TestFourEyes|TestTwoPeople"},
	"a lower level is enough":   {"verify.go", "if a.Level < t.Require.Level {", "if false {", ".", "TestALaxerPolicy"},

	// The send.
	"stale is not looked at":            {"execute.go", "if now.Digest() != op.Before {", "if now.Digest() != op.Before && false {", ".", "TestApplyRefusesWhenTargetMoved"},
	"unreadable is taken for unchanged": {"execute.go", "return nil, fmt.Errorf(\"read %s again: %w\", op.Object, err)", "continue", ".", "TestUnreadable"},
	"the switch is read once":           {"execute.go", "if err := s.e.writable(ctx); err != nil {", "if err := s.e.writable(ctx); err != nil && i == 0 {", ".", "TestWritesOffInTheMiddle"},
	"no fence at the lease":             {"execute.go", "err != nil || !now.Before(s.claim.Lease) || !time.Now().Before(s.until)", "err != nil || now.IsZero()", ".", "TestOwnerThatWasTooSlow"},
	"a lost answer is a failure":        {"execute.go", "step.Outcome, step.Why = Unknown, \"the answer was lost: \"+err.Error()", "step.Outcome, step.Why = NoEffect, err.Error()", ".", "TestEachSendBroken"},
	"an answer is believed":             {"execute.go", "case verdict == Untouched:\n\t\tstep.Outcome", "case false:\n\t\tstep.Outcome", ".", "TestEachSendBroken"},
	"a late answer is ignored":          {"execute.go", "return ok && old.Outcome != s.Outcome && s.replaces(old) || !ok && s.Outcome != NoEffect", "return false && (ok && old.Outcome != s.Outcome)", ".", "TestLateReceipt"},
	"clean-up although switched off":    {"settle.go", "t.OnFailure == UndoOnFailure && e.writable(ctx) == nil &&", "t.OnFailure == UndoOnFailure &&", ".", "TestWritesOffInTheMiddle"},

	"a late effect is shown as undone":   {"change.go", "return c.effects() <= u.Effects", "return true", ".", "TestALateEffect"},
	"a failing clock is a recorded step": {"execute.go", "if list, err = decide(c); err != nil {\n\t\t\tcontinue", "if list, err = decide(c); err != nil {\n\t\t\treturn nil", ".", "TestNothingIsSentBeforeTheStep"},
	"only the own clock fences":          {"execute.go", "err != nil || !now.Before(s.claim.Lease) || !time.Now().Before(s.until)", "err != nil || now.IsZero() || !time.Now().Before(s.until)", ".", "TestNothingIsSentWhenTheLease"},

	// Afterwards.
	"not knowing replaces what was seen":    {"change.go", "return !old.seen() || old.Outcome == NoEffect", "return true", ".", "TestEngineHasNoneOfTheSeededBugs"},
	"what may be in flight is forgotten":    {"reconcile.go", "s.Why, seen = \"it may have been sent, and no effect of it is seen\", Snapshot{}", "continue", ".", "TestEngineHasNoneOfTheSeededBugs"},
	"it ends on an answer that nobody read": {"settle.go", "row.Status == InDoubt && judged && slices.ContainsFunc(row.Steps, Step.unread)", "row.Status == InDoubt && judged && false", ".", "TestEngineHasNoneOfTheSeededBugs|TestEngineLives"},
	"a stored hash approves":                {"verify.go", "if ev.Kind == EvidenceTicket && ev.Ticket.IsZero() {", "if false {", ".", "TestAStoredHash"},
	"an undo looks once":                    {"undo.go", "\tif _, err := e.wayBack(ctx, target, parents, by); err != nil {\n\t\treturn Change{}, none, err", "\tif _, err := e.wayBack(ctx, target, parents, by); err != nil && false {\n\t\treturn Change{}, none, err", ".", "TestUndoKeepsAnEdit"},
	"an undo ticket works again":            {"undo.go", "if ev != nil && live != nil && live.usedTicket(c) {", "if false {", ".", "TestAnUndoTicketIsUsedOnce"},
	"an answered effect never was":          {"reconcile.go", "case verdict == Untouched && answered:", "case verdict == Untouched && answered && !final:", ".", "TestAnAnsweredEffect"},
	"resolved before the lease is over":     {"reconcile.go", "if now.Before(c.Claim.Lease) {", "if now.Before(c.Claim.Lease) && false {", ".", "TestResolveIsRefused"},
	"somebody else's state is ours":         {"execute.go", "return step // without After", "// without After", ".", "TestCleanUpDoesNotOverwrite"},
	"old state proves at once":              {"reconcile.go", "final := judge.Flight() > 0 && !now.Before(landed)", "final := judge.Flight() > 0 || now.Before(landed)", ".", "TestOldStateProves|TestNoFlight"},
	"no flight is a short one":              {"reconcile.go", "final := judge.Flight() > 0 && ", "final := ", ".", "TestNoFlight"},
	"undo overwrites a later edit":          {"undo.go", "\n\tif same {\n\t\treturn now, nil, nil", "\n\tif same || fields != nil {\n\t\treturn now, nil, nil", ".", "TestUndoRefusesWhenTargetMoved"},

	// The ledger, and its clock.
	"the clock runs back":                            {"ledger/memory/memory.go", "wall.Before(floor) {", "false {", ".", "TestExpiredStays"},
	"revs are not compared":                          {"ledger/memory/memory.go", "row.Rev != m.Rev || row.Status != m.From", "row.Status != m.From", "./ledger/memory", "."},
	"a clean-up is undone":                           {"undo.go", "case c.ordered():", "case false:", ".", "TestACleanUpIsNotUndone"},
	"a used ticket undoes the redo":                  {"undo.go", "u, ticket, err := e.undo(ctx, by, []Change{c}, ev)", "top, _, _ := e.inEffect(ctx, c)\n\t\tu, ticket, err := e.undo(ctx, by, []Change{top}, ev)", ".", "TestAnUndoTicketDoesNotUndoARedo"},
	"passkey: no verification":                       {"approval/passkey/check.go", "case d[32]&userVerified == 0:", "case false:", "./approval/passkey", "TestASignatureMadeElsewhere"},
	"passkey: nobody there":                          {"approval/passkey/check.go", "case d[32]&userPresent == 0:", "case false:", "./approval/passkey", "TestASignatureMadeElsewhere"},
	"passkey: another site":                          {"approval/passkey/check.go", "case !bytes.Equal(d[:32], rp[:]):", "case false && rp[0] == 0:", "./approval/passkey", "TestASignatureMadeElsewhere"},
	"passkey: another type":                          {"approval/passkey/check.go", "case c.Type != \"webauthn.get\":", "case false:", "./approval/passkey", "TestASignatureMadeElsewhere"},
	"passkey: another challenge":                     {"approval/passkey/check.go", "case err != nil || !bytes.Equal(signed, challenge):", "case err != nil || signed == nil:", "./approval/passkey", "TestNothingOfTheEvidence|TestASignatureMadeElsewhere"},
	"passkey: another origin":                        {"approval/passkey/check.go", "case c.Origin != a.Origin:", "case false:", "./approval/passkey", "TestASignatureMadeElsewhere"},
	"passkey: in a frame":                            {"approval/passkey/check.go", "case c.CrossOrigin || c.TopOrigin != nil:", "case c.TopOrigin != nil:", "./approval/passkey", "TestASignatureMadeElsewhere"},
	"passkey: under a page":                          {"approval/passkey/check.go", "case c.CrossOrigin || c.TopOrigin != nil:", "case c.CrossOrigin:", "./approval/passkey", "TestASignatureMadeElsewhere"},
	"passkey: a member twice":                        {"approval/passkey/check.go", "if err := strictjson.Check(a.ClientData, strictjson.Default); err != nil {", "if err := error(nil); err != nil {", "./approval/passkey", "TestASignatureMadeElsewhere"},
	"passkey: no signature":                          {"approval/passkey/check.go", "\tif !ok {", "\tif !ok && false {", "./approval/passkey", "TestNothingOfTheEvidence"},
	"passkey: short nonce":                           {"approval/passkey/check.go", "if len(a.Nonce) != nonceSize {", "if len(a.Nonce) == 0 {", "./approval/passkey", "TestAShortNonce"},
	"passkey: another key":                           {"approval/passkey/approve.go", "if !bytes.Equal(r.SPKI, a.SPKI) || r.Alg != a.Alg {", "if r.Alg != a.Alg {", "./approval/passkey", "TestNothingOfTheEvidence"},
	"passkey: another person":                        {"approval/passkey/approve.go", "if t != tenant || p != person || r.RP", "if t != tenant || p == \"\" || r.RP", "./approval/passkey", "TestAPasskeyOfSomebodyElse"},
	"passkey: signed elsewhere":                      {"approval/passkey/approve.go", "if a.RP != v.s.rp.ID || a.Origin != v.s.rp.Origin {", "if a.RP != v.s.rp.ID {", "./approval/passkey", "TestWhatWasSignedAtAnother"},
	"passkey: used state":                            {"approval/passkey/service.go", "if _, again := s.used[st.Session.Challenge]; again {", "if false {", "./approval/passkey", "TestSignInTells"},
	"passkey: old state":                             {"approval/passkey/service.go", "if !now.Before(st.Ends) {", "if false {", "./approval/passkey", "TestSignInTells"},
	"page: another revision":                         {"approval/page/detail.go", "case f.Rev != c.Rev:", "case f.Rev < 0:", "./approval/page", "TestAFormIsGood"},
	"page: any form":                                 {"approval/page/keys.go", "|| !hmac.Equal(b[size:], p.formMAC(b[:size], purpose, session, c))", "", "./approval/page", "TestAFormIsGood"},
	"page: a form of any session":                    {"approval/page/keys.go", "[]byte(purpose), session[:], []byte(c.Tenant)", "[]byte(purpose), []byte(c.Tenant)", "./approval/page", "TestAFormIsGood"},
	"page: a form of any change":                     {"approval/page/keys.go", "session[:], []byte(c.Tenant), []byte(c.ID), d[:])", "session[:], []byte(c.Tenant), d[:0])", "./approval/page", "TestAFormIsGood"},
	"page: too early":                                {"approval/page/keys.go", "case age < arm:", "case age < 0:", "./approval/page", "TestAFormIsGood"},
	"page: too old":                                  {"approval/page/keys.go", "case age > p.opt.FormLife:", "case age < 0:", "./approval/page", "TestAFormIsGood"},
	"page: anybody sees":                             {"approval/page/page.go", "return t.Requester == who.ID", "return true", "./approval/page", "TestALinkCarriesNoPower"},
	"page: a guessed link":                           {"approval/page/keys.go", "return id, ok && hmac.Equal(", "return id, ok || hmac.Equal(", "./approval/page", "TestALinkCarriesNoPower"},
	"page: no session":                               {"approval/page/routes.go", "\t\t\tif r.needs == session {", "\t\t\tif r.needs == session && q.Method == \"GET\" {", "./approval/page", "TestALinkCarriesNoPower"},
	"page: any host":                                 {"approval/page/guard.go", "if !strings.EqualFold(r.Host, p.origin.Host) || ", "if ", "./approval/page", "TestNothingButOurOwnPages"},
	"page: absolute form":                            {"approval/page/guard.go", " || r.URL.Host != \"\" && !strings.EqualFold(r.URL.Host, p.origin.Host) {", " {", "./approval/page", "TestNothingButOurOwnPages"},
	"page: no origin at all":                         {"approval/page/guard.go", "case origin == \"\" && site == \"\", ", "case ", "./approval/page", "TestNothingButOurOwnPages"},
	"page: prefetched":                               {"approval/page/guard.go", "} else if isPrefetch(r) {", "} else if false {", "./approval/page", "TestNothingButOurOwnPages"},
	"page: framed":                                   {"approval/page/guard.go", "frame-ancestors 'none'\"", "frame-ancestors 'self'\"", "./approval/page", "TestEveryAnswerForbids"},
	"page: a session without end":                    {"approval/page/session.go", "if !now.Before(s.Expires) || now.Sub(s.Seen) >= p.opt.SessionIdle {", "if now.Sub(s.Seen) >= p.opt.SessionIdle {", "./approval/page", "TestASessionEnds"},
	"page: an idle session":                          {"approval/page/session.go", "if !now.Before(s.Expires) || now.Sub(s.Seen) >= p.opt.SessionIdle {", "if !now.Before(s.Expires) {", "./approval/page", "TestASessionEnds"},
	"page: sent elsewhere":                           {"approval/page/session.go", "return u.EscapedPath()", "return u.Path", "./approval/page", "TestSigningInLeads"},
	"page: an old invitation":                        {"approval/page/signin.go", "if !p.opt.Now().Before(i.Expires) {", "if false {", "./approval/page", "TestAnInvitation"},
	"page: no budget":                                {"approval/page/detail.go", "if yes >= p.opt.Budget {", "if false {", "./approval/page", "TestTheHoursBudget"},
	"page: nothing typed":                            {"approval/page/detail.go", "want != \"\" && strings", "false && strings", "./approval/page", "TestWhatDoesNotComeBack"},
	"page: a part is approved":                       {"approval/page/detail.go", "if keep, changed := kept(r, len(t.Ops)); changed {", "if keep, _ := kept(r, len(t.Ops)); false {", "./approval/page", "TestLeavingRowsOut"},
	"page: any MAC":                                  {"approval/page/evidence.go", "if !hmac.Equal(e.Data[size:], sessionMAC(", "if hmac.Equal(nil, sessionMAC(", "./approval/page", "TestEvidenceOfASession"},
	"page: an old session changes proofs":            {"approval/page/signin.go", "(do == \"add\" || do == \"remove\") && !fresh", "do == \"\" && !fresh", "./approval/page", "TestAnOpenBrowser"},
	"page: any settings form":                        {"approval/page/signin.go", "if _, err := p.unseal(r.FormValue(\"form\"), \"settings\", v.session.Hash, wetink.Change{}, 0); err != nil {", "if _, err := p.unseal(r.FormValue(\"form\"), \"settings\", v.session.Hash, wetink.Change{}, 0); err == errSoon {", "./approval/page", "TestAnOpenBrowser"},
	"page: another's session ends":                   {"approval/page/signin.go", "if err != nil || s.Tenant != v.person.Tenant || s.Person != v.person.ID {", "if err != nil || s.Tenant != v.person.Tenant {", "./approval/page", "TestOnlyOnesOwn"},
	"page: a cookie without https":                   {"approval/page/session.go", "\t\tSecure: p.origin.Scheme == \"https\", Expires", "\t\tSecure: false, Expires", "./approval/page", "TestOnHTTPS"},
	"page: a body of any size":                       {"approval/page/guard.go", "r.Body = http.MaxBytesReader(w, r.Body, maxForm)", "_ = maxForm", "./approval/page", "TestABody"},
	"page: a stream for all":                         {"approval/page/lists.go", "if err != nil || !may(v.person, c) {\n\t\t\tcontinue", "if err != nil {\n\t\t\tcontinue", "./approval/page", "TestALivePage"},
	"page: a stream goes on":                         {"approval/page/lists.go", "if _, _, ok := p.signedIn(r); !ok {", "if _, _, ok := p.signedIn(r); !ok && false {", "./approval/page", "TestALivePage"},
	"page: any number of streams":                    {"approval/page/lists.go", "\tif n > maxStreams {", "\tif n > maxStreams*100 {", "./approval/page", "TestABrowserHasEight"},
	"page: an approver no more":                      {"approval/page/evidence.go", "\tif !may(who, c) {", "\tif !may(who, c) && false {", "./approval/page", "TestWhoMayNot"},
	"page: the requester is asked":                   {"approval/page/detail.go", "if t.Require.Other && t.Requester == v.person.ID {", "if false {", "./approval/page", "TestTwoPeople"},
	"two changes of one object are undone together":  {"undo.go", "twice && older != c.ID && now", "twice && older == c.ID && now", ".", "TestAnUndoOfSeveralIsWholeOrRefused"},
	"several are undone on different accounts":       {"undo.go", "case c.Target != parents[0].Target || c.Account != parents[0].Account:", "case false:", ".", "TestAnUndoOfSeveralIsWholeOrRefused"},
	"page: somebody else's change is chosen":         {"approval/page/detail.go", "ok = err == nil && may(v.person, c)", "ok = err == nil && c.ID != \"\"", "./approval/page", "TestChosenChanges"},
	"page: the form of the history is not asked for": {"approval/page/detail.go", `if _, err := p.unseal(r.FormValue("form"), "undo", v.session.Hash, wetink.Change{}, 0); err != nil {`, "if false {\n\t\tvar err error", "./approval/page", "TestChosenChanges"},
	"two undos live":                                 {"ledger/memory/memory.go", "s.undos[key{m.Tenant, u.Change}] > 0 {", "s.undos[key{m.Tenant, u.Change}] > 9 {", ".", "TestOneUndoLives"},
	"tenants share ids":                              {"ledger/memory/memory.go", "c, ok := l.state.rows[key{tenant, id}]", "c, ok := l.state.rows[key{\"\", id}]", ".", "TestAnotherTenant"},
	"page: an update approves":                       {"approval/page/detail.go", "if r.FormValue(\"update\") != \"\" {", "if r.FormValue(\"update\") == \"2\" {", "./approval/page", "TestLeavingRowsOut"},
	"page: a list begins anew":                       {"approval/page/lists.go", "p.ledger.Events(r.Context(), resume(r), true)", "p.ledger.Events(r.Context(), max(wetink.Newest, 0*resume(r)-1), true)", "./approval/page", "TestALiveListMisses"},
	"page: a list hears what it shows":               {"approval/page/lists.go", "d.After = strconv.FormatInt(head, 10)", "d.After = strconv.FormatInt(head-1, 10)", "./approval/page", "TestALiveListMisses"},
	"page: who was removed":                          {"approval/page/evidence.go", "\tif err != nil {\n\t\treturn wetink.Auto, fmt.Errorf(\"%s: %w; somebody", "\tif who.ID = e.By; err != nil && false {\n\t\treturn wetink.Auto, fmt.Errorf(\"%s: %w; somebody", "./approval/page", "TestAnApprovalIsVoid|TestEvidenceOfASession"},
	"page: the only way in":                          {"approval/page/signin.go", "if err != nil || !phrase {", "if err != nil || !phrase && false {", "./approval/page", "TestTheOnlyWayIn"},
	"page: old invitations stay":                     {"approval/page/signin.go", "if err := s.SweepInvitations(ctx, now); err != nil {", "if err := ctx.Err(); err != nil {", "./approval/page", "TestInvitationsThatNobody"},
	"page: sign-out by anybody":                      {"approval/page/guard.go", "origin != \"\" && origin != p.origin.String(), site", "origin != \"\" && origin != p.origin.String() && r.URL.Path != \"/signout\", site", "./approval/page", "TestNothingButOurOwnPages"},

	// The gateway.
	"gateway: a changed definition is not seen": {"target/upstream/target.go", "for _, name := range t.rules.tools() {", "for _, name := range t.rules.tools()[:0] {", "./target/upstream", "TestADefinitionThatChanged"},
	"gateway: any JSON-RPC error is proof":      {"target/upstream/target.go", "slices.Contains([]int{-32700, -32600, -32601, -32602}, refused.RPCCode())", "refused.RPCCode() != 0", "./target/upstream", "TestARefusalOfTheRequest"},
	"gateway: another account is written":       {"target/upstream/target.go", "if acct != wetink.Account(t.name) {", "if acct == \"\" {", "./target/upstream", "TestTargetKeepsTheContract"},
	"gateway: a disowned call is sent again":    {"gateway/remote.go", "		if out.method == \"tools/call\" {\n\t\t\tr.l.fail", "		if out.method == \"\" {\n\t\t\tr.l.fail", "./gateway", "TestACallThatAnUpstreamDisowns"},
	"gateway: an agent says what was observed":  {"target/upstream/prepare.go", "			if !equal(given, v) {", "			if !equal(given, v) && false {", "./target/upstream", "TestTheObservedVersion"},
	"gateway: a when that fails is passed over": {"target/upstream/rule.go", "		if err != nil {\n\t\t\treturn nil, &wetink", "		if err != nil && false {\n\t\t\treturn nil, &wetink", "./target/upstream", "TestRulesOfOneTool"},
	"gateway: a risk that fails is none":        {"target/upstream/prepare.go", "		case err != nil:\n\t\t\twarnings", "		case err != nil && false:\n\t\t\twarnings", "./target/upstream", "TestARiskThatCannot"},
	"gateway: a caller gives what Invert makes": {"target/upstream/prepare.go", "o.Draw != nil || o.Again != nil {", "o.Draw != nil {", "./target/upstream", "TestAToolOfTheServer"},
	"gateway: what nobody can read is compared": {"target/upstream/undo.go", "		return wetink.Opaque, \"nothing reads", "		return wetink.AsApproved, \"nothing reads", "./target/upstream", "TestWithoutAnythingToRead"},
	"gateway: a poisoned tool stays":            {"gateway/pins.go", "ok && bytes.Equal(was, is[name]) {", "ok && was != nil {", "./gateway", "TestPins"},
	"an opaque effect proves itself":            {"reconcile.go", "case verdict == Opaque && answered:", "case verdict == Opaque:", ".", "TestWhatCannotBeCompared"},

	// The surface.
	"any origin":           {"mcpserver/http.go", "origin != \"\" && !o.allows(origin)", "origin == \"x\" && !o.allows(origin)", "./mcpserver", "TestHTTPRefuses"},
	"any bearer":           {"mcpserver/http.go", "subtle.ConstantTimeCompare(got[:], want[:]) != 1", "subtle.ConstantTimeCompare(got[:], want[:]) > 1", "./mcpserver", "TestHTTPRefuses"},
	"public caches":        {"mcpserver/server.go", "c.CacheScope = \"private\"", "_ = c", "./mcpserver", "TestBothEras"},
	"apply passes through": {"mcpserver/tools.go", "if !ticketed(c) {", "if !ticketed(c) && false {", "./mcpserver", "TestAboveLevelAgent"},

	// The calendar.
	"pairing is not bound":                 {"target/intervals/snapshot.go", "\"updated\":", "\"paired_activity_id\": \"x\", \"updated\":", "./target/intervals", "TestEachBoundField"},
	"paired events are touched":            {"target/intervals/prepare.go", "case e.set(\"paired_activity_id\"):", "case false:", "./target/intervals", "TestWhatMustNotBeTouched"},
	"writes are kept alive and sent again": {"target/intervals/client.go", "r = struct{ io.Reader }{bytes.NewReader(body)}", "r = bytes.NewReader(body)", "./target/intervals", "TestWritesAreNeverReplayable"},
	"a 5xx proves a refusal":               {"target/intervals/client.go", "api.Status >= 400 && api.Status < 500 &&", "api.Status >= 400 &&", "./target/intervals", "TestWritesBrokenBothWays"},
	"redirects are followed":               {"target/intervals/client.go", "return http.ErrUseLastResponse }", "return nil }", "./target/intervals", "TestARedirectIsNotFollowed"},
	"a wrong id is believed":               {"target/intervals/target.go", "if err != nil || op.Action != Create || !s.Absent && fields(s).text(\"external_id\") == op.Key {", "if true {", "./target/intervals", "TestWritesBrokenBothWays"},
	"a key prints":                         {"target/intervals/client.go", "func (Key) Format(s fmt.State, _ rune)   { fmt.Fprint(s, \"[redacted]\") }", "func (k Key) Format(s fmt.State, _ rune) { fmt.Fprint(s, k.reveal()) }", "./target/intervals", "TestTheKeyPrints"},

	// What the preview shows.
	"render: any joined emoji":                         {"render/lawful.go", "joined && e.zwj[s[:n]]", "joined", "./render", "TestEveryDeception"},
	"render: any flag":                                 {"render/emoji.go", "if e.flags[region.String()] {", "if region.Len() == 2 {", "./render", "TestEveryDeception"},
	"render: a flag's twin":                            {"render/emoji.go", "e.flags[f] = !twinFlags[f]", "e.flags[f] = true || twinFlags[f]", "./render", "TestEveryDeception"},
	"render: a tone on anything":                       {"render/lawful.go", "tone(r) && !unicode.Is(e.base, before):", "false:", "./render", "TestEveryDeception"},
	"render: half a keycap":                            {"render/lawful.go", "case r == enclosingKeycap, regional(r)", "case regional(r)", "./render", "TestEveryDeception"},
	"render: a selector on any emoji":                  {"render/lawful.go", "if unicode.Is(e.text, before) && before", "if before", "./render", "TestEveryDeception"},
	"render: a selector on a digit":                    {"render/lawful.go", "unicode.Is(e.text, before) && before >= utf8.RuneSelf", "unicode.Is(e.text, before) || keycap(before)", "./render", "TestEveryDeception"},
	"render: an emoji as text":                         {"render/lawful.go", "case r >= '\\U0001f300' && unicode.Is(e.text, r)", "case r >= '\\U000f0000' && unicode.Is(e.text, r)", "./render", "TestEveryDeception"},
	"render: a joiner before any letter":               {"render/lawful.go", "scriptOf(next) != script, ", "", "./render", "TestEveryDeception"},
	"render: a joiner behind any letter":               {"render/lawful.go", "scriptOf(base) != script, ", "", "./render", "TestEveryDeception"},
	"render: a chillu's twin":                          {"render/lawful.go", "script == \"Malayalam\" || base == '\\u09a4'", "base == '\\u09a4'", "./render", "TestEveryDeception"},
	"render: a non-joiner anywhere":                    {"render/lawful.go", "\treturn err == nil", "\treturn err == nil || true", "./render", "TestEveryDeception"},
	"render: a non-joiner of two scripts":              {"render/lawful.go", " || scriptOf(left) != scriptOf(right)", "", "./render", "TestEveryDeception"},
	"render: no Persian":                               {"render/lawful.go", "\treturn err == nil", "\treturn err == nil && false", "./render", "TestNothingInnocent"},
	"render: what strikes out":                         {"render/visible.go", "unicode.Variation_Selector, blank, posing)", "unicode.Variation_Selector, blank)", "./render", "TestEveryDeception"},
	"render: a script of no font":                      {"render/visible.go", " || r >= 0x370 && unicode.Is(boxes(), r)", "", "./render", "TestEveryDeception"},
	"render: a crowd of badges":                        {"render/findings.go", "more := len(badges) - maxBadges; more > 0", "more := 0; more > 0", "./render", "TestNoCrowd"},
	"render: blanks in a row":                          {"render/reveal.go", "case c == ' ' && blank:", "case c == ' ' && blank && false:", "./render", "TestAHundredThousand"},
	"render: only links have hosts":                    {"render/hosts.go", "case !strings.ContainsAny(rest, dots):", "default:", "./render", "TestAHostIsTold"},
	"render: no hosts in mail addresses":               {"render/hosts.go", "case strings.Contains(rest[:until], \"@\"):", "case until < 0:", "./render", "TestAHostIsTold"},
	"render: an at sign in a path":                     {"render/hosts.go", "case strings.Contains(rest[:until], \"@\"):", "case strings.Contains(rest, \"@\") || until < 0:", "./render", "TestEveryDeception"},
	"render: a scheme without slashes":                 {"render/hosts.go", "case special.MatchString(rest):", "case false:", "./render", "TestEveryDeception"},
	"render: a link in a link":                         {"render/hosts.go", "k > 1 && ok {", "k > 1000 && ok {", "./render", "TestEveryDeception"},
	"render: punycode as it stands":                    {"render/hosts.go", "&& err2 == nil && shown != strings.ToLower(name):", "&& err2 != nil:", "./render", "TestAHostIsTold"},
	"render: a backslash in a link":                    {"render/hosts.go", "h.slash = h.link && ", "h.slash = false && ", "./render", "TestAHostIsTold"},
	"render: an escaped dot":                           {"render/hosts.go", "un != name && h.link {", "un != name && false {", "./render", "TestAHostIsTold"},
	"render: an honest domain is told":                 {"render/hosts.go", " && !(i < len(labels)-1 && sameScript(label, labels[len(labels)-1])) {", " && !(i > len(labels)) {", "./render", "TestNothingInnocent"},
	"render: a host that looks alike":                  {"render/hosts.go", "out = append(out, looksLike(label, like))", "_ = like", "./render", "TestEveryDeception"},
	"render: a word that looks alike":                  {"render/badges.go", "utf8.RuneCountInString(w) >= 4 && like", "utf8.RuneCountInString(w) >= 400 && like", "./render", "TestEveryDeception"},
	"render: a Russian text is told":                   {"render/badges.go", "honest[script] = true", "honest[script] = false", "./render", "TestNothingInnocent"},
	"render: any script beside Latin":                  {"render/badges.go", "case len(rest) == 1 && besideLatin[rest[0]]:", "case len(rest) == 1:", "./render", "TestEveryDeception|TestAHostIsTold"},
	"render: digits of two scripts":                    {"render/badges.go", "if zero >= 0 && z != zero {", "if zero >= 0 && z < 0 {", "./render", "TestEveryDeception"},
	"render: a sign that is none":                      {"render/badges.go", "for _, sign := range signs(s) {", "for _, sign := range signs(\"\") {", "./render", "TestEveryDeception"},
	"render: any length of a warning":                  {"render/findings.go", "s.add(fmt.Sprintf(\"warnings[%d]\", i), len(w))", "s.add(fmt.Sprintf(\"warnings[%d]\", i), min(len(w), Limit))", "./render", "TestAValueThatNobodyReads"},
	"render: any length of the context":                {"render/findings.go", "s.add(\"context\", len(t.Context))", "s.add(\"context\", 0)", "./render", "TestAValueThatNobodyReads"},
	"render: any length of a name":                     {"render/findings.go", "for _, f := range slices.Sorted(maps.Keys(sent)) {\n\t\t\ts.add(at+\".\"+field(f), len(f))", "for _, f := range slices.Sorted(maps.Keys(sent)) {", "./render", "TestAValueThatNobodyReads"},
	"render: any length together":                      {"render/findings.go", "s.long.Most == 0 && s.sum > Total", "false", "./render", "TestAValueThatNobodyReads"},
	"render: any length of words":                      {"render/findings.go", "if len(a.Reason) > Limit {", "if len(a.Reason) > Total {", "./render", "TestAValueThatNobodyReads"},
	"any length of the agent's words":                  {"mcpserver/tools.go", "long != (render.Excess{}) {", "long.Size < 0 {", "./mcpserver", "TestWords"},
	"a key may stand twice":                            {"gateway/peek.go", "if seen&(1<<key) != 0 {", "if false {", "./gateway", "TestWhatAGuard"},
	"a key may be in another case":                     {"gateway/peek.go", "strings.EqualFold(string(key), k)", "false", "./gateway", "TestWhatAGuard"},
	"an escaped key is another":                        {"gateway/peek.go", "if bytes.IndexByte(key, '\\\\') >= 0 {", "if false {", "./gateway", "TestWhatAGuard"},
	"a batch is a message":                             {"gateway/peek.go", "case b[s.i] == '[':\n\t\treturn m", "case false:\n\t\treturn m", "./gateway", "TestWhatAGuard"},
	"clients need no UTF-8":                            {"gateway/peek.go", "if strict && !utf8.Valid(b) {", "if false {", "./gateway", "TestWhatAGuard"},
	"half a character is a name":                       {"gateway/peek.go", "if strings.ContainsRune(t, utf8.RuneError) {", "if false {", "./gateway", "TestWhatAGuard"},
	"any depth":                                        {"gateway/peek.go", "func (s *scanner) array() error {\n\tif s.depth++; s.depth > s.max {", "func (s *scanner) array() error {\n\tif s.depth++; false {", "./gateway", "TestWhatAGuard"},
	"a long line is read":                              {"gateway/frame.go", "case size > l.max+1:", "case false:", "./gateway", "TestLinesAreBounded"},
	"a line feed stays":                                {"gateway/splice.go", "b[i] = ' '", "b[i] = c", "./gateway", "TestALineFeed"},
	"any host":                                         {"gateway/http.go", "if !g.allowsHost(r.Host) {", "if false {", "./gateway", "TestForeignHosts"},
	"any origin at the gateway":                        {"gateway/http.go", "if origin != \"\" && !trusted &&", "if false && !trusted &&", "./gateway", "TestForeignHosts"},
	"cross-site without an origin":                     {"gateway/http.go", "if err := cross.Check(r); err != nil {", "if err := cross.Check(r); false && err != nil {", "./gateway", "TestForeignHosts"},
	"headers are not compared":                         {"gateway/http.go", "err = headersMatch(&m, r.Header)", "err = nil", "./gateway", "TestHeadersMustMatch"},
	"any number of sessions":                           {"gateway/http.go", "return g.closed || len(g.web) >= g.opt.Sessions", "return g.closed", "./gateway", "TestSessionsOverHTTP"},
	"the guard is not asked":                           {"gateway/calls.go", "if g.guard != nil && !g.guard.Passes(up.Name, tool) {", "if false {", "./gateway", "TestTheGuardDecidesAboutEachTool"},
	"the guard is not asked over HTTP":                 {"gateway/reverse.go", "case g.guard.Passes(up, m.name):", "case g.guard.Passes(up, m.name) || true:", "./gateway", "TestTheGuardDecidesOverHTTP"},
	"an upstream has the guard's tool":                 {"gateway/calls.go", "if g.isOwn(m.name) {", "if false {", "./gateway", "TestTheGuardDecidesAboutEachTool"},
	"a name may stand twice":                           {"gateway/lists.go", "case g.isOwn(shown) || seen[shown]:", "case false:", "./gateway", "TestAToolWhoseName"},
	"a call without an id passes":                      {"gateway/session.go", "if s.g.guard != nil && !strings.HasPrefix(m.method, \"notifications/\") {", "if false && !strings.HasPrefix(m.method, \"\") {", "./gateway", "TestARequestWithoutAnID"},
	"a call without an id passes by HTTP":              {"gateway/reverse.go", "if m.method == \"tools/call\" && g.guard != nil {", "if false {", "./gateway", "TestARequestWithoutAnID"},
	"a client's credentials pass":                      {"gateway/post.go", "headersUp   = []string{\"Accept\",", "headersUp   = []string{\"Authorization\", \"Cookie\", \"Accept\",", "./gateway", "TestCredentialsOfAClient"},
	"a cookie of an upstream passes":                   {"gateway/post.go", "headersDown = []string{\"Allow\",", "headersDown = []string{\"Set-Cookie\", \"Allow\",", "./gateway", "TestCredentialsOfAClient"},
	"a request is sent again":                          {"gateway/conns.go", "if err == nil || sent || fresh ||", "if err == nil || fresh ||", "./gateway", "TestARequestThatWasSent"},
	"a length is told in two ways":                     {"gateway/conns.go", "case chunked && resp.ContentLength >= 0:", "case false:", "./gateway", "TestAnswersThatCould"},
	"a header has no end":                              {"gateway/conns.go", "if size += len(b); size > mostHeader {", "if size += len(b); false {", "./gateway", "TestAHeaderWithoutEnd"},
	"a lost call was not sent":                         {"gateway/link.go", "for _, c := range list {\n\t\tl.fail(c, err, true)", "for _, c := range list {\n\t\tl.fail(c, err, false)", "./gateway", "TestACallInFlight"},
	"a flood passes":                                   {"gateway/session.go", "if c := s.lists[key]; c != nil || s.closed {", "if c := s.lists[key]; s.closed {", "./gateway", "TestAFlood"},
	"odd ids are sent on":                              {"gateway/link.go", "if l.shared || !plainID(id) {", "if l.shared {", "./gateway", "TestOddIDs"},
	"our settings are an upstream's":                   {"gateway/child.go", "if !strings.HasPrefix(strings.ToUpper(e), \"WETINK_\") {", "if true || strings.HasPrefix(e, \"\") {", "./gateway", "TestAnUpstreamDoesNotInherit"},
	"a list need not end":                              {"gateway/lists.go", "if page == mostPages || len(items) > mostItems || size > g.opt.UpstreamBytes {", "if false {", "./gateway", "TestAListThatDoesNotEnd"},
	"an upstream's size has no limit":                  {"gateway/child.go", "newLines(p.out, c.l.g.opt.UpstreamBytes)", "newLines(p.out, 1<<40)", "./gateway", "TestFiveMegabytes"},
	"oidc: any nonce":                                  {"approval/oidc/flow.go", "case subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(f.Nonce)) != 1:", "case false:", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: a token for others":                         {"approval/oidc/flow.go", "case slices.ContainsFunc(t.Audience, func(a string) bool { return a != s.cfg.ClientID }):", "case slices.Contains(t.Audience, \"\"):", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: given to another":                           {"approval/oidc/flow.go", "case c.AuthorizedParty != nil && *c.AuthorizedParty != s.cfg.ClientID:", "case false:", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: of nobody":                                  {"approval/oidc/flow.go", "case t.Subject == \"\" || len(t.Subject) > 255:", "case len(t.Subject) > 255:", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: unverified addresses":                       {"approval/oidc/flow.go", "c.EmailVerified != true && c.EmailVerified != \"true\"", "c.EmailVerified == 0", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: bad groups are none":                        {"approval/oidc/flow.go", "return nil, refuse(\"the claim %q is no list of texts\", s.cfg.GroupsClaim)", "return nil, nil", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: any key":                                    {"approval/oidc/service.go", "SupportedSigningAlgs: algorithms, Now", "SupportedSigningAlgs: algorithms, InsecureSkipSignatureCheck: true, Now", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: any audience":                               {"approval/oidc/service.go", "&oidc.Config{ClientID: s.cfg.ClientID,", "&oidc.Config{ClientID: s.cfg.ClientID, SkipClientIDCheck: true,", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: any end":                                    {"approval/oidc/service.go", "algorithms, Now: s.now}", "algorithms, SkipExpiryCheck: true, Now: s.now}", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: another issuer's token":                     {"approval/oidc/service.go", "algorithms, Now: s.now}", "algorithms, SkipIssuerCheck: true, Now: s.now}", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: any algorithm":                              {"approval/oidc/service.go", "var algorithms = []string{oidc.RS256,", "var algorithms = []string{oidc.ES512, oidc.RS256,", "./approval/oidc", "TestASignInThatIsNot"},
	"oidc: any state":                                  {"approval/oidc/flow.go", "case subtle.ConstantTimeCompare([]byte(answer.Get(\"state\")), []byte(f.State)) != 1:", "case false:", "./approval/oidc", "TestAnAnswerThatThisBrowser"},
	"oidc: no time limit":                              {"approval/oidc/flow.go", "case now.Sub(f.Begun) >= Life ||", "case", "./approval/oidc", "TestAnAnswerThatThisBrowser"},
	"oidc: a mix-up":                                   {"approval/oidc/flow.go", "case iss != \"\" && iss != s.cfg.Issuer, iss == \"\" && names:", "case iss == \"\" && names:", "./approval/oidc", "TestAnAnswerThatThisBrowser"},
	"oidc: an answer without a name":                   {"approval/oidc/flow.go", "case iss != \"\" && iss != s.cfg.Issuer, iss == \"\" && names:", "case iss != \"\" && iss != s.cfg.Issuer:", "./approval/oidc", "TestAnAnswerThatThisBrowser"},
	"oidc: no PKCE":                                    {"approval/oidc/flow.go", ", oauth2.VerifierOption(f.Verifier))", ")", "./approval/oidc", "TestAPersonSignsIn"},
	"oidc: answered twice":                             {"approval/oidc/flow.go", "case again:", "case false && again:", "./approval/oidc", "TestAnAnswerCountsOnce"},
	"oidc: an old sign-in is fresh":                    {"approval/oidc/flow.go", "case id.AuthTime.Before(f.Begun.Add(-skew)):", "case false:", "./approval/oidc", "TestAFreshSignIn"},
	"oidc: a fresh one without a time":                 {"approval/oidc/flow.go", "case id.AuthTime.IsZero():", "case false:", "./approval/oidc", "TestAFreshSignIn"},
	"oidc: a fresh one to come":                        {"approval/oidc/flow.go", "case id.AuthTime.After(s.now().Add(skew)):", "case false:", "./approval/oidc", "TestAFreshSignIn"},
	"oidc: http":                                       {"approval/oidc/service.go", "u.Scheme == \"http\" && loopback)", "u.Scheme == \"http\" || loopback)", "./approval/oidc", "TestNothingIsSentWhere"},
	"oidc: http endpoints":                             {"approval/oidc/service.go", "if u, err := url.Parse(raw); err != nil || !private(u) {", "if u, err := url.Parse(raw); err != nil || u == nil {", "./approval/oidc", "TestNothingIsSentWhere"},
	"oidc: redirects are followed":                     {"approval/oidc/service.go", "{ return http.ErrUseLastResponse }", "{ return nil }", "./approval/oidc", "TestTheSecretDoesNot"},
	"oidc: letters of Unicode":                         {"approval/oidc/flow.go", "strings.Map(lower, c.Email)", "strings.ToLower(c.Email + string(rune(lower(0))))[:len(strings.ToLower(c.Email))]", "./approval/oidc", "TestTwoAddresses"},
	"page: a trip of any browser":                      {"approval/page/signon.go", "b, err := p.reveal(\"trip\", c.Value)", "b, err := []byte(nil), error(nil)\n\tif b, err = p.reveal(\"trip\", c.Value); err != nil {\n\t\tb, err = []byte(`{\"state\":\"eA==\",\"ends\":\"2100-01-01T00:00:00Z\",\"next\":\"/\"}`), nil\n\t}", "./approval/page", "TestAnAnswerOfAnIssuerNeedsItsCookie"},
	"page: a trip takes for ever":                      {"approval/page/signon.go", "if err == nil && !p.opt.Now().Before(t.Ends) {", "if err == nil && t.Ends.IsZero() {", "./approval/page", "TestAnAnswerOfAnIssuer"},
	"page: an answer as a picture":                     {"approval/page/signon.go", " || dest != \"\" && dest != \"document\" {", " {\n\t\t_ = dest", "./approval/page", "TestAnAnswerOfAnIssuer"},
	"page: an answer by HEAD":                          {"approval/page/signon.go", "p.opt.SignOn == nil || r.Method != http.MethodGet ||", "p.opt.SignOn == nil ||", "./approval/page", "TestAnAnswerOfAnIssuer"},
	"page: a trip's cookie stays":                      {"approval/page/signon.go", "\thttp.SetCookie(w, p.tripCookie(\"\", -time.Second))\n", "", "./approval/page", "TestAnAnswerOfAnIssuer"},
	"page: a trip's cookie can be read":                {"approval/page/keys.go", "aead(p.keys.conceal).Seal(nil, nil, b, []byte(purpose))", "append(aead(p.keys.conceal).Seal(nil, nil, b, []byte(purpose)), b...)", "./approval/page", "TestTheCookieOfATrip"},
	"page: any proof cookie":                           {"approval/page/relogin.go", "return f, f.Asked == visiting(r).asks(c) && ", "return f, ", "./approval/page", "TestAProofIsGood"},
	"page: an old proof":                               {"approval/page/relogin.go", "visiting(r).asks(c) && p.opt.Now().Before(f.Ends)", "visiting(r).asks(c)", "./approval/page", "TestAProofIsGood"},
	"page: somebody else's proof":                      {"approval/page/relogin.go", "if err != nil || who != t.Asked.Person || id.AuthTime.IsZero() {", "if id.AuthTime.IsZero() {", "./approval/page", "TestSomebodyElses"},
	"page: a proof without a time":                     {"approval/page/relogin.go", "who != t.Asked.Person || id.AuthTime.IsZero() {", "who != t.Asked.Person {", "./approval/page", "TestSomebodyElses"},
	"page: no proof is needed":                         {"approval/page/relogin.go", "\tif !hmac.Equal(r.MAC, reloginMAC(", "\tif hmac.Equal(nil, reloginMAC(", "./approval/page", "TestEvidenceOfAProof"},
	"page: any issuer's proof":                         {"approval/page/relogin.go", "case r.Issuer != v.issuer:", "case false:", "./approval/page", "TestEvidenceOfAProof"},
	"page: a proof of who is another":                  {"approval/page/relogin.go", "if err != nil || who != e.By {", "if err != nil || who == \"\" {", "./approval/page", "TestEvidenceOfAProof"},
	"page: a proof by who may not":                     {"approval/page/relogin.go", "return Entitled(s, reloginVerifier{s, issuer})", "return reloginVerifier{s, issuer}", "./approval/page", "TestEvidenceOfAProof"},
	"page: a silent sign-in is fresh":                  {"approval/page/signin.go", " && s.How != howIssuer\n", "\n", "./approval/page", "TestASignInThatNobody"},
	"page: strangers get in":                           {"approval/page/signon.go", "if errors.Is(err, ErrUnknown) && listed {", "if errors.Is(err, ErrUnknown) {", "./approval/page", "TestASubjectIsOne"},
	"page: a subject is what it is called":             {"approval/page/signon.go", "\t\tid.Person = bound\n", "\t\t_ = bound\n", "./approval/page", "TestASubjectIsOne"},
	"page: a subject is not bound":                     {"approval/page/signon.go", "if err := p.store.BindIdentity(ctx, tenant, who.ID, id.Issuer, id.Subject); err != nil {", "if err := ctx.Err(); err != nil {", "./approval/page", "TestASubjectIsOne"},
	"page: who left a group approves":                  {"approval/page/signon.go", "if len(groups) > 0 && who.Approver != listed {", "if len(groups) > 0 && !who.Approver && listed {", "./approval/page", "TestASubjectIsOne"},
	"page: no groups take the role":                    {"approval/page/signon.go", "if len(groups) > 0 && who.Approver != listed {", "if who.Approver != listed {", "./approval/page", "TestASubjectIsOne"},
	"people: a second subject":                         {"store/sqlite/schema.go", "\tPRIMARY KEY (tenant, issuer, subject),\n\tUNIQUE (tenant, issuer, person)", "\tPRIMARY KEY (tenant, issuer, subject)", "./store/sqlite", "."},
	"people: a subject of who was removed":             {"store/sqlite/identity.go", "\t\tif !there {", "\t\tif !there && person == \"\" {", "./store/sqlite", "."},
	"upstream: any account":                            {"target/upstream/target.go", "if acct != wetink.Account(t.name) {", "if false {", "./target/upstream", "TestAGuardedServerKeeps"},
	"upstream: definitions are not in the version":     {"target/upstream/target.go", "len(name), name, len(defs[name]), defs[name])", "len(name), name, 0*len(defs), \"\")", "./target/upstream", "TestAToolThatMeans|TestTheVersionCovers"},
	"upstream: a failed tool did nothing":              {"target/upstream/target.go", "if moved, known := t.movedSince(ctx, own, o); known && !moved {", "if moved, known := t.movedSince(ctx, own, o); known || !moved {", "./target/upstream", "TestEachBrokenAnswer"},
	"upstream: a refusal is believed":                  {"target/upstream/target.go", "known && moved { // a server", "known && moved && false { // a server", "./target/upstream", "TestEachBrokenAnswer"},
	"upstream: a result without content":               {"target/upstream/value.go", "case r.Content == nil && len(r.Structured) == 0:", "case false:", "./target/upstream", "TestResultsOfAnySize"},
	"upstream: half an answer":                         {"target/upstream/value.go", "case r.Type != \"\" && r.Type != \"complete\":", "case false:", "./target/upstream", "TestResultsOfAnySize"},
	"upstream: an answer without what undo needs":      {"target/upstream/target.go", "ref.root == \"result\" && err != nil {", "ref.root == \"result\" && err != nil && false {", "./target/upstream", "TestEachBrokenAnswer"},
	"upstream: an unseen creation never was":           {"target/upstream/undo.go", "case !placed:", "case !placed && false:", "./target/upstream", "TestEachBrokenAnswer"},
	"upstream: a creation that is not there is one":    {"target/upstream/undo.go", "case now.Absent && (before.Absent || before.Object == \"\"):", "case now.Absent && before.Absent:", "./target/upstream", "TestEachBrokenAnswer"},
	"upstream: read once":                              {"target/upstream/prepare.go", "if err := t.still(ctx, o.rule, before); err != nil {", "if err := t.still(ctx, o.rule, wetink.Snapshot{}); err != nil {", "./target/upstream", "TestWhatMovesByItself|TestPreviewShows"},
	"upstream: another version is named":               {"target/upstream/prepare.go", "if !equal(given, v) {", "if !equal(given, v) && false {", "./target/upstream", "TestBindCarries"},
	"upstream: the seen version is not sent":           {"target/upstream/prepare.go", "members = append(members, strictjson.Member{Name: b.name, Value: raw})", "_ = raw", "./target/upstream", "TestBindCarries"},
	"upstream: typing at any level":                    {"target/upstream/explain.go", "d.Require = wetink.Stricter(d.Require, wetink.Require{Level: wetink.Session, People: 1})", "_ = d", "./target/upstream", "TestWhatIsAskedAndTyped"},
	"upstream: what cannot be judged is not typed":     {"target/upstream/explain.go", "return holds || err != nil", "return holds && err == nil", "./target/upstream", "TestWhatIsAskedAndTyped"},
	"upstream: deny is a word":                         {"target/upstream/explain.go", "if ask.Deny {", "if false {", "./target/upstream", "TestOfSeveralRules"},
	"upstream: no limit":                               {"target/upstream/explain.go", "if own.rule.Limit > 0 && len(terms.Undoes) == 0 {", "if false {", "./target/upstream", "TestLimitCounts"},
	"upstream: when is guessed":                        {"target/upstream/rule.go", "if err != nil {\n\t\t\treturn nil, &wetink.RequestError{Reason: fmt.Sprintf(\"the rule", "if false {\n\t\t\treturn nil, &wetink.RequestError{Reason: fmt.Sprintf(\"the rule", "./target/upstream", "TestOfSeveralRules"},
	"upstream: anything is read":                       {"target/upstream/grammar.go", "if rule.Read != nil && !Passes(g.pass, rule.Read.Tool) {", "if false {", "./target/upstream", "TestEveryMistake"},
	"upstream: a dry run by the agent's word":          {"target/upstream/grammar.go", "if p := rule.Preview; p != nil &&", "if p := rule.Preview; false && p != nil &&", "./target/upstream", "TestEveryMistake"},
	"upstream: passed and guarded":                     {"target/upstream/grammar.go", "if Passes(pass, e.Key) {", "if false {", "./target/upstream", "TestEveryMistake"},
	"upstream: numbers are floats":                     {"target/upstream/value.go", "\td.UseNumber()\n", "", "./target/upstream", "TestNumbersAndText|TestNumbersAreCompared"},
	"upstream: a silent risk":                          {"target/upstream/prepare.go", "case err != nil:\n\t\t\twarnings = append(warnings, fmt.Sprintf(\"%s: it cannot", "case false:\n\t\t\twarnings = append(warnings, fmt.Sprintf(\"%s: it cannot", "./target/upstream", "TestRisksAreTold"},
	"upstream: any part of an error is absent":         {"target/upstream/target.go", "if rule.Absent != \"\" && strings.Contains(r.text(), rule.Absent) {", "if rule.Absent != \"\" {", "./target/upstream", "TestNoTextOfAnError"},
	"upstream: a word of failure":                      {"target/upstream/value.go", "|| rule.Failed != \"\" && strings", "|| false && strings", "./target/upstream", "TestAFailureThatIsAnswered"},
	"upstream: snapshots of any size":                  {"target/upstream/target.go", "len(s.Body) > maxRead {", "len(s.Body) > 100*maxRead {", "./target/upstream", "TestResultsOfAnySize"},
	"upstream: one argument that was met is all":       {"target/upstream/undo.go", "c.same > 0 && c.same == c.others:", "c.same > 0 && c.asked == 0:", "./target/upstream", "TestWhatCannotBeComparedIsNotMetBy"},
	"upstream: an undo of any version":                 {"target/upstream/undo.go", "before: fields(before)}); err != nil {", "before: nil}); err != nil {", "./target/upstream", "TestAnUndoCarries"},
	"upstream: a creation comes back under its old id": {"target/upstream/undo.go", "case b.Via != \"\" && len(t.rules[b.Name]) == 0:", "case b.Via != \"\":", "./recipes", "TestACalendarEventIsChanged"},
	"upstream: what differs in form differs":           {"target/upstream/undo.go", "case !there || alike(v, got):", "case true:", "./target/upstream", "TestWhatDiffersInForm"},
	"upstream: a bound version is a change":            {"target/upstream/undo.go", "|| o.rule.binds(name) { // which", "|| o.rule.binds(name) && false { // which", "./target/upstream", "TestABoundDeletion"},
	"upstream: SQL functions are harmless":             {"target/upstream/sql.go", "return !harmless(body)", "return false", "./target/upstream", "TestWhatSQLDoes"},
	"upstream: a second statement":                     {"target/upstream/sql.go", "return len(list) == 1, err", "return len(list) > 0, err", "./target/upstream", "TestASecondStatement"},
	"recipes: part of a name":                          {"recipes/recipes.go", "if word == name || bare == name && bare != \"\" {", "if word == name || strings.Contains(bare, name) {", "./recipes", "TestARecipeIsChosen"},
	"recipes: any word of a command":                   {"recipes/recipes.go", "word := program(command)", "word := strings.Join(command[max(len(command)-1, 0):], \"\")", "./recipes", "TestARecipeIsChosen"},
}

func TestEveryMutantIsKilled(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(root, m.file)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), m.from); n != 1 {
				t.Fatalf("%q stands %d times in %s", m.from, n, m.file)
			}
			dir := t.TempDir()
			mutated := filepath.Join(dir, "mutated.go")
			if err := os.WriteFile(mutated, []byte(strings.Replace(string(b), m.from, m.to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(path, overlay, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("go", "test", "-count=1", "-vet=off", "-overlay", path, "-run", m.run, m.pkg).CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("it lives: no test of %s in %s fails without this check", m.run, m.pkg)
			case strings.Contains(string(out), "[build failed]") || !strings.Contains(string(out), "--- FAIL"):
				t.Errorf("it is no mutant:\n%s", out)
			}
		})
	}
}

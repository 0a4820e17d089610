package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/passphrase"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/internal/sqlite"
	"github.com/wetink/wetink/policy/rules"
	"github.com/wetink/wetink/render"
)

// Exit codes; see the package comment.
const (
	codeDone     = 0
	codeOther    = 1
	codeDeclined = 2
	codeStale    = 3
	codeExpired  = 4
	codeUnclear  = 5
	codeUsage    = 10
)

var (
	errAmbiguous   = errors.New("more than one change begins with it")
	errShortID     = errors.New("too short for an id")
	errNotApproved = errors.New("not approved")
	errPassphrase  = errors.New("wrong passphrase")
)

// remedies is the one table from what went wrong to a person's next step and the exit code. The first that
// matches counts.
var remedies = []struct {
	err  error
	code int
	next string
}{
	{errUsage, codeUsage, "see wetink --help"},
	{ErrConfig, codeUsage, "mend it; nothing was started"},
	{errAmbiguous, codeUsage, "give more of the id"},
	{errShortID, codeUsage, "give at least 8 characters; wetink pending and wetink history print ids"},
	{errNotApproved, codeDeclined, ""},
	{terminal.ErrNotTerminal, codeUsage, "run it yourself in a terminal window: an approval cannot be piped, and there is no option around it"},
	{rules.ErrRules, codeUsage, "mend the file and run wetink check; until then nothing is decided"},
	{errCases, codeOther, "mend the recipe or the case; wetink try shows what a call would ask"},
	{errPassphrase, codeOther, "nothing was approved; try again"},
	{passphrase.ErrTries, codeOther, "nothing was approved"},
	{passphrase.ErrNoSetup, codeUsage, "run wetink setup"},
	{passphrase.ErrUntrusted, codeUsage, "find out who edited people.db in the home; then choose another one with wetink setup --reset"},
	{sqlite.ErrInsecure, codeUsage, "make the folder and its files yours alone, or set WETINK_HOME to another folder"},
	{wetink.ErrExpired, codeExpired, "ask the agent for a fresh preview; nothing was sent"},
	{wetink.ErrLate, codeExpired, "ask the agent for a fresh preview; nothing was sent"},
	{wetink.ErrStale, codeStale, "look at what is there now, and ask the agent for a fresh preview; nothing was overwritten"},
	{wetink.ErrOff, codeOther, "run wetink mode guarded; nothing was used up"},
	{wetink.ErrLevel, codeOther, "run wetink setup, or approve it in a stronger way"},
	{wetink.ErrNoChannel, codeOther, "run wetink setup, or change approval in the configuration"},
	{wetink.ErrNotApproved, codeOther, "run wetink approve first"},
	{wetink.ErrEvidence, codeOther, "look at the change again and approve it again"},
	{wetink.ErrDenied, codeOther, "the policy has to change before this can be approved"},
	{wetink.ErrTampered, codeOther, "somebody edited the stored record: find out who can write the ledger, then ask the agent for a fresh preview"},
	{wetink.ErrRestored, codeOther, "ask the agent for a fresh preview"},
	{wetink.ErrAccount, codeOther, "check whose credentials the server has, then ask the agent for a fresh preview"},
	{wetink.ErrVersion, codeOther, "ask the agent for a fresh preview"},
	{wetink.ErrNoTarget, codeOther, "this process cannot reach the outside system: set INTERVALS_API_KEY here, or let the running server do it"},
	{wetink.ErrNoUndo, codeOther, "a new change can set things right; ask the agent for one"},
	{wetink.ErrCapped, codeOther, "the limit of the day is reached; nothing was used up"},
	{wetink.ErrEarly, codeUnclear, "wait until it is over, then ask again"},
	{wetink.ErrNotFound, codeUsage, "wetink pending and wetink history print ids; is WETINK_HOME the one of the server?"},
	{wetink.ErrConflict, codeUnclear, "something else happened to it at the same moment: run wetink status"},
	{wetink.ErrState, codeOther, "run wetink show to see how it stands"},
	{context.Canceled, codeUnclear, "it was interrupted: run wetink status"},
}

// problem is an error as --json prints it.
type problem struct {
	Error string `json:"error"`
	Next  string `json:"next_step,omitempty"`
	Exit  int    `json:"exit"`
}

func explain(err error) problem {
	p := problem{Error: err.Error(), Exit: codeOther}
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			p.Next, p.Exit = r.next, r.code
			break
		}
	}
	return p
}

// report says what went wrong, once, and returns the exit code. What an outside system answered may be part of
// it, so it is shown like any value.
func report(stdout, stderr io.Writer, asJSON bool, err error) int {
	if err == nil {
		return codeDone
	}
	var code exit
	if errors.As(err, &code) {
		return int(code)
	}
	p := explain(err)
	if asJSON {
		b, err := json.Marshal(p)
		if err != nil {
			return codeOther
		}
		fmt.Fprintf(stdout, "%s\n", b)
		return p.Exit
	}
	fmt.Fprintf(stderr, "wetink: %s\n", render.Lines(p.Error))
	if p.Next != "" {
		fmt.Fprintf(stderr, "  next: %s\n", p.Next)
	}
	return p.Exit
}

// Command wetink stands between an agent and what it could change: it serves the guarded tools, and it is where a
// person sees, approves, declines and undoes changes. Run wetink --help for its commands.
//
// Exit codes say how the Change stands, or what went wrong:
//
//	0   done
//	2   declined
//	3   stale: it changed since it was seen, and nothing was sent
//	4   expired
//	5   its outcome is not known, or not known yet
//	10  wrong use: arguments, configuration, no terminal
//	1   anything else
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // "today" in the athlete's zone, also on a machine without zone files

	"github.com/alecthomas/kong"
)

type commands struct {
	Calendar CalendarCmd `cmd:"" group:"serve" help:"Serve the guarded Intervals.icu calendar to an agent over stdio."`
	Wrap     WrapCmd     `cmd:"" group:"serve" help:"Guard any MCP server: stand between it and the client that would start it."`
	Sim      SimCmd      `cmd:"" group:"serve" help:"Serve a simulator of an outside system, for trying and for tests."`
	Page     PageCmd     `cmd:"" group:"serve" help:"Serve the approval page while no server does."`
	Demo     DemoCmd     `cmd:"" group:"serve" help:"Show all of it in a minute, on a simulator."`

	Pending PendingCmd `cmd:"" group:"decide" help:"List what waits for a person."`
	Show    ShowCmd    `cmd:"" group:"decide" help:"Show a change as it would be signed."`
	Approve ApproveCmd `cmd:"" group:"decide" help:"Show a change and ask for a yes. Needs a terminal."`
	Reject  RejectCmd  `cmd:"" group:"decide" help:"Decline a change."`
	Undo    UndoCmd    `cmd:"" group:"decide" help:"Show the way back of an applied change and ask for a yes. Needs a terminal."`

	Status    StatusCmd    `cmd:"" group:"look" help:"Say where a change stands."`
	History   HistoryCmd   `cmd:"" group:"look" help:"Print what happened, oldest first."`
	Reconcile ReconcileCmd `cmd:"" group:"look" help:"Ask the outside system what became of a change that is in doubt."`
	Resolve   ResolveCmd   `cmd:"" group:"look" help:"Record what you found out about a change that is in doubt."`

	Mode   ModeCmd   `cmd:"" group:"set up" help:"Show or set the write mode of every server on this ledger."`
	Init   InitCmd   `cmd:"" group:"set up" help:"Ask servers for their tools, and write a wetink.yaml for them."`
	Try    TryCmd    `cmd:"" group:"set up" help:"Show what a call of a guarded tool would ask. Asks nobody and changes nothing."`
	Pins   PinsCmd   `cmd:"" group:"set up" help:"Show which tools of guarded servers changed since somebody looked, and accept them."`
	Test   TestCmd   `cmd:"" group:"set up" help:"Replay the cases of recipes, for CI. Starts no server."`
	Check  CheckCmd  `cmd:"" group:"set up" help:"Validate the rules of the policy, and what a wetink.yaml guards."`
	People PeopleCmd `cmd:"" group:"set up" help:"List who may sign in, and remove somebody."`
	Setup  SetupCmd  `cmd:"" group:"set up" help:"Set up a passphrase, and print how to connect an agent."`

	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	parser, err := kong.New(&commands{},
		kong.Name("wetink"),
		kong.Description("An agent drafts a change; you sign exactly that draft; it happens at most once; it can be undone."),
		kong.Vars{"version": version()},
		kong.Writers(stdout, stderr),
		kong.Exit(func(n int) { panic(exit(n)) }), // --help and --version end here
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return report(stdout, stderr, false, err)
	}
	defer func() {
		if n, ok := recover().(exit); ok {
			code = int(n)
		}
	}()
	k, err := parser.Parse(args)
	if err != nil {
		return report(stdout, stderr, false, usage{err})
	}
	asJSON := false
	if c, ok := k.Selected().Target.Addr().Interface().(interface{ json() bool }); ok {
		asJSON = c.json()
	}
	return report(stdout, stderr, asJSON, k.Run())
}

// exit is an exit code that needs no words: what there is to say was said.
type exit int

func (exit) Error() string { return "" }

// usage is a mistake in the arguments.
type usage struct{ error }

var errUsage = errors.New("wrong use")

func (u usage) Unwrap() []error { return []error{errUsage, u.error} }

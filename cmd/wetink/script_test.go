package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/target/intervals/intervalssim"
	"github.com/wetink/wetink/wetinktest"
)

// The scripts run this program itself, and two more that are not in it: wetink-seed is an agent that asks for a
// change of an outside system in memory, wetink-serve the process that holds that system.
func TestMain(m *testing.M) {
	if os.Getenv(notesFolder) != "" { // this process is the server that others guard
		if err := notesServer(); err != nil {
			os.Exit(1)
		}
		return
	}
	testscript.Main(m, map[string]func(){
		"wetink":       main,
		"wetink-seed":  func() { stand(seed) },
		"wetink-serve": func() { stand(serve) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			user, err := terminal.User()
			e.Setenv("OSUSER", user)
			e.Setenv("WETINK_HOME", e.Getenv("WORK")+"/home")
			e.Setenv("TZ", "UTC")
			return err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"keep": keep, "code": code, "objects": objects, "calendar": calendar, "effects": effects,
		},
	})
}

// keep NAME: the last output, without its line end, is $NAME from now on.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keep NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// code N PROGRAM ARG...: it exits with N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exited interface{ ExitCode() int }
	if errors.As(err, &exited) {
		got = exited.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// objects FILE: every line of the file is one JSON object.
func objects(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: objects FILE")
	}
	text := strings.TrimSuffix(ts.ReadFile(args[0]), "\n")
	for l := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(l, "{") || !json.Valid([]byte(l)) {
			ts.Fatalf("not a JSON object: %s", l)
		}
	}
}

// calendar starts a simulated Intervals.icu, and names it in the environment.
func calendar(ts *testscript.TestScript, neg bool, args []string) {
	sim := intervalssim.New(&intervalssim.Options{Seed: "demo"})
	ctx, stop := context.WithCancel(context.Background())
	ts.Defer(stop)
	url, err := sim.Serve(ctx, "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("INTERVALS_URL", url)
	ts.Setenv("INTERVALS_API_KEY", sim.APIKey())
	sims.Store(url, sim)
}

// sims are the simulators of all scripts, by their URL.
var sims sync.Map

// effects N: so many changes were made through the API, by the simulator's own journal.
func effects(ts *testscript.TestScript, neg bool, args []string) {
	sim, ok := sims.Load(ts.Getenv("INTERVALS_URL"))
	if neg || len(args) != 1 || !ok {
		ts.Fatalf("usage: calendar, then effects N")
	}
	n := 0
	for _, e := range sim.(*intervalssim.Sim).Journal() {
		if strings.HasPrefix(e.Client, "key:") {
			n++
		}
	}
	if fmt.Sprint(n) != args[0] {
		ts.Fatalf("%d effects, want %s", n, args[0])
	}
}

// stand runs f with an engine on the home's ledger that holds the outside system "test". Each process makes it
// afresh with the same objects.
func stand(f func(context.Context, *wetink.Engine, *wetinktest.Target, []string) error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	err := func() error {
		cfg, err := LoadConfig()
		if err != nil {
			return err
		}
		who, err := cfg.OpenPeople()
		if err != nil {
			return err
		}
		defer who.Close()
		opt := cfg.Options(who)
		opt.Lease = time.Second // before it is over nobody may resolve
		ledger, err := cfg.OpenLedger()
		if err != nil {
			return err
		}
		defer ledger.Close()
		target := wetinktest.NewTarget()
		target.Put("a", `{"name":"Tempo","day":"2026-07-16T08:00:00"}`)
		target.Put("b", `{"name":"Easy"}`)
		targets, err := cfg.targets()
		if err != nil {
			return err
		}
		if targets == nil {
			targets = map[string]wetink.Target{}
		}
		targets["test"] = target
		return f(ctx, wetink.New(ledger, targets, opt), target, os.Args[1:])
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// seed [TARGET ARGS]: preview, and print the id.
func seed(ctx context.Context, e *wetink.Engine, _ *wetinktest.Target, args []string) error {
	name, req := "test", `{"ops":[{"action":"update","object":"a","set":{"day":"2026-07-17T08:00:00"}}]}`
	if len(args) == 2 {
		name, req = args[0], args[1]
	}
	c, _, err := e.Preview(ctx, name, wetink.Request{By: wetink.Principal{Client: "Agent"}, Args: []byte(req)})
	if err == nil {
		fmt.Println(c.ID)
	}
	return err
}

// serve ID [WHAT]: run what was approved until ID is settled, and print the journal. WHAT spoils it first:
// "stale" writes behind everybody's back, "lost" loses the answer of the write, and of every read after it; "once"
// tries once and tells the refusal.
func serve(ctx context.Context, e *wetink.Engine, target *wetinktest.Target, args []string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if len(args) > 1 {
		switch args[1] {
		case "stale":
			target.Put("a", `{"name":"Rest","day":"2026-07-16T08:00:00"}`)
		case "lost":
			sent := false
			target.OnExecute = func(_ int, _ wetink.Op, do func() error) error {
				sent = true
				return errors.Join(do(), errors.New("the connection broke"))
			}
			target.OnObserve = func(_ int, _ wetink.Op, s wetink.Snapshot) (wetink.Snapshot, error) {
				if sent {
					return s, errors.New("no route")
				}
				return s, nil
			}
		case "once":
			_, _, err := e.Apply(ctx, wetink.Principal{}, wetink.ChangeID(args[0]), nil)
			return err
		default:
			return fmt.Errorf("%q", args[1])
		}
	}
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	for {
		c, _, err := e.Status(ctx, wetink.Principal{}, wetink.ChangeID(args[0]), time.Minute)
		if err != nil {
			return err
		}
		if c.Status.Settled() || c.Status == wetink.InDoubt {
			stop()
			<-ran
			for _, effect := range target.Journal() {
				fmt.Println(effect.Action, effect.Object, effect.Payload)
			}
			return nil
		}
	}
}

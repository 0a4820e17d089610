package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/mcpserver"
	"github.com/wetink/wetink/target/intervals"
)

// CalendarCmd is the stdio server of the guarded calendar. Its stdout carries MCP only.
type CalendarCmd struct{}

// Run implements the command.
func (*CalendarCmd) Run(ctx context.Context) error {
	cfg, err := LoadConfig()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ledger, err := cfg.OpenLedger()
	if err != nil {
		return err
	}
	defer ledger.Close()
	who, err := cfg.OpenPeople()
	if err != nil {
		return err
	}
	defer who.Close()
	engine, server, pages, err := newCalendar(ctx, cfg, ledger, who, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { _ = engine.Run(ctx) })
	if cfg.PageListen != "" {
		beside.Go(func() { cfg.servePage(ctx, pages, ledger, who, log) })
	}
	err = server.Run(ctx, &mcp.StdioTransport{})
	stop()
	beside.Wait()
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil // the client went away
	}
	return err
}

// newCalendar wires the guarded calendar: the engine that holds the target, the tools on it, and the page.
func newCalendar(ctx context.Context, cfg Config, ledger wetink.Ledger, who *people, log *slog.Logger) (*wetink.Engine, *mcp.Server, *page.Server, error) {
	client, err := cfg.IntervalsClient()
	if err != nil {
		return nil, nil, nil, err
	}
	opt := cfg.Options(who)
	opt.Log = log
	target := intervals.New(client, &intervals.Options{UndoWindow: cfg.UndoWindow})
	engine := wetink.New(ledger, map[string]wetink.Target{"intervals": target}, opt)
	pages, err := cfg.newPage(ctx, engine, ledger, who, log)
	if err != nil {
		return nil, nil, nil, err
	}
	server := mcpserver.New(engine, calendarSurface(client), &mcpserver.Options{Log: log, HowToApprove: howToApprove, Link: cfg.link(pages, who)})
	return engine, server, pages, nil
}

// link leads to a change once somebody can sign in to see it.
func (c Config) link(p *page.Server, who *people) func(wetink.Change) string {
	if c.PageListen == "" {
		return nil
	}
	return func(change wetink.Change) string {
		if enrolled, err := who.enrolled(context.Background()); err != nil || !enrolled {
			return ""
		}
		return p.Link(change)
	}
}

func howToApprove(id wetink.ChangeID, level wetink.Level) string {
	with := ""
	if level >= wetink.Reauth {
		with = ", with the passphrase of `wetink setup`"
	}
	return fmt.Sprintf("A person approves or declines it in a terminal: `wetink approve %s`%s.", id, with)
}

const calendarInstructions = `Reads an athlete's training data from Intervals.icu and prepares changes of the calendar. ` +
	`A change is prepared with preview_event_change, which changes nothing; a person approves exactly what it shows; then it is applied once, and can be undone. ` +
	`Never say that something was changed before apply_event_change or get_event_change_status says applied. Times are the athlete's local time.`

func calendarSurface(client *intervals.Client) mcpserver.Surface {
	return mcpserver.Surface{
		Name: "wetink-calendar", Version: version(), Instructions: calendarInstructions,
		Target: "intervals", Noun: "event", Action: "action",
		Input: calendarInput(),
		Describe: "Prepares a change of the Intervals.icu calendar: create, bulk_create (up to 25), update (which also moves), delete, " +
			"bulk_delete (explicit ids), swap (two events exchange their days) or copy_week.",
		Reads: calendarReads(client),
		Diff:  intervals.Diff,
		Label: eventLabel,
	}
}

// eventLabel is the name of an event, from the newest of what is known of it.
func eventLabel(op wetink.Op, before, after wetink.Snapshot) string {
	for _, b := range []json.RawMessage{after.Body, op.Payload, before.Body} {
		var e struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(b, &e) == nil && e.Name != "" {
			return e.Name
		}
	}
	return ""
}

// calendarInput is the schema of intervals.Args, with what Go types cannot say.
func calendarInput() *jsonschema.Schema {
	s, err := jsonschema.For[intervals.Args](nil)
	if err != nil {
		panic(fmt.Sprintf("schema of the calendar's arguments: %v", err)) // of a type of ours
	}
	s.Properties["action"].Enum = []any{intervals.Create, intervals.BulkCreate, intervals.Update, intervals.Delete,
		intervals.BulkDelete, intervals.Swap, intervals.CopyWeek}
	id := func(description string) *jsonschema.Schema {
		return &jsonschema.Schema{Types: []string{"integer", "string"}, Description: description}
	}
	s.Properties["event_id"] = id(s.Properties["event_id"].Description)
	ids := s.Properties["event_ids"]
	ids.Type, ids.Types, ids.Items, ids.MaxItems = "array", nil, id(""), ptr(intervals.MaxEvents)
	s.Properties["events"].Type, s.Properties["events"].Types, s.Properties["events"].MaxItems = "array", nil, ptr(intervals.MaxEvents)
	s.Properties["clear"].Type, s.Properties["clear"].Types = "array", nil
	for _, name := range []string{"event", "set"} {
		notNull(s.Properties[name])
	}
	notNull(s.Properties["events"].Items)
	return s
}

// notNull takes "null" out of what may be left out: null is refused, because it means two things.
func notNull(s *jsonschema.Schema) {
	for _, t := range s.Types {
		if t != "null" {
			s.Type = t
		}
	}
	s.Types = nil
	for _, p := range s.Properties {
		if len(p.Types) > 0 {
			notNull(p)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// version is the module's, as it was built.
func version() string {
	if b, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(b.Main.Version, "v") {
		return b.Main.Version
	}
	return "devel"
}

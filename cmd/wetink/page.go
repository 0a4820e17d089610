package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/passkey"
	"github.com/wetink/wetink/render"
	"github.com/wetink/wetink/target/intervals"
	"github.com/wetink/wetink/target/upstream"
)

// PageCmd serves the approval page in the foreground. A server does so by itself; this is for when none runs.
type PageCmd struct{}

// Run implements the command.
func (*PageCmd) Run(ctx context.Context) error {
	s, err := open(Output{}, true)
	if err != nil {
		return err
	}
	defer s.close()
	if s.cfg.PageListen == "" {
		return fmt.Errorf("%w: page.listen is off", ErrConfig)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p, err := s.cfg.newPage(ctx, s.engine, s.ledger, s.people, log)
	if err != nil {
		return err
	}
	s.say("%s\n", p.Inbox())
	if enrolled, err := s.people.enrolled(ctx); err != nil {
		return err
	} else if !enrolled && s.cfg.OIDC == nil {
		s.say("Nobody can sign in yet: run wetink setup.\n")
	}
	go func() { _ = s.engine.Run(ctx) }()
	s.cfg.servePage(ctx, p, s.ledger, s.people, log)
	return nil
}

// servePage serves the page, and tells of what waits, in whichever process is elected to. It returns when ctx ends.
func (c Config) servePage(ctx context.Context, p *page.Server, l wetink.Ledger, who *people, log *slog.Logger) {
	elected(ctx, c.Home, log, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		var telling sync.WaitGroup
		telling.Go(func() { c.tell(ctx, p.Inbox(), l, who, log) })
		err := serveHTTP(ctx, c.PageListen, p)
		stop()
		telling.Wait()
		return err
	})
}

// newPage is the page of this home, whoever serves it: each process can make its links.
func (c Config) newPage(ctx context.Context, e *wetink.Engine, l wetink.Ledger, who *people, log *slog.Logger) (*page.Server, error) {
	push, err := c.push(who, log)
	if err != nil {
		return nil, err
	}
	signOn, err := c.OIDC.page()
	if err != nil {
		return nil, err
	}
	return page.New(ctx, c.Page.String(), e, l, who, &page.Options{
		Passkeys: pagePasskeys{who.passkeys}, Passphrases: who.passphrases, Push: push, SignOn: signOn, Render: drawn, Exclude: someRows, Why: c.why(who), Log: log,
	})
}

// drawn says how changes of a target are drawn.
func drawn(target string) *render.Options {
	if target == "intervals" {
		return &render.Options{Diff: intervals.Diff, Explain: intervals.Explain, Noun: "event"}
	}
	// Whatever name an operator gave a guarded server, its changes say themselves how they are drawn.
	return &render.Options{Diff: upstream.Diff, Explain: upstream.Explain}
}

// someRows is the request of some events of a bulk change; other actions have one row, or rows that belong together.
func someRows(c wetink.Change, keep []int) (json.RawMessage, bool) {
	var args map[string]json.RawMessage
	if c.Target != "intervals" || json.Unmarshal(c.Request.Args, &args) != nil {
		return nil, false
	}
	list := map[string]string{`"bulk_create"`: "events", `"bulk_delete"`: "event_ids"}[string(args["action"])]
	var rows, kept []json.RawMessage
	if list == "" || json.Unmarshal(args[list], &rows) != nil {
		return nil, false
	}
	for _, i := range keep {
		if i < 0 || i >= len(rows) {
			return nil, false
		}
		kept = append(kept, rows[i])
	}
	b, err := json.Marshal(kept)
	if err != nil {
		return nil, false
	}
	args[list] = b
	out, err := json.Marshal(args)
	return out, err == nil
}

// pagePasskeys is passkey.Service in the page's own types.
type pagePasskeys struct{ *passkey.Service }

// List implements page.Passkeys.
func (p pagePasskeys) List(ctx context.Context, tenant wetink.Tenant, person wetink.Person) ([]page.PasskeyInfo, error) {
	list, err := p.Service.List(ctx, tenant, person)
	out := make([]page.PasskeyInfo, 0, len(list))
	for _, i := range list {
		out = append(out, page.PasskeyInfo(i))
	}
	return out, err
}

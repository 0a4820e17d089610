package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/wetink/wetink/target/intervals/intervalssim"
)

// SimCmd serves simulators of outside systems, on loopback only.
type SimCmd struct {
	Intervals SimIntervalsCmd `cmd:"" help:"A simulated Intervals.icu with invented data: for trying, and for tests."`
}

// SimIntervalsCmd prints one line, {"url","athlete_id","api_key"}, and serves until it is stopped.
type SimIntervalsCmd struct {
	Listen string `default:"127.0.0.1:0" help:"Loopback address to listen on."`
	Empty  bool   `help:"Begin with an empty calendar instead of the demo's."`
}

// Help is shown with --help.
func (*SimIntervalsCmd) Help() string {
	return `POST /_sim/fault {"fault":"apply_then_drop@PUT#2","times":1} makes it misbehave, POST /_sim/act {"act":"edit","event_id":70010001,"set":{"name":"x"}} changes it
behind the agent's back, GET /_sim/journal tells what really changed. Faults: before_write:ACT, drop_before_apply, apply_then_drop, hold, 500_before, 500_after,
bulk_short:N, silent_ignore:FIELD, parse_drift, wrong_id, stale_read, slow:MS, 401, 403, 422, 429:SECONDS, redirect, html, truncated, clock:+16m, clear.
Acts: edit, swap_for_easy_run, pair, unpair, lock, unlock, delete, create, ftp, recompute, plan_reapply, calendar_refresh, release.`
}

// Run implements the command.
func (c *SimIntervalsCmd) Run(ctx context.Context) error {
	o := intervalssim.Options{Seed: "demo"}
	if c.Empty {
		o.Seed = ""
	}
	sim := intervalssim.New(&o)
	url, err := sim.Serve(ctx, c.Listen)
	if err != nil {
		return err
	}
	b, err := json.Marshal(map[string]string{"url": url, "athlete_id": sim.AthleteID(), "api_key": sim.APIKey()})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%s\n", b)
	<-ctx.Done()
	return nil
}

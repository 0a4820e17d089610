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

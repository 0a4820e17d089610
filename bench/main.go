// Command bench measures what a claim, a look, a start and a gateway cost, each beside its floor in the same run.
//
// Only ratios can be compared between runs: a disk's sync rate moves by half within minutes on a shared machine.
// So every slice of work is measured between two slices of its floor, the rounds are interleaved, and each
// figure is the median of the rounds. It prints a table, and with --json a line a figure.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// figure is one line of the table.
type figure struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Floor   string  `json:"floor,omitempty"` // what it is compared with
	Ratio   float64 `json:"ratio,omitempty"`
	Goal    string  `json:"goal"`
	Reached bool    `json:"reached"`
}

func main() {
	log.SetFlags(0)
	if role := os.Getenv(roleVar); role != "" {
		if err := play(role); err != nil {
			log.Fatalf("%s: %v", role, err)
		}
		return
	}
	asJSON := flag.Bool("json", false, "print a JSON line a figure")
	rows := flag.Int("rows", 1_000_000, "rows of the large ledger")
	rounds := flag.Int("rounds", 5, "rounds; each figure is their median")
	only := flag.String("only", "", `"gateway": measure that part alone`)
	flag.Parse()
	dir, err := os.MkdirTemp("", "wetink-bench-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var figures []figure
	if *only == "" {
		figures, err = run(context.Background(), dir, *rows, *rounds)
	}
	if err == nil {
		var more []figure
		more, err = gatewayFigures(dir, *rounds)
		figures = append(figures, more...)
	}
	if err != nil {
		log.Print(err)
		os.RemoveAll(dir)
		os.Exit(1)
	}
	if *asJSON {
		for _, f := range figures {
			b, err := json.Marshal(f)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s\n", b)
		}
		return
	}
	fmt.Printf("%s %s/%s, %d cores, load %s, %d rounds, large ledger of %d rows\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), loadAverage(), *rounds, *rows)
	fmt.Printf("%-44s %14s  %-34s %8s  %-14s\n", "figure", "median", "beside, in the same run", "ratio", "goal")
	for _, f := range figures {
		ratio := ""
		if f.Ratio != 0 {
			ratio = fmt.Sprintf("%.2f×", f.Ratio)
		}
		mark := ""
		switch {
		case f.Goal == "":
		case f.Reached:
			mark = "reached"
		default:
			mark = "NOT reached"
		}
		fmt.Printf("%-44s %14s  %-34s %8s  %-14s %s\n", f.Name, fmt.Sprintf("%.4g %s", f.Value, f.Unit), f.Floor, ratio, f.Goal, mark)
	}
}

func run(ctx context.Context, dir string, rows, rounds int) ([]figure, error) {
	fmt.Fprintf(os.Stderr, "filling ledgers of 1000 and %d rows…\n", rows)
	small, err := fill(ctx, filepath.Join(dir, "small"), 1000)
	if err != nil {
		return nil, err
	}
	large, err := fill(ctx, filepath.Join(dir, "large"), rows)
	if err != nil {
		return nil, err
	}
	start, err := newStart(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer start.close()

	got := map[string][]float64{}
	add := func(name string, v float64) { got[name] = append(got[name], v) }
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		for _, callers := range []int{1, 8, 64} {
			claims, floor, err := claimRate(ctx, dir, callers)
			if err != nil {
				return nil, err
			}
			name := fmt.Sprintf("durable claims, %d callers", callers)
			add(name, claims)
			add(name+" ratio", claims/floor)
		}
		a, err := statusTime(ctx, small, 1000)
		if err != nil {
			return nil, err
		}
		b, err := statusTime(ctx, large, rows)
		if err != nil {
			return nil, err
		}
		add("status small", a.Seconds()*1e6)
		add("status large", b.Seconds()*1e6)
		add("status ratio", float64(b)/float64(a))
		for home, name := range map[string]string{filepath.Dir(large): "start large", filepath.Dir(small): "start small"} {
			d, err := start.first(ctx, home)
			if err != nil {
				return nil, err
			}
			add(name, d.Seconds()*1e3)
		}
	}
	m := func(name string) float64 { return median(got[name]) }
	var out []figure
	for _, c := range []struct {
		callers int
		goal    float64
	}{{1, 0}, {8, 0}, {64, 5}} {
		name := fmt.Sprintf("durable claims, %d callers", c.callers)
		f := figure{name, m(name), "/s", "append 4 KiB + fdatasync", m(name + " ratio"), "", true}
		if c.goal > 0 {
			f.Goal, f.Reached = fmt.Sprintf("≥ %g×", c.goal), f.Ratio >= c.goal
		}
		out = append(out, f)
	}
	out = append(out,
		figure{fmt.Sprintf("status read, p50, %d rows", rows), m("status large"), "µs",
			fmt.Sprintf("%.3g µs at 1000 rows", m("status small")), m("status ratio"), "≤ 3×", m("status ratio") <= 3},
		figure{fmt.Sprintf("start to first tools/list, %d rows", rows), m("start large"), "ms",
			fmt.Sprintf("%.3g ms at 1000 rows", m("start small")), m("start large") / m("start small"), "≤ 60 ms", m("start large") <= 60},
	)
	person, err := pageFigures(ctx, dir, rounds)
	return append(out, person...), err
}

func median[T cmp.Ordered](list []T) T {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

// lasts is how long a slice of work or of its floor is measured.
const lasts = 400 * time.Millisecond

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/gateway"
	"github.com/wetink/wetink/recipes"
	"github.com/wetink/wetink/render"
	"github.com/wetink/wetink/target/upstream"
)

// Guarding names the servers that a command of the gateway is about: those of a file, or the one of a command.
type Guarding struct {
	Config  string   `help:"The file that says what is guarded; wetink.yaml in the home without one." placeholder:"FILE"`
	Only    []string `help:"Of the servers of the file, these only." placeholder:"NAME"`
	Name    string   `help:"What the server of the command is called." placeholder:"NAME"`
	Command []string `arg:"" optional:"" passthrough:"" help:"The command that starts a server, behind --; it needs no file."`
}

// load is what is guarded.
func (g Guarding) load(cfg Config) (*gateway.Config, error) {
	command := g.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) > 0 {
		if g.Config != "" || len(g.Only) > 0 {
			return nil, usage{errors.New("either a file or a command: --config and --only are about a file")}
		}
		return commandConfig(g.Name, command)
	}
	if g.Name != "" {
		return nil, usage{errors.New("--name is for the server of a command; with a file use --only")}
	}
	gc, err := loadGateway(gatewayFile(cfg, g.Config))
	if err != nil || len(g.Only) == 0 {
		return gc, err
	}
	for _, name := range g.Only {
		if !slices.ContainsFunc(gc.Servers, func(s gateway.Server) bool { return s.Name == name }) {
			return nil, usage{fmt.Errorf("no server is named %q there", name)}
		}
	}
	gc.Servers = slices.DeleteFunc(gc.Servers, func(s gateway.Server) bool { return !slices.Contains(g.Only, s.Name) })
	return gc, nil
}

func gatewayFile(cfg Config, named string) string {
	if named != "" {
		return named
	}
	return filepath.Join(cfg.Home, "wetink.yaml")
}

// loadGateway reads a wetink.yaml. Whoever can write it says who must approve, so nobody else may.
func loadGateway(name string) (*gateway.Config, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not there; write one with wetink init, or name the server's command behind --", ErrConfig, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := trusted(name, info); err != nil {
		return nil, err
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	gc, err := gateway.ParseConfig(name, src, os.LookupEnv, recipe)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return gc, nil
}

// commandConfig guards the server that a command starts: by its recipe, if there is one for it.
func commandConfig(name string, command []string) (*gateway.Config, error) {
	r, err := recipe("", command)
	if err != nil {
		return nil, err
	}
	s := gateway.Server{Upstream: gateway.Upstream{Name: name, Command: command}, Unlisted: gateway.UnlistedAsk, Version: commandVersion(command)}
	if r != nil {
		s.Recipe, s.Pass, s.Rules, s.Version = r.Name, r.Pass, r.Rules, s.Version+r.Version()
	}
	if s.Name == "" {
		if s.Name = s.Recipe; s.Name == "" {
			s.Name = commandName(command)
		}
	}
	return &gateway.Config{Servers: []gateway.Server{s}}, nil
}

// anyName are the words that say nothing of a server.
var anyName = []string{"", "npx", "node", "npm", "uv", "uvx", "pipx", "python", "python3", "docker", "podman", "run", "exec", "go", "deno", "bun",
	"index", "main", "server", "cli", "dist", "build", "bin", "src", "lib", "app"}

// commandVersion tells commands apart: what was approved for one server is not done by another of its name.
func commandVersion(command []string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(command, "\x00"))))
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// commandName is what a server is called that nobody named: the last word of its command that looks like a name.
func commandName(command []string) string {
	name := ""
	for _, w := range command {
		if strings.HasPrefix(w, "-") || strings.HasPrefix(w, "/") && name != "" {
			continue
		}
		parts := strings.FieldsFunc(strings.ToLower(w), func(r rune) bool { return r == '/' || r == '\\' })
		for len(parts) > 0 && name == "" { // a file that is named like any other is named by its folder
			last := parts[len(parts)-1]
			base := strings.Trim(notInName.ReplaceAllString(strings.TrimSuffix(last, filepath.Ext(last)), "-"), "-")
			if parts = parts[:len(parts)-1]; !slices.Contains(anyName, base) {
				name = base
			}
		}
		if name != "" {
			break
		}
	}
	if name == "" {
		name = "server"
	}
	return name[:min(len(name), 32)]
}

// recipe is gateway.Recipes for the ones that this binary carries.
func recipe(name string, command []string) (*gateway.Recipe, error) {
	var r recipes.Recipe
	var ok bool
	if name != "" {
		if r, ok = recipes.Named(name); !ok {
			return nil, fmt.Errorf("there is no recipe %q: use one of %s, or none", name, strings.Join(recipes.Names(), ", "))
		}
	} else if r, ok = recipes.For(command); !ok {
		return nil, nil
	}
	pass, rules, err := r.Parse()
	if err != nil {
		return nil, err
	}
	return &gateway.Recipe{Name: r.Name, Pass: pass, Rules: rules, Src: r.Src}, nil
}

// guarding is a gateway with the engine behind it.
type guarding struct {
	cfg     Config
	ledger  wetink.Ledger
	engine  *wetink.Engine
	guard   *gateway.Guarded
	gateway *gateway.Gateway
}

// newGuarding wires the gateway: the guard that makes changes of calls, the engine that holds the servers' tools as
// targets, and the connections through which those reach the servers. What tools were when somebody looked is in pins.
func newGuarding(cfg Config, gc *gateway.Config, pins string, l wetink.Ledger, link func(wetink.Change) string, log *slog.Logger, set func(*wetink.Options)) (*guarding, error) {
	opt := &wetink.Options{}
	set(opt)
	opt.Log = log
	g := &guarding{cfg: cfg, ledger: l}
	g.guard = gateway.NewGuarded(gc, pins, &gateway.GuardedOptions{
		Log: log, HowToApprove: howToApprove, Link: link,
		Headline: func(c wetink.Change) (string, error) {
			return render.Headline(c, &render.Options{Diff: upstream.Diff, Explain: upstream.Explain})
		},
	})
	opt.Policy = g.guard.Policy(opt.Policy)
	g.engine = wetink.New(l, g.guard.Targets(), opt)
	g.guard.Serve(g.engine, l)
	var err error
	if g.gateway, err = gateway.New(upstreams(gc), g.guard, &gateway.Options{Stderr: os.Stderr, Log: log}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	g.guard.Connect(g.gateway)
	return g, nil
}

func upstreams(gc *gateway.Config) (ups []gateway.Upstream) {
	for _, s := range gc.Servers {
		u := s.Upstream
		if len(s.Extra) > 0 {
			u.Env = append(ownEnvironment(), s.Extra...)
		}
		ups = append(ups, u)
	}
	return ups
}

// pinsFolder holds what the tools of guarded servers were when an operator looked at them.
func pinsFolder(cfg Config) string { return filepath.Join(cfg.Home, "pins") }

// ownEnvironment is that of this process, without what is ours: a guarded server has no use for it.
func ownEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "WETINK_") })
}

// WrapCmd stands between a client and a server that it would start by itself. Its stdout carries MCP only.
type WrapCmd struct {
	Listen string `placeholder:"HOST:PORT" help:"Serve over Streamable HTTP there, at /mcp, and not on the standard streams. On another address than a loopback one something in front has to check who calls."`
	Guarding
}

// Run implements the command.
func (w *WrapCmd) Run(ctx context.Context) error {
	cfg, err := LoadConfig()
	if err != nil {
		return err
	}
	gc, err := w.load(cfg)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{} // clients add their own
		}
		return a
	}}))
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
	// The page's links need the page, which needs the engine, which needs the guard: it asks for a link later.
	var link func(wetink.Change) string
	g, err := newGuarding(cfg, gc, pinsFolder(cfg), ledger, func(c wetink.Change) string {
		if link == nil {
			return ""
		}
		return link(c)
	}, log, func(o *wetink.Options) {
		if *o = *cfg.Options(who); gc.TTL > 0 {
			o.TTL = gc.TTL
		}
	})
	if err != nil {
		return err
	}
	defer g.gateway.Close()
	pages, err := cfg.newPage(ctx, g.engine, ledger, who, log)
	if err != nil {
		return err
	}
	link = cfg.link(pages, who)
	for _, s := range gc.Servers {
		log.Info("guarding", "server", s.Name, "recipe", s.Recipe, "observe", s.Observe)
	}
	if mode, err := g.engine.Mode(ctx); err == nil && mode != wetink.ModeGuarded {
		log.Info("writes are off: changes are prepared and not applied; turn them on with `wetink mode guarded`")
	}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { _ = g.engine.Run(ctx) })
	if cfg.PageListen != "" {
		beside.Go(func() { cfg.servePage(ctx, pages, ledger, who, log) })
	}
	if w.Listen != "" {
		mux := http.NewServeMux()
		mux.Handle("/mcp", g.gateway.Handler())
		err = serveHTTP(ctx, w.Listen, mux)
	} else {
		err = g.gateway.ServeStdio(ctx, os.Stdin, os.Stdout)
	}
	stop()
	beside.Wait()
	if errors.Is(err, context.Canceled) {
		return nil // the client went away
	}
	return err
}

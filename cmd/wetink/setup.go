package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/approval/passphrase"
	"github.com/wetink/wetink/approval/terminal"
	"github.com/wetink/wetink/render"
)

// SetupCmd sets up how a person approves, and connects agents. It writes files of other programs only with --write, and
// then shows the difference first.
type SetupCmd struct {
	Output
	Clients bool     `help:"Only print how to connect an agent."`
	Write   []string `placeholder:"CLIENT" help:"Add the server to the configuration of claude-desktop, claude-code, cursor or vscode, after showing what would change."`
	Wrap    []string `placeholder:"CLIENT" help:"Put the servers that this client starts behind wetink wrap, after showing what would change."`
	Undo    bool     `help:"With --write and --wrap: take it out again."`
	Yes     bool     `help:"With --write and --wrap: do not ask."`
	Reset   bool     `help:"Choose another passphrase. Approvals that were given with the old one and not used yet are void."`
}

// Run implements the command.
func (c *SetupCmd) Run(ctx context.Context) error {
	s, err := open(c.Output, false)
	if err != nil {
		return err
	}
	defer s.close()
	if len(c.Write) > 0 || len(c.Wrap) > 0 {
		return c.write(ctx, s)
	}
	if c.Undo || c.Yes {
		return usage{errors.New("--undo and --yes belong to --write and --wrap")}
	}
	if !c.Clients {
		if err := s.passphrase(ctx, c.Reset); err != nil {
			return err
		}
		if err := s.invite(ctx); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("where is this program: %w", err)
	}
	list := clients(self, s.cfg)
	if s.json {
		byName := map[string]json.RawMessage{}
		for _, c := range list {
			byName[c.name] = json.RawMessage(c.text)
		}
		return s.printJSON(map[string]any{"home": s.cfg.Home, "clients": byName})
	}
	for _, c := range list {
		s.say("%s: %s\n\n%s\n\n", c.name, c.where, c.text)
	}
	s.say("Writes are off until you run: wetink mode guarded\n")
	return nil
}

func (s *session) passphrase(ctx context.Context, again bool) error {
	if has, err := s.people.passphrases.Has(ctx, s.me.Tenant, s.me.Person); err != nil && !again {
		return err
	} else if has && !again {
		if !s.json {
			s.say("A passphrase is set up. To choose another one: wetink setup --reset\n\n")
		}
		return nil
	}
	tty, err := terminal.Open()
	if err != nil {
		return fmt.Errorf("set up a passphrase: %w (with --clients, only the configuration is printed)", err)
	}
	defer tty.Close()
	fmt.Fprintf(tty, "A passphrase of %d characters or more, such as five words. It is asked for with every approval, and stored nowhere.\n", passphrase.Min)
	first, err := terminal.AskPassphrase(ctx, tty, "Passphrase (empty: none): ")
	if err != nil {
		return err
	}
	if first.IsZero() {
		fmt.Fprintf(tty, "None was set up: approvals prove no more than that someone at a terminal of this OS user said yes (level host).\n\n")
		return nil
	}
	second, err := terminal.AskPassphrase(ctx, tty, "Once more: ")
	if err != nil {
		return err
	}
	if !bytes.Equal(first.Reveal(), second.Reveal()) {
		return usage{errors.New("the two are not the same; nothing was stored")}
	}
	if err := s.people.known(ctx, s.me.Person); err != nil {
		return err
	}
	if why, err := s.people.passphrases.Set(ctx, s.me.Tenant, s.me.Person, first); err != nil {
		return err
	} else if why != "" {
		return usage{fmt.Errorf("passphrase: %s; nothing was stored", why)}
	}
	fmt.Fprintf(tty, "Set up. From the next preview on a change waits for you, unless the configuration says otherwise.\n"+
		"It does not hold against an agent with a shell under this OS user; only a passkey does.\n\n")
	return nil
}

// write changes the clients' files: all are worked out before the first is touched.
func (c *SetupCmd) write(ctx context.Context, s *session) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("where is this program: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	all := clientFiles(self, s.cfg, os.Getenv, dir)
	var edits []edit
	for i, id := range append(slices.Clone(c.Write), c.Wrap...) {
		f, err := findClient(all, id)
		if err != nil {
			return err
		}
		var e edit
		switch wrap := i >= len(c.Write); {
		case wrap && c.Undo:
			e, err = f.unwrapping(self, os.Getenv("WETINK_HOME"))
		case wrap:
			var names []string
			if e, names, err = f.wrapping(self, os.Getenv("WETINK_HOME")); err == nil && len(names) == 0 && e.Before == nil {
				err = errNothingToWrap
			}
		case c.Undo:
			e, err = f.disconnecting()
		default:
			e, err = f.connecting()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if e.nothing() {
			s.say("%s: nothing to change in %s\n", id, f.Path)
			continue
		}
		edits = append(edits, e)
		s.say("%s: %s\n%s\n", id, f.Path, render.LineDiff(string(e.Before), string(e.After)))
	}
	if len(edits) == 0 {
		return nil
	}
	if !c.Yes {
		tty, err := terminal.Open()
		if err != nil {
			return fmt.Errorf("change the files: %w (--yes does not ask)", err)
		}
		defer tty.Close()
		answer, err := terminal.Ask(ctx, tty, "Write this? [y/N] ")
		if err != nil {
			return err
		}
		if answer != "y" && answer != "yes" {
			return errNotApproved
		}
	}
	for _, e := range edits {
		if err := e.write(); err != nil {
			return err
		}
		s.say("Wrote %s\n", e.client.Path)
	}
	return nil
}

// invite prints the one-time link with which this person gets a passkey, or another way in, on the page.
func (s *session) invite(ctx context.Context) error {
	if s.cfg.PageListen == "" || s.json {
		return nil
	}
	if err := s.people.known(ctx, s.me.Person); err != nil {
		return err
	}
	link, err := page.Invite(ctx, s.people, s.cfg.Page.String(), s.me.Tenant, s.me.Person, time.Now())
	if err != nil {
		return err
	}
	s.say("For a passkey, which no agent can use for you, open this link within an hour. It works once, while a server or `wetink page` runs:\n\n%s\n\n", link)
	return nil
}

// client is how one program is told of the server.
type client struct{ name, where, text string }

// entry is one server in a client's file.
type entry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

type vsCodeInput struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	Description string `json:"description"`
	Password    bool   `json:"password"`
}

// clients prints the whole path of this program: clients start servers without a shell's PATH.
func clients(self string, cfg Config) []client {
	calendar := func(kind, key string) map[string]entry {
		env := map[string]string{"INTERVALS_API_KEY": key, "WETINK_HOME": cfg.Home}
		if cfg.File != "" {
			env["WETINK_CONFIG"] = cfg.File
		}
		return map[string]entry{"calendar": {kind, self, []string{"calendar"}, env}}
	}
	servers := func(key string) string {
		return indented(map[string]any{"mcpServers": calendar("", key)})
	}
	return []client{
		{"Claude Desktop", "in claude_desktop_config.json (Settings, Developer, Edit Config)", servers("<your key>")},
		{"Claude Code", "in .mcp.json of a project; it takes the key from your environment", servers("${INTERVALS_API_KEY}")},
		{"Cursor", "in ~/.cursor/mcp.json", servers("<your key>")},
		{"VS Code", "in .vscode/mcp.json; it asks for the key and keeps it", indented(map[string]any{
			"inputs":  []vsCodeInput{{"promptString", "intervals-key", "Intervals.icu API key", true}},
			"servers": calendar("stdio", "${input:intervals-key}"),
		})},
	}
}

func indented(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic(err) // of maps and strings
	}
	return strings.TrimSpace(b.String())
}

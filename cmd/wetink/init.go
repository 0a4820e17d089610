package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/wetink/wetink/gateway"
)

// InitCmd asks servers for their tools and writes a wetink.yaml for them. What it can only guess is marked as a guess: it
// is for a person to read, and nothing in it is believed because a server said so.
type InitCmd struct {
	From    string   `help:"A client's configuration, whose servers are taken; of Claude Desktop, Claude Code, Cursor or VS Code." placeholder:"FILE"`
	To      string   `help:"Where to write; wetink.yaml in the home without one, - for the standard output." placeholder:"FILE"`
	Name    string   `help:"What the server of the command is called." placeholder:"NAME"`
	Command []string `arg:"" optional:"" passthrough:"" help:"The command that starts a server, behind --."`
}

// found is a server that was found, and its tools.
type found struct {
	name    string
	command []string
	env     []string // names only: values may be secrets
	url     string
	recipe  string
	tools   []toolHint
	err     error
}

// toolHint is what a server says of a tool.
type toolHint struct {
	Name        string `json:"name"`
	Annotations struct {
		ReadOnly    bool  `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
	} `json:"annotations"`
	InputSchema struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	} `json:"inputSchema"`
}

// reads is a guess by the name, for a person to look at: many servers give no hints.
func (t toolHint) reads() bool {
	return gateway.NamedAsReading(t.Name) && (t.Annotations.Destructive == nil || !*t.Annotations.Destructive)
}

// Run implements the command.
func (i *InitCmd) Run(ctx context.Context) error {
	cfg, err := LoadConfig()
	if err != nil {
		return err
	}
	list, extra, err := i.servers()
	if err != nil {
		return err
	}
	for n := range list {
		list[n].ask(ctx, extra[list[n].name])
	}
	text := initYAML(list)
	to := gatewayFile(cfg, i.To)
	if i.To == "-" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; look at what would be written with --to -, and add it by hand", to)
	}
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Printf("Written: %s\nRead it: lines marked # guess are guesses. Then: wetink check %s, wetink try TOOL JSON, and wetink setup --wrap.\n", to, to)
	return nil
}

// servers are those of the command or of the client's file; extra are the values of their variables.
func (i *InitCmd) servers() (list []found, extra map[string][]string, err error) {
	command := i.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	extra = map[string][]string{}
	switch {
	case len(command) > 0 && i.From == "":
		gc, err := commandConfig(i.Name, command)
		if err != nil {
			return nil, nil, err
		}
		return []found{{name: gc.Servers[0].Name, command: command}}, extra, nil
	case i.From == "":
		return nil, nil, usage{errors.New("name a server's command behind --, or a client's file with --from")}
	}
	b, err := os.ReadFile(i.From)
	if err != nil {
		return nil, nil, err
	}
	if b, err = hujson.Standardize(b); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", i.From, err)
	}
	type entry struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
		URL     string            `json:"url"`
	}
	var f struct {
		MCPServers map[string]entry `json:"mcpServers"`
		Servers    map[string]entry `json:"servers"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", i.From, err)
	}
	for _, entries := range []map[string]entry{f.MCPServers, f.Servers} {
		for name, e := range entries {
			s := found{name: strings.Trim(notInName.ReplaceAllString(strings.ToLower(name), "-"), "-"), url: e.URL}
			if e.Command != "" {
				s.command = append([]string{e.Command}, e.Args...)
			}
			if s.name == "" || isOurs(e.Command, e.Args) {
				continue
			}
			for k, v := range e.Env {
				s.env = append(s.env, k)
				extra[s.name] = append(extra[s.name], k+"="+v)
			}
			slices.Sort(s.env)
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("%s names no server", i.From)
	}
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.name, b.name) })
	return list, extra, nil
}

// ask lists the server's tools.
func (s *found) ask(ctx context.Context, extra []string) {
	if r, err := recipe("", s.command); err == nil && r != nil {
		s.recipe = r.Name
	}
	up := gateway.Upstream{Name: s.name, Command: s.command, URL: s.url}
	if len(extra) > 0 {
		up.Env = append(ownEnvironment(), extra...)
	}
	gw, err := gateway.New([]gateway.Upstream{up}, nil, &gateway.Options{Stderr: os.Stderr, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.err = err
		return
	}
	defer gw.Close()
	defs, err := gw.Upstream(s.name).Tools(ctx)
	if s.err = err; err != nil {
		return
	}
	for _, d := range defs {
		var t toolHint
		if err := json.Unmarshal(d, &t); err == nil {
			s.tools = append(s.tools, t)
		}
	}
}

// initYAML writes the file.
func initYAML(list []found) string {
	var b strings.Builder
	b.WriteString("# yaml-language-server: $schema=wetink.schema.json\n# (wetink check --schema > wetink.schema.json)\n")
	b.WriteString("# What is guarded, and how: see docs/gateway.md. Lines marked \"# guess\" are guesses from names and hints: read them.\n")
	b.WriteString("version: 1\nservers:\n")
	for _, s := range list {
		fmt.Fprintf(&b, "  %s:\n", s.name)
		if s.url != "" {
			fmt.Fprintf(&b, "    url: %s\n", quoteYAML(s.url))
		} else {
			words := make([]string, len(s.command))
			for i, w := range s.command {
				words[i] = quoteYAML(w)
			}
			fmt.Fprintf(&b, "    run: [%s]\n", strings.Join(words, ", "))
		}
		if len(s.env) > 0 {
			b.WriteString("    env:\n")
			for _, k := range s.env {
				fmt.Fprintf(&b, "      %s: ${%s}\n", k, k)
			}
		}
		if s.recipe != "" {
			fmt.Fprintf(&b, "    recipe: %s\n", s.recipe)
			continue
		}
		if s.err != nil {
			fmt.Fprintf(&b, "    # its tools could not be listed: %s\n", strings.ReplaceAll(s.err.Error(), "\n", " "))
			continue
		}
		var pass []string
		var guard []toolHint
		for _, t := range s.tools {
			if t.reads() {
				pass = append(pass, quoteYAML(t.Name))
			} else {
				guard = append(guard, t)
			}
		}
		if len(pass) > 0 {
			fmt.Fprintf(&b, "    pass: [%s] # guess: by their names they only read\n", strings.Join(pass, ", "))
		}
		if len(guard) > 0 {
			b.WriteString("    guard:\n")
		}
		for _, t := range guard {
			fmt.Fprintf(&b, "      %s: %s\n", quoteYAML(t.Name), s.guess(t))
		}
	}
	return b.String()
}

// guess is a rule for t: the tool that reads what it is named after, if that wants nothing that t has not, and the way back
// where t can write what was there before.
func (s found) guess(t toolHint) string {
	noun := afterVerb.ReplaceAllString(t.Name, "")
	for _, r := range s.tools {
		if !r.reads() || noun == "" || afterVerb.ReplaceAllString(r.Name, "") != noun || len(r.InputSchema.Required) == 0 {
			continue
		}
		all := true
		for _, a := range r.InputSchema.Required {
			_, has := t.InputSchema.Properties[a]
			all = all && has
		}
		if !all {
			continue
		}
		args := make([]string, len(r.InputSchema.Required))
		for i, a := range r.InputSchema.Required {
			args[i] = quoteYAML(a)
		}
		read := fmt.Sprintf("read: {%s: {%s}}", quoteYAML(r.Name), strings.Join(args, ", "))
		if updating.MatchString(t.Name) {
			return fmt.Sprintf("{%s, undo: {%s: {%s, $restore: changed}}} # guess", read, quoteYAML(t.Name), strings.Join(args, ", "))
		}
		return "{" + read + "} # guess; no undo is known"
	}
	return "# nothing is known: its call is shown as it is, and it has no undo"
}

var (
	afterVerb = regexp.MustCompile(`^[A-Za-z]+[-_]|^(get|read|update|set|edit|delete|remove|create|write|patch)`)
	updating  = regexp.MustCompile(`(?i)^(update|set|edit|patch|change|modify)`)
	plainYAML = regexp.MustCompile(`^[A-Za-z_./@][A-Za-z0-9_./@:-]*$`)
)

// quoteYAML writes a text so that it is read as that text.
func quoteYAML(s string) string {
	if plainYAML.MatchString(s) && !strings.HasSuffix(s, ":") && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off"}, strings.ToLower(s)) {
		return s
	}
	b, err := json.Marshal(s) // JSON's strings are YAML's
	if err != nil {
		return `""`
	}
	return string(b)
}

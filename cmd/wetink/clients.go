package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Files of other programs are changed by one member only. All else in them, comments and spaces too, stays as it is:
// they are JSON with comments (JWCC), and somebody wrote them by hand.

// clientFile is where a program looks for its MCP servers.
type clientFile struct {
	ID      string // as on the command line
	Path    string
	Servers string // the member that holds them
	Entry   any    // ours
	Input   any    // what VS Code asks for and keeps; nil: nothing
}

// serverName is the name of our entry.
const serverName = "calendar"

// Ways in which a file of another program cannot be changed.
var (
	errNotOurs  = errors.New("another server of that name is there")
	errNoClient = errors.New("no such client")
)

// configDir is where the desktop's programs keep their settings.
func configDir(goos string, env func(string) string) string {
	home := env("HOME")
	switch goos {
	case "windows":
		return env("APPDATA")
	case "darwin":
		return filepath.Join(home, "Library", "Application Support")
	}
	if x := env("XDG_CONFIG_HOME"); filepath.IsAbs(x) {
		return x
	}
	return filepath.Join(home, ".config")
}

// clientFiles lists the files that setup can write. Those of Claude Code and VS Code belong to the project in dir.
func clientFiles(self string, cfg Config, env func(string) string, dir string) []clientFile {
	home := env("HOME")
	if home == "" {
		home = env("USERPROFILE")
	}
	of := func(kind, key string) entry {
		e := map[string]string{"INTERVALS_API_KEY": key, "WETINK_HOME": cfg.Home}
		if cfg.File != "" {
			e["WETINK_CONFIG"] = cfg.File
		}
		return entry{kind, self, []string{"calendar"}, e}
	}
	return []clientFile{
		{"claude-desktop", filepath.Join(configDir(runtime.GOOS, env), "Claude", "claude_desktop_config.json"), "mcpServers", of("", "<your key>"), nil},
		{"claude-code", filepath.Join(dir, ".mcp.json"), "mcpServers", of("", "${INTERVALS_API_KEY}"), nil},
		{"cursor", filepath.Join(home, ".cursor", "mcp.json"), "mcpServers", of("", "<your key>"), nil},
		{"vscode", filepath.Join(dir, ".vscode", "mcp.json"), "servers", of("stdio", "${input:intervals-key}"),
			vsCodeInput{"promptString", "intervals-key", "Intervals.icu API key", true}},
	}
}

func findClient(list []clientFile, id string) (clientFile, error) {
	i := slices.IndexFunc(list, func(c clientFile) bool { return c.ID == id })
	if i < 0 {
		var known []string
		for _, c := range list {
			known = append(known, c.ID)
		}
		return clientFile{}, usage{fmt.Errorf("%q: %w; use one of %s", id, errNoClient, strings.Join(known, ", "))}
	}
	return list[i], nil
}

// read returns the file as it is; nil if there is none.
func (c clientFile) read() ([]byte, error) { return readFileOrNone(c.Path) }

func readFileOrNone(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// with is the file with our entry, and without is the file without it. Both give back what they were given when there
// is nothing to do, and refuse what is no JSON and an entry of that name that starts another program.
func (c clientFile) with(before []byte) ([]byte, error) {
	v, err := c.parse(before)
	if err != nil {
		return nil, err
	}
	if err := c.ours(v); err != nil {
		return nil, err
	}
	root := v.Value.(*hujson.Object)
	step := indentation(root)
	servers, err := member[*hujson.Object](root, c.Servers, &hujson.Object{}, step)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	if old := v.Find("/" + c.Servers + "/" + serverName); old != nil && same(*old, c.Entry) {
		return before, nil
	}
	put(servers, serverName, value(c.Entry, step, 2), step, 2)
	if c.Input != nil && c.input(v) < 0 {
		inputs, err := member[*hujson.Array](root, "inputs", &hujson.Array{}, step)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Path, err)
		}
		add(inputs, value(c.Input, step, 2), step, 2)
	}
	return v.Pack(), nil
}

func (c clientFile) without(before []byte) ([]byte, error) {
	if before == nil {
		return nil, nil
	}
	v, err := c.parse(before)
	if err != nil {
		return nil, err
	}
	if err := c.ours(v); err != nil {
		return nil, err
	}
	at := "/" + c.Servers + "/" + serverName
	if v.Find(at) == nil {
		return before, nil
	}
	if err := v.Patch([]byte(`[{"op":"remove","path":"` + at + `"}]`)); err != nil {
		return nil, err
	}
	if i := c.input(v); c.Input != nil && i >= 0 {
		if err := v.Patch(fmt.Appendf(nil, `[{"op":"remove","path":"/inputs/%d"}]`, i)); err != nil {
			return nil, err
		}
	}
	return v.Pack(), nil
}

func (c clientFile) parse(b []byte) (hujson.Value, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		b = []byte("{\n}\n")
	}
	v, err := hujson.Parse(b)
	if err != nil {
		return v, fmt.Errorf("%s: %w; mend it by hand first", c.Path, err)
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return v, fmt.Errorf("%s holds no JSON object; mend it by hand first", c.Path)
	}
	return v, nil
}

// ours refuses to touch an entry of our name that starts something else.
func (c clientFile) ours(v hujson.Value) error {
	old := v.Find("/" + c.Servers + "/" + serverName)
	if old == nil {
		return nil
	}
	var e entry
	if err := json.Unmarshal(standard(*old), &e); err != nil || len(e.Args) != 1 || e.Args[0] != "calendar" ||
		!strings.HasPrefix(strings.ToLower(filepath.Base(e.Command)), "wetink") {
		return fmt.Errorf("%s: %w: rename %q there", c.Path, errNotOurs, serverName)
	}
	return nil
}

// input is the place of our question among those of VS Code, or -1.
func (c clientFile) input(v hujson.Value) int {
	list := v.Find("/inputs")
	if list == nil {
		return -1
	}
	var inputs []vsCodeInput
	if json.Unmarshal(standard(*list), &inputs) != nil {
		return -1
	}
	return slices.IndexFunc(inputs, func(i vsCodeInput) bool { return i == c.Input })
}

func same(old hujson.Value, want any) bool {
	b, err := json.Marshal(want)
	var x, y any
	return err == nil && json.Unmarshal(standard(old), &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

func standard(v hujson.Value) []byte {
	v = v.Clone()
	v.Standardize()
	return v.Pack()
}

// indentation is that of the file's first member; two spaces if it has none.
func indentation(root *hujson.Object) string {
	if len(root.Members) > 0 {
		before := string(root.Members[0].Name.BeforeExtra)
		if i := strings.LastIndex(before, "\n"); i >= 0 && strings.TrimLeft(before[i+1:], " \t") == "" && len(before) > i+1 {
			return before[i+1:]
		}
	}
	return "  "
}

// member is the value of a member that must be an object, or a list; fresh takes the place of none.
func member[T hujson.ValueTrimmed](root *hujson.Object, name string, fresh T, step string) (found T, err error) {
	for i := range root.Members {
		if root.Members[i].Name.Value.(hujson.Literal).String() == name {
			found, ok := root.Members[i].Value.Value.(T)
			if !ok {
				return found, fmt.Errorf("%q is not what it should be; mend it by hand first", name)
			}
			return found, nil
		}
	}
	put(root, name, hujson.Value{BeforeExtra: hujson.Extra(" "), Value: fresh}, step, 1)
	return fresh, nil
}

// put sets a member, on a line of its own if it is new.
func put(o *hujson.Object, name string, v hujson.Value, step string, depth int) {
	for i := range o.Members {
		if o.Members[i].Name.Value.(hujson.Literal).String() == name {
			o.Members[i].Value.Value = v.Value
			return
		}
	}
	before, last := closing(o.AfterExtra, step, depth)
	m := hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: v}
	if n := len(o.Members); n > 0 {
		m.Value.AfterExtra = o.Members[n-1].Value.AfterExtra // a comma after the last one stays
	}
	o.Members = append(o.Members, m)
	o.AfterExtra = last
}

// add appends to a list, on a line of its own.
func add(a *hujson.Array, v hujson.Value, step string, depth int) {
	v.BeforeExtra, a.AfterExtra = closing(a.AfterExtra, step, depth)
	if n := len(a.Elements); n > 0 {
		v.AfterExtra = a.Elements[n-1].AfterExtra
	}
	a.Elements = append(a.Elements, v)
}

// closing parts what stands before a closing bracket: comments belong to what is there already, and the last line
// break to the bracket.
func closing(was hujson.Extra, step string, depth int) (before, last hujson.Extra) {
	end := bytes.LastIndexByte(was, '\n')
	if end < 0 {
		end = len(was)
		last = hujson.Extra("\n" + strings.Repeat(step, depth-1))
	} else {
		last = was[end:]
	}
	before = hujson.Extra(string(bytes.TrimRight(was[:end], " \t\r\n")) + "\n" + strings.Repeat(step, depth))
	return before, last
}

// value is JSON that is indented for the place where it will stand.
func value(of any, step string, depth int) hujson.Value {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(strings.Repeat(step, depth), step)
	if err := enc.Encode(of); err != nil {
		panic(err) // of strings and lists of them
	}
	text := strings.TrimSpace(b.String())
	v, err := hujson.Parse([]byte(" " + text))
	if err != nil {
		panic(err) // of what was encoded a line above
	}
	return v
}

// edit is one file as it is and as it would be. A nil After means that the file goes.
type edit struct {
	client        clientFile
	Before, After []byte
}

func (e edit) nothing() bool {
	return bytes.Equal(e.Before, e.After) && (e.Before == nil) == (e.After == nil)
}

// connecting adds our entry.
func (c clientFile) connecting() (edit, error) {
	before, err := c.read()
	if err != nil {
		return edit{}, err
	}
	after, err := c.with(before)
	return edit{c, before, after}, err
}

// disconnecting takes our entry away. A file that nobody else changed since becomes what it was, to the byte.
func (c clientFile) disconnecting() (edit, error) {
	now, err := c.read()
	if err != nil {
		return edit{}, err
	}
	if old, err := os.ReadFile(c.backup()); err == nil {
		if len(old) == 0 {
			old = nil // there was none
		}
		if again, err := c.with(old); err == nil && bytes.Equal(again, now) {
			return edit{c, now, old}, nil
		}
	}
	after, err := c.without(now)
	return edit{c, now, after}, err
}

func (c clientFile) backup() string { return c.Path + ".before-wetink" }

// write keeps a copy of what was there before our first change, and replaces the file whole. It refuses if somebody
// else changed it since it was read. A link is followed: the file that it points at is replaced, not the link.
func (e edit) write() error {
	c := e.client
	if now, err := c.read(); err != nil || !bytes.Equal(now, e.Before) {
		return errors.Join(err, fmt.Errorf("%s changed meanwhile; run it again", c.Path))
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return err
	}
	if e.After == nil {
		return errors.Join(os.Remove(c.Path), os.Remove(c.backup()))
	}
	path, err := filepath.EvalSymlinks(c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		path = c.Path
	} else if err != nil {
		return err
	}
	mode := fs.FileMode(0o600) // an API key may be written into it
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	kept, err := os.OpenFile(c.backup(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		_, err = kept.Write(e.Before)
		if err := errors.Join(err, kept.Close()); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrExist): // an older copy is from before our first change
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".wetink-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(e.After)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

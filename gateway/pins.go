package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictjson"
)

// Pins hold what each tool of a server was when an operator last looked: its name, title, description, schemas and
// annotations. A model acts on these texts, so a server that changes one after it was looked at (a "rug pull") is a server
// that nobody looked at: the tool is refused until the operator accepts the difference.
//
// The first list of a server that has no pins is taken as it is. Safe for concurrent use, and by several processes: the
// file is replaced as a whole.
type Pins struct {
	path string
	mu   sync.Mutex
}

// OpenPins returns the pins of a server, kept in a folder that only the operator can write.
func OpenPins(folder, server string) *Pins {
	return &Pins{path: filepath.Join(folder, server+".json")}
}

type pinFile struct {
	V     int                        `json:"v"`
	Tools map[string]json.RawMessage `json:"tools"` // what is pinned of each, canonical
}

// PinChange is a tool that is not as it was pinned. Was or Is is nil where there is none.
type PinChange struct {
	Tool    string
	Was, Is json.RawMessage
}

// Check parts a whole list of definitions in those that are as pinned and those that are not. Without pins all are, and
// are pinned now; first says so.
func (p *Pins) Check(list []json.RawMessage) (good []json.RawMessage, changed []PinChange, first bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, err := pinned(list)
	if err != nil {
		return nil, nil, false, err
	}
	f, err := p.read()
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil, true, p.write(pinFile{1, is})
	}
	if err != nil {
		return nil, nil, false, err
	}
	for _, def := range list {
		name, _ := definedName(def)
		if was, ok := f.Tools[name]; ok && bytes.Equal(was, is[name]) {
			good = append(good, def)
		} else {
			changed = append(changed, PinChange{name, f.Tools[name], is[name]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tools)) {
		if _, ok := is[name]; !ok {
			changed = append(changed, PinChange{name, f.Tools[name], nil})
		}
	}
	return good, changed, false, nil
}

// Accept pins the list as it is.
func (p *Pins) Accept(list []json.RawMessage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, err := pinned(list)
	if err != nil {
		return err
	}
	return p.write(pinFile{1, is})
}

func (p *Pins) read() (f pinFile, err error) {
	b, err := os.ReadFile(p.path)
	if err != nil {
		return f, err
	}
	if err := strictjson.Decode(b, &f, strictjson.Limits{Size: 64 << 20, Depth: 64}); err != nil || f.V != 1 {
		return f, fmt.Errorf("pins in %s cannot be read (%v): look at the server's tools again, and remove the file", p.path, err)
	}
	for name, def := range f.Tools { // the file is indented, for people who compare two of them
		var b bytes.Buffer
		if err := json.Compact(&b, def); err != nil {
			return f, err
		}
		f.Tools[name] = b.Bytes()
	}
	return f, nil
}

func (p *Pins) write(f pinFile) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(p.path), ".pins-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(b, '\n'))
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), p.path)
	}
	return err
}

// pinnedMembers are those that a model or a person acts on.
var pinnedMembers = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations"}

func pinned(list []json.RawMessage) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, def := range list {
		name, err := definedName(def)
		if err != nil {
			return nil, err
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("two tools are named %q", name)
		}
		var all map[string]any
		d := json.NewDecoder(bytes.NewReader(def))
		d.UseNumber()
		if err := d.Decode(&all); err != nil {
			return nil, fmt.Errorf("definition of %q: %w", name, err)
		}
		keep := map[string]any{}
		for _, m := range pinnedMembers {
			if v, ok := all[m]; ok {
				keep[m] = v
			}
		}
		if out[name], err = json.Marshal(keep); err != nil { // with sorted keys
			return nil, err
		}
	}
	return out, nil
}

// Digest of what is pinned of a definition.
func (c PinChange) Digest() (was, is wetink.Digest) { return sha256.Sum256(c.Was), sha256.Sum256(c.Is) }

// definedName reads the definition strictly: with a name that stands in it twice, the client and we could read two.
func definedName(def json.RawMessage) (string, error) {
	members, err := strictjson.Members(def)
	if err != nil {
		return "", fmt.Errorf("a tool's definition: %w", err)
	}
	for _, m := range members {
		if m.Name == "name" {
			var s string
			if err := json.Unmarshal(m.Value, &s); err != nil || s == "" {
				return "", errors.New("a tool's name is no text")
			}
			return s, nil
		}
	}
	return "", errors.New("a tool has no name")
}

package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/strictyaml"
)

// maxCost of one condition, in CEL's units as meter counts them: far above what a condition over some hundred operations takes, and
// reached in a fraction of a second. The payload is the agent's: without a limit it could keep a server busy. What a
// call costs is counted after it, so the last one may take longer.
const maxCost = 1_000_000

const (
	changeType   = "wetink.Change"
	undoType     = "wetink.Undo"
	opType       = "wetink.Op"
	blobType     = "wetink.Blob"
	snapshotType = "wetink.Snapshot"
	riskType     = "wetink.Risk"
)

// known are the variables, and fields what is known of their types, so that a misspelt word is found when the file is read,
// and not by the first change that it should have stopped.
var (
	known = map[string]*cel.Type{
		"change": cel.ObjectType(changeType), "ops": cel.ListType(cel.ObjectType(opType)),
		"before": cel.ListType(cel.ObjectType(snapshotType)), "account": cel.StringType, "risk": cel.ObjectType(riskType),
	}
	fields = map[string]map[string]*cel.Type{
		changeType: {"id": cel.StringType, "target": cel.StringType, "client": cel.StringType, "requester": cel.StringType, "tenant": cel.StringType,
			"account": cel.StringType, "undoes": cel.ListType(cel.StringType), "replaces": cel.StringType, "on_failure": cel.StringType,
			"warnings": cel.ListType(cel.StringType), "undo": cel.ObjectType(undoType)},
		undoType:     {"extent": cel.StringType, "for": cel.DurationType},
		opType:       {"action": cel.StringType, "object": cel.StringType, "payload": cel.DynType, "key": cel.StringType, "blobs": cel.ListType(cel.ObjectType(blobType))},
		blobType:     {"sha256": cel.StringType, "size": cel.IntType, "type": cel.StringType},
		snapshotType: {"absent": cel.BoolType, "object": cel.StringType, "body": cel.DynType},
		riskType: {"irreversible": cel.BoolType, "partial_undo": cel.BoolType, "deletes": cel.IntType, "creates": cel.IntType, "updates": cel.IntType,
			"objects": cel.IntType, "warnings": cel.IntType},
	}
	functions = []string{"has", "size", "all", "exists", "exists_one", "filter", "map", "contains", "startsWith", "endsWith", "matches",
		"int", "double", "string", "duration", "timestamp"}
)

// provider tells the checker of our types. At run time they are maps.
type provider struct{ types.Provider }

func (p provider) FindStructType(name string) (*types.Type, bool) {
	if fields[name] != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	if f := fields[name]; f != nil {
		return slices.Sorted(maps.Keys(f)), true
	}
	return p.Provider.FindStructFieldNames(name)
}

func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if f := fields[name]; f != nil {
		t, ok := f[field]
		return &types.FieldType{Type: t}, ok
	}
	return p.Provider.FindStructFieldType(name, field)
}

func environment() (*cel.Env, error) {
	base, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{cel.CustomTypeProvider(provider{base}), cel.CustomTypeAdapter(base)}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		options = append(options, cel.Variable(name, known[name]))
	}
	return cel.NewEnv(options...)
}

// fault is a mistake in a condition. Line counts from 1, column from 0, in the condition; line 0: all of it.
type fault struct {
	line, column int
	says         string
}

func compile(env *cel.Env, when string) (cel.Program, []fault) {
	tree, issues := env.Compile(when)
	if issues.Err() != nil {
		var faults []fault
		for _, e := range issues.Errors() {
			faults = append(faults, fault{e.Location.Line(), e.Location.Column(), plain(e.Message)})
		}
		return nil, faults
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, []fault{{says: fmt.Sprintf("the condition is of type %s: want true or false", t)}}
	}
	// The entries of a map have no order, and a condition that walks over them could answer differently each time. Ours have
	// one; a map that the condition itself makes would not.
	var faults []fault
	info := tree.NativeRep().SourceInfo()
	celast.PreOrderVisit(tree.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.MapKind || e.Kind() == celast.StructKind {
			at := info.GetStartLocation(e.ID())
			faults = append(faults, fault{at.Line(), at.Column(), "a condition cannot make maps or messages: use lists, as in x in [\"a\", \"b\"]"})
		}
	}))
	if faults != nil {
		return nil, faults
	}
	p, err := env.Program(tree, cel.CostLimit(maxCost), cel.CostTracking(meter{}), cel.InterruptCheckFrequency(1000))
	if err != nil {
		return nil, []fault{{says: err.Error()}}
	}
	return p, nil
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	undefined  = regexp.MustCompile(`^undefined field '([^']*)'`)
)

// plain says what the checker says of unknown words the way that this package says it of keys.
func plain(message string) string {
	if m := undeclared.FindStringSubmatch(message); m != nil {
		return strictyaml.Unknown(m[1], slices.Concat(slices.Sorted(maps.Keys(known)), functions))
	}
	if m := undefined.FindStringSubmatch(message); m != nil {
		var names []string
		for _, f := range fields {
			names = append(names, slices.Collect(maps.Keys(f))...)
		}
		slices.Sort(names)
		return strictyaml.Unknown(m[1], slices.Compact(names))
	}
	return "the condition: " + message
}

// input of all conditions for one change.
type input struct {
	values       map[string]any
	irreversible bool
}

// holds reports whether the condition holds. One that cannot be evaluated does, and err says why.
func (rule Rule) holds(ctx context.Context, in input) (bool, error) {
	if rule.program == nil {
		return true, nil
	}
	out, _, err := rule.program.ContextEval(ctx, in.values)
	if err != nil {
		return true, err
	}
	if b, ok := out.Value().(bool); ok {
		return b, nil
	}
	return true, fmt.Errorf("it is a %s, not true or false", out.Type())
}

func variables(t wetink.Terms, before []wetink.Snapshot) (input, error) {
	if len(before) != len(t.Ops) {
		return input{}, fmt.Errorf("%w: %d snapshots for %d operations", ErrRules, len(before), len(t.Ops))
	}
	ops, was := make([]ref.Val, len(t.Ops)), make([]ref.Val, len(t.Ops))
	counts := map[string]int{}
	for i, op := range t.Ops {
		counts[op.Action]++
		payload, err := value(op.Payload)
		if err != nil {
			return input{}, fmt.Errorf("%w: payload of operation %d: %w", ErrRules, i+1, err)
		}
		body, err := value(before[i].Body)
		if err != nil {
			return input{}, fmt.Errorf("%w: snapshot of operation %d: %w", ErrRules, i+1, err)
		}
		blobs := make([]ref.Val, len(op.Blobs))
		for j, b := range op.Blobs {
			blobs[j] = object(map[string]ref.Val{"sha256": types.String(b.Digest.String()), "size": types.Int(b.Size), "type": types.String(b.Type)})
		}
		ops[i] = object(map[string]ref.Val{"action": types.String(op.Action), "object": types.String(op.Object), "payload": payload,
			"key": types.String(op.Key), "blobs": list(blobs)})
		was[i] = object(map[string]ref.Val{"absent": types.Bool(before[i].Absent), "object": types.String(before[i].Object), "body": body})
	}
	warnings := make([]ref.Val, len(t.Warnings))
	for i, w := range t.Warnings {
		warnings[i] = types.String(w)
	}
	undoes := make([]ref.Val, len(t.Undoes))
	for i, u := range t.Undoes {
		undoes[i] = types.String(u.Change)
	}
	never := t.Undo.Extent == wetink.NoUndo // the engine writes it where a target promised nothing
	return input{irreversible: never, values: map[string]any{
		"account": types.String(t.Account), "ops": list(ops), "before": list(was),
		"change": object(map[string]ref.Val{
			"id": types.String(t.Change), "target": types.String(t.Target), "client": types.String(t.Client), "requester": types.String(t.Requester),
			"tenant": types.String(t.Tenant), "account": types.String(t.Account), "undoes": list(undoes), "replaces": types.String(t.Replaces),
			"on_failure": types.String(t.OnFailure), "warnings": list(warnings),
			"undo": object(map[string]ref.Val{"extent": types.String(t.Undo.Extent), "for": types.Duration{Duration: t.Undo.Until}}),
		}),
		"risk": object(map[string]ref.Val{
			"irreversible": types.Bool(never), "partial_undo": types.Bool(t.Undo.Extent == wetink.PartialUndo), "deletes": types.Int(counts["delete"]),
			"creates": types.Int(counts["create"]), "updates": types.Int(counts["update"]), "objects": types.Int(objects(t.Ops)), "warnings": types.Int(len(t.Warnings)),
		}),
	}}, nil
}

// objects counts the different ones. An Op without a name for its object is one of its own: it will make it.
func objects(ops []wetink.Op) int {
	n, seen := 0, map[string]bool{}
	for _, op := range ops {
		if op.Object == "" || !seen[op.Object] {
			n++
		}
		seen[op.Object] = true
	}
	return n
}

// value is JSON as CEL reads it, and null where there is none.
func value(raw json.RawMessage) (ref.Val, error) {
	if len(raw) == 0 {
		return types.NullValue, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its JSON")
	}
	return exact(v), nil
}

func exact(v any) ref.Val {
	switch v := v.(type) {
	case bool:
		return types.Bool(v)
	case string:
		return types.String(v)
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return types.Int(n)
		}
		f, _ := v.Float64() // beyond the range: an infinity, which is larger than every limit
		return types.Double(f)
	case []any:
		items := make([]ref.Val, len(v))
		for i := range v {
			items[i] = exact(v[i])
		}
		return list(items)
	case map[string]any:
		members := make(map[string]ref.Val, len(v))
		for k := range v {
			members[k] = exact(v[k])
		}
		return object(members)
	}
	return types.NullValue
}

// weighed is a list that knows its weight.
type weighed struct {
	traits.Lister
	weight uint64
}

func list(items []ref.Val) ref.Val {
	w := uint64(len(items))
	for _, v := range items {
		w += weight(v)
	}
	return weighed{types.NewRefValList(types.DefaultTypeAdapter, items), w}
}

// ordered is a map that is walked in the order of its keys, so that the same change always gets the same answer, and
// reaches a limit of cost at the same place. It knows its weight.
type ordered struct {
	traits.Mapper
	keys   []string
	weight uint64
}

func object(members map[string]ref.Val) ref.Val {
	m := make(map[ref.Val]ref.Val, len(members))
	w := uint64(len(members))
	for k, v := range members {
		m[types.String(k)] = v
		w += weight(types.String(k)) + weight(v)
	}
	return ordered{types.NewRefValMap(types.DefaultTypeAdapter, m), slices.Sorted(maps.Keys(members)), w}
}

// Iterator implements traits.Iterable.
func (o ordered) Iterator() traits.Iterator {
	keys := make([]ref.Val, len(o.keys))
	for i, k := range o.keys {
		keys[i] = types.String(k)
	}
	return list(keys).(traits.Lister).Iterator()
}

// meter counts what a call costs by what it gets. CEL's own count goes by the types that the checker knows, and takes any
// call on a payload for one unit, also one that copies a megabyte or compares two.
type meter struct{}

// CallCost implements cost.ActualCostEstimator.
func (meter) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	c := uint64(1)
	switch {
	case len(args) == 2 && (function == operators.Equals || function == operators.NotEquals): // it ends where one of them does
		c += min(weight(args[0]), weight(args[1]))
	case len(args) == 2 && (function == operators.In || function == operators.OldIn):
		c += weight(args[0])
		if l, ok := args[1].(traits.Lister); ok {
			n := size(l)
			c += n + min(weight(args[1]), n*weight(args[0]))
		}
	case len(args) == 2 && function == overloads.Matches:
		c += (1 + weight(args[0])) * (1 + weight(args[1]))
	default:
		for _, a := range args {
			if t := a.Type(); t == types.StringType || t == types.BytesType { // of a list or a map a call looks at one place only
				c += weight(a)
			}
		}
	}
	return &c
}

// weight is how much there is to look at in a value: its entries, and a tenth of its bytes.
func weight(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 10
	case types.Bytes:
		return uint64(len(v)) / 10
	case weighed:
		return v.weight
	case ordered:
		return v.weight
	case traits.Lister: // made by the condition: of values that are weighed
		w := size(v)
		for it := v.Iterator(); it.HasNext() == types.True; {
			w += weight(it.Next())
		}
		return w
	}
	return 0
}

func size(l traits.Lister) uint64 {
	n, _ := l.Size().(types.Int)
	return uint64(n)
}

package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Expression is CEL over args, the arguments of the call, and before, what was read.
type Expression struct {
	Text    string
	program cel.Program
}

// maxCost of one expression, in CEL's units: the arguments are the agent's, and what was read is anybody's.
const maxCost = 100_000

// environment of expressions that are looked at when something was read, and of those before.
var environment, early = sync.OnceValues(func() (*cel.Env, error) {
	return environmentOf(cel.Variable("args", members), cel.Variable("before", members))
}), sync.OnceValues(func() (*cel.Env, error) { return environmentOf(cel.Variable("args", members)) })

var members = cel.MapType(cel.StringType, cel.DynType)

func environmentOf(o ...cel.EnvOption) (*cel.Env, error) {
	text := func(name string, f func(string) (bool, error)) cel.EnvOption {
		return cel.Function(name, cel.Overload(regexp.MustCompile(`\W`).ReplaceAllString(name, "_")+"_string", []*cel.Type{cel.StringType}, cel.BoolType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				s, ok := v.Value().(string)
				if !ok {
					return types.NewErr("%s wants text", name)
				}
				b, err := f(s)
				if err != nil {
					return types.NewErr("%s: %v", name, err)
				}
				return types.Bool(b)
			})))
	}
	return cel.NewEnv(append(o,
		cel.Function("json", cel.Overload("json_dyn", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(func(v ref.Val) ref.Val {
			s, err := canonical(native(v))
			if err != nil {
				return types.NewErr("json: %v", err)
			}
			return types.String(s)
		}))),
		text("sql.readonly", sqlReadOnly), text("sql.single", sqlSingle), text("sql.unfiltered", sqlUnfiltered), text("sql.ddl", sqlDefines),
	)...)
}

// old is "$.": the value as it was, in `as`.
var old = regexp.MustCompile(`\$\.`)

func compile(text string, boolean bool, in func() (*cel.Env, error)) (*Expression, error) {
	env, err := in()
	if err != nil {
		return nil, err
	}
	tree, issues := env.Compile(old.ReplaceAllString(text, "before."))
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s", issues.Errors()[0].Message)
	}
	if t := tree.OutputType(); boolean && !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it is of type %s: want true or false", t)
	}
	p, err := env.Program(tree, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(1000))
	if err != nil {
		return nil, err
	}
	return &Expression{text, p}, nil
}

func (x *Expression) value(k known) (any, error) {
	before := k.before
	if before == nil {
		before = map[string]any{}
	}
	out, _, err := x.program.Eval(map[string]any{"args": counted(k.args), "before": counted(before)})
	if err != nil {
		return nil, err
	}
	return native(out), nil
}

// holds reports whether it is true. What cannot be evaluated is an error; what that means is for the caller to say.
func (x *Expression) holds(k known) (bool, error) {
	v, err := x.value(k)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, errors.New("it is not true or false")
	}
	return b, nil
}

// counted makes CEL numbers of JSON numbers; one that no int or double holds exactly stays the text that it is.
func counted(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = counted(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = counted(e)
		}
		return out
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if !strings.ContainsAny(v.String(), ".eE") { // of a double, its last digits would be made up
			return v.String()
		}
		if f, err := v.Float64(); err == nil && !math.IsInf(f, 0) {
			return f
		}
		return v.String()
	}
	return v
}

// native turns a CEL value into what encoding/json writes.
func native(v ref.Val) any {
	switch v := v.(type) {
	case traits.Mapper:
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			out[fmt.Sprint(k.Value())] = native(v.Get(k))
		}
		return out
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			out = append(out, native(it.Next()))
		}
		return out
	case types.Null:
		return nil
	}
	return v.Value()
}

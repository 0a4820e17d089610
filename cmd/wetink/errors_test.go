package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wetink/wetink"
)

func TestEverySentinelOfTheEngineHasANextStep(t *testing.T) {
	known := map[string]bool{}
	for _, r := range remedies {
		known[r.err.Error()] = true
	}
	n := 0
	for _, file := range []string{"errors.go", "ledger.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			v, ok := node.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, "Err") {
				return true
			}
			text := strings.Trim(v.Values[0].(*ast.CallExpr).Args[0].(*ast.BasicLit).Value, `"`)
			// A wrong token and a missing scope belong to agents: no command of a person can meet them.
			if n++; !known[text] && v.Names[0].Name != "ErrTicket" && v.Names[0].Name != "ErrScope" {
				t.Errorf("%s (%q) has no row", v.Names[0].Name, text)
			}
			return true
		})
	}
	if n < 20 {
		t.Errorf("only %d sentinels were found", n)
	}
}

func TestAnErrorShowsWhatItCarriesLikeAnyValue(t *testing.T) {
	var out, errs bytes.Buffer
	err := fmt.Errorf("apply: the service says \x1b[2J\u202eok: %w", wetink.ErrStale)
	if code := report(&out, &errs, false, err); code != codeStale || out.Len() > 0 {
		t.Errorf("exit %d, and %q", code, out.String())
	}
	if s := errs.String(); !strings.Contains(s, "[U+001B][2J[U+202E]ok") || !strings.Contains(s, "next: ") {
		t.Errorf("%q", s)
	}
}

func TestTheExitCodeSaysHowAChangeStands(t *testing.T) {
	want := map[wetink.Status]exit{
		wetink.Applied: codeDone, wetink.Rejected: codeDeclined, wetink.Superseded: codeDeclined, wetink.Expired: codeExpired,
		wetink.Failed: codeOther, wetink.Partial: codeOther,
		wetink.Pending: codeUnclear, wetink.Approved: codeUnclear, wetink.Applying: codeUnclear, wetink.InDoubt: codeUnclear,
	}
	for _, s := range wetink.Statuses() {
		code, ok := want[s]
		if got := outcome(wetink.Change{Status: s}); !ok || got != code {
			t.Errorf("%s: exit %d, want %d", s, got, code)
		}
	}
	stale := wetink.Change{Status: wetink.Failed, Steps: []wetink.Step{{Outcome: wetink.NoEffect, How: wetink.HowStale}}}
	if got := outcome(stale); got != codeStale {
		t.Errorf("stale: exit %d", got)
	}
	if !errors.As(error(outcome(stale)), new(exit)) {
		t.Error("an exit code is no error")
	}
}

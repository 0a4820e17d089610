package upstream_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every mistake is told at its place. A tab in the first column would be one of YAML, so the rules are indented by two.
func TestEveryMistakeInARuleIsToldAtItsPlace(t *testing.T) {
	for _, test := range []struct{ rule, want string }{
		{"put: 7", "1:6: put: want keys and values, of when, read, at, watch, absent, pick, show, preview, risk, ask, typed_when, bind, undo, undo_create, undo_note, as, failed, limit; anchors, aliases and tags are not read"},
		{"put: {reed: {get_x: {id}}}", `1:7: unknown word "reed": did you mean read?`},
		{"put:\n  ask: page\n  ask: deny", `3:3: mapping key "ask" already defined at [2:3]`},
		{"put: {ask: page}\nput: {ask: deny}", `2:1: mapping key "put" already defined at [1:1]`},
		{"put:\n  ask:", "2:3: ask is empty: give it a value, or leave it out"},
		{"put: {ask: sometimes}", `1:12: ask is "sometimes": want never, agent, card, page, typed, reauth, passkey, two or deny`},
		{"put: {ask: true}", "1:12: ask: want text; put it in quotes"},
		{"put: {show: html}", `1:13: show is "html": want one of file, markdown, event, post, sql, fields`},
		{"put: {limit: 0}", "1:14: limit is 0: want 1 or more applied changes a day; to allow none, use ask: deny"},
		{"put: {limit: many}", "1:14: limit: want a whole number"},
		{"put: {limit: 1.5}", "1:14: limit: want a whole number"},
		{"put: {read: {put_x: {id}}}", "1:13: put_x is called without anybody being asked: put it into `pass` if it changes nothing"},
		{"get_x: {ask: page}", "1:1: get_x stands in `pass`, too: say one or the other"},
		{"put: {read: get_x}", "1:13: read: want keys and values; anchors, aliases and tags are not read"},
		{"put: {read: {get_x: {id}, get_y: {id}}}", "1:13: read: want one tool, as in {get_x: {id}}"},
		{"put: {read: {get_x: [id]}}", "1:21: read.get_x: want keys and values; anchors, aliases and tags are not read"},
		{"put: {read: {get_x: {id: $before.id}}}", "1:26: $before is not known here: want one of args"},
		{"put: {read: {get_x: {id: $result.id}}}", "1:26: $result is not known here: want one of args"},
		{"put: {read: {get_x: {id: a $id}}}", "1:26: $id is not known here: want one of args"},
		{"put: {read: {get_x: {id: a $arg.id}}}", "1:26: $arg is not known: want $args, $before, $result or $id; a dollar that is meant is written $$"},
		{"put: {read: {get_x: {id: [$other]}}}", "1:27: $other is not known: want $args, $before, $result or $id; a dollar that is meant is written $$"},
		{"put: {read: {get_x: {id: '$args.id ~ /[/'}}}", "1:26: $args.id ~ /[/: error parsing regexp: missing closing ]: `[`"},
		{"put: {read: {get_x: {id: '$args.id ~ /a/'}}}", "1:26: $args.id ~ /a/: the pattern wants one group in brackets, which is the part that is meant"},
		{"put: {read: {get_x: {id: .inf}}}", "1:22: id: want text, a number, true, false, a list or keys and values; anchors, aliases and tags are not read"},
		{"put: {read: {get_x: {id: 0x10}}}", "1:26: id: 0x10 is no number of JSON"},
		{"put: {read: {get_x: {id: &a 1}}}", "1:22: id: want text, a number, true, false, a list or keys and values; anchors, aliases and tags are not read"},
		{"put: {read: {get_x: {id: !!str 1}}}", "1:22: id: want text, a number, true, false, a list or keys and values; anchors, aliases and tags are not read"},
		{"put: {read: {get_x: {id: 1, id: 2}}}", `1:29: mapping key "id" already defined at [1:22]`},
		{"put: {read: {get_x: {$restore: all}}}", "1:22: $restore: changed, or $restore: all, stands among the arguments of an undo"},
		{"put: {undo: {put: {$restore: some}}}", "1:20: $restore: changed, or $restore: all, stands among the arguments of an undo"},
		{"put: {undo: {put: {a: {$restore: all}}}}", "1:24: $restore: changed, or $restore: all, stands among the arguments of an undo"},
		{"put: {undo: nothing}", "1:13: undo: want keys and values; anchors, aliases and tags are not read"},
		{"put: {preview: {put: {id: $result.id, dry: true}}}", "1:27: $result is not known here: want one of args, before"},
		{"put: {preview: {put: {id, dry}}}", "1:16: put is called without anybody being asked: put it into `pass` if it changes nothing, or give the argument that makes it a dry run, as in dryRun: true"},
		{"put: {undo_create: {drop: {id}}}", "1:20: undo_create counts where nothing was before: the rule needs `read` and `absent` to see that"},
		{"put: {undo_note: far}", "1:18: undo_note says how far the undo goes: give the rule an undo, or undo: none"},
		{"put: {at: event}", "1:11: at is about what `read` returns: give the rule a read"},
		{"put: {absent: ENOENT}", "1:15: absent is about what `read` returns: give the rule a read"},
		{"put: {bind: {rev: $before.rev}}", "1:13: bind is about what `read` returns: give the rule a read"},
		{"put: {read: {get_x: {id}}, bind: {rev: }}", "1:35: rev is empty: say what goes there"},
		{"put: {read: {get_x: {id}}, bind: {rev: $args.rev}}", "1:40: $args is not known here: want one of before"},
		{"put: {read: {get_x: {id}}, watch: []}", "1:35: watch is empty: name what an approval is bound to, or leave it out for everything; with `pick`, [] binds to what that takes alone"},
		{"put: {read: {get_x: {id}}, watch: [a], undo: {put: {id, b: $before.b}}}", "1:46: $before.b is not kept: put it into `watch` or `pick`"},
		{"put: {read: {get_x: {id}}, watch: [a.b], preview: {put: {id, b: $before.a, dry: true}}}", "1:51: $before.a is not kept: put it into `watch` or `pick`"},
		{"put: {read: {get_x: {id}}, pick: {a: '('}}", "1:38: pick.a: want a pattern with one group in brackets at most (error parsing regexp: missing closing ): `(`)"},
		{"put: {read: {get_x: {id}}, pick: {a: '(a)(b)'}}", "1:38: pick.a: want a pattern with one group in brackets at most"},
		{"put: {risk: {bad: args.x}}\nget: {risk: {bad: size(args.x)}}", "2:19: bad: it is of type int: want true or false"},
		{"put: {risk: {bad: args.}}", "1:19: bad: Syntax error: no viable alternative at input '.'"},
		{"put: {risk: {bad: who.x == 1}}", "1:19: bad: undeclared reference to 'who'"},
		{"put: {when: before.x == 1}", "1:13: when: undeclared reference to 'before'"},
		{"put: {when: 7}", "1:13: when: want text; put it in quotes"},
		{"put: {as: {a: 'f($.a)'}}", "1:15: as.a: undeclared reference to 'f'"},
		{"put:\n  - ask: page\n  - ask: deny", "2:5: put: no rule behind one without `when` is ever looked at"},
		{"put: *a", "1:6: "},
	} {
		_, problems := parseOnly(test.rule)
		if len(problems) == 0 {
			t.Errorf("%s\nis read, want %s", test.rule, test.want)
			continue
		}
		if got := fmt.Sprintf("%d:%d: %s", problems[0].Line, problems[0].Column, problems[0].Says); !strings.HasPrefix(got, test.want) || len(problems) > 1 {
			t.Errorf("%s\n got %s (of %d)\nwant %s", test.rule, got, len(problems), test.want)
		}
	}
}

func TestEveryWordIsRead(t *testing.T) {
	for _, rule := range []string{
		"put:",
		"put: {}",
		`"delete repository": {ask: deny}`,
		"put: {read: {get_x: {}}}",
		"put: {read: {get_x: }}",
		"put: {read: {get_x: {id, n: 7, f: 1.50, yes: true, no: false, list: [1, $args.a, {b: $args.b.0}], text: a $args.x and $$args, price: 5$, nested: {c}}}}",
		"put: {read: {get_x: {id: '$args.url ~ /issues\\/([0-9]+)$/'}}}",
		"put:\n  read: {get_x: {id}}\n  undo:\n    put:\n      id:\n      note: |\n        two\n        lines",
		"put: {undo: none, undo_note: it cannot be taken back}",
		"put: {when: true, ask: page}",
		"put: {risk: {always: true, sometimes: 'args.x'}}",
		"put: {read: {get_x: {id}}, watch: a, undo: {put: {id, a: $before.a.b}}}",
		"put: {read: {get_x: {id}}, watch: [a.b], undo: {put: {id, b: $before.a.b}}}",
	} {
		if _, problems := parseOnly(rule); len(problems) > 0 {
			t.Errorf("%s: %v", rule, problems)
		}
	}
}

// Whatever stands in a file, it is read or refused with a place in it, and never both.
func FuzzParseRules(f *testing.F) {
	src, err := os.ReadFile("grammar_test.go")
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\{"(put.*)", "`).FindAllSubmatch(src, -1) {
		f.Add(strings.ReplaceAll(string(m[1]), `\n`, "\n"))
	}
	f.Add(recordRules)
	f.Add("\r\r0")
	f.Fuzz(func(t *testing.T, src string) {
		rules, problems := parseOnly(src)
		lines := strings.Count(src, "\n") + strings.Count(src, "\r") + 1 // each ends a line of YAML
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines+1 || p.Column < 1 || p.Says == "" {
				t.Errorf("a mistake at %d:%d of %d lines: %q", p.Line, p.Column, lines, p.Says)
			}
		}
		if len(problems) > 0 {
			return
		}
		for tool, list := range rules {
			for _, rule := range list {
				if rule == nil {
					t.Fatalf("%s has a rule that is none", tool)
				}
				if rule.Read != nil && !strings.HasPrefix(rule.Read.Tool, "get_") && !strings.HasPrefix(rule.Read.Tool, "read_") && !strings.HasPrefix(rule.Read.Tool, "try_") {
					t.Errorf("%s would be called without anybody being asked", rule.Read.Tool)
				}
			}
		}
	})
}

package upstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	pgquery "github.com/wasilibs/go-pgquery"
)

// What SQL does is asked of PostgreSQL's own parser and never of the words in it: a keyword may stand in a text, in a
// comment, behind a second semicolon or inside WITH.

// sqlReadOnly reports whether each statement only reads: SELECT without INTO, locks, statements in WITH that write, or
// functions that are not known to change nothing; SHOW; EXPLAIN of such a SELECT, or of anything without ANALYZE.
func sqlReadOnly(sql string) (bool, error) {
	list, err := statements(sql)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(list, func(s statement) bool { return !s.reads() }), nil
}

// sqlSingle reports whether it is one statement. What stands behind a second semicolon is run by a server that only puts
// EXPLAIN in front of a text.
func sqlSingle(sql string) (bool, error) {
	list, err := statements(sql)
	return len(list) == 1, err
}

// sqlUnfiltered reports whether some UPDATE or DELETE, however deep, has no WHERE, or a table is emptied.
func sqlUnfiltered(sql string) (bool, error) {
	return anywhere(sql, func(kind string, body map[string]any) bool {
		switch kind {
		case "UpdateStmt", "DeleteStmt":
			return constant(body["whereClause"])
		case "TruncateStmt":
			return true
		}
		return false
	})
}

// sqlDefines reports whether some statement changes definitions, rights or settings, or runs code that may.
func sqlDefines(sql string) (bool, error) {
	return anywhere(sql, func(kind string, _ map[string]any) bool {
		if !strings.HasSuffix(kind, "Stmt") || kind[0] < 'A' || kind[0] > 'Z' { // a member, such as selectStmt, is no node
			return false
		}
		return !slices.Contains([]string{"RawStmt", "SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt", "ExplainStmt",
			"VariableShowStmt", "TransactionStmt", "CopyStmt", "PrepareStmt", "ExecuteStmt", "DeallocateStmt", "ReturnStmt"}, kind)
	})
}

type statement struct {
	kind string
	body map[string]any
}

func statements(sql string) ([]statement, error) {
	text, err := pgquery.ParseToJSON(sql)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL's parser refuses it: %w", err)
	}
	var tree struct {
		Stmts []struct {
			Stmt map[string]map[string]any `json:"stmt"`
		} `json:"stmts"`
	}
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		return nil, err
	}
	var list []statement
	for _, s := range tree.Stmts {
		for kind, body := range s.Stmt {
			list = append(list, statement{kind, body})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no statement in it")
	}
	return list, nil
}

func anywhere(sql string, is func(kind string, body map[string]any) bool) (bool, error) {
	list, err := statements(sql)
	if err != nil {
		return false, err
	}
	for _, s := range list {
		if is(s.kind, s.body) || inside(s.body, is) {
			return true, nil
		}
	}
	return false, nil
}

// inside looks through all nodes of a tree: {"Kind": {members}}.
func inside(v any, is func(kind string, body map[string]any) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if body, ok := e.(map[string]any); ok && is(k, body) || inside(e, is) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return inside(e, is) })
	}
	return false
}

func (s statement) reads() bool {
	writes := func(kind string, body map[string]any) bool {
		switch kind {
		case "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt", "LockingClause", "IntoClause", "intoClause":
			return true
		case "FuncCall":
			return !harmless(body)
		}
		return false
	}
	switch s.kind {
	case "VariableShowStmt":
		return true
	case "SelectStmt":
		return !inside(s.body, writes)
	case "ExplainStmt":
		runs := inside(s.body["options"], func(kind string, body map[string]any) bool {
			return kind == "DefElem" && body["defname"] == "analyze"
		})
		return !runs || !inside(s.body["query"], writes)
	}
	return false
}

// pure functions change nothing, whatever they are given. Any other may be one that somebody wrote.
var pure = strings.Fields(`count sum avg min max array_agg string_agg json_agg jsonb_agg bool_and bool_or stddev variance percentile_cont
	lower upper length char_length substring substr trim btrim ltrim rtrim replace concat concat_ws left right split_part strpos position
	initcap reverse repeat lpad rpad md5 format to_char to_date to_timestamp to_number date_trunc date_part extract age now timezone
	make_date abs ceil ceiling floor round trunc mod power sqrt sign random generate_series unnest array_length array_to_string
	string_to_array cardinality json_build_object jsonb_build_object json_extract_path_text jsonb_array_elements jsonb_array_elements_text
	json_array_elements jsonb_each jsonb_object_keys row_number rank dense_rank lag lead first_value last_value ntile
	pg_size_pretty pg_total_relation_size pg_relation_size pg_database_size current_database version`)

func harmless(body map[string]any) bool {
	names, _ := body["funcname"].([]any)
	var path []string
	for _, n := range names {
		s, _ := look(n, []string{"String", "sval"})
		name, ok := s.(string)
		if !ok {
			return false
		}
		path = append(path, name)
	}
	if len(path) == 2 && path[0] == "pg_catalog" {
		path = path[1:]
	}
	return len(path) == 1 && slices.Contains(pure, path[0])
}

// constant reports a condition that names no column, and so chooses nothing: none, true, 1 = 1.
func constant(where any) bool {
	return where == nil || !inside(where, func(kind string, _ map[string]any) bool { return kind == "ColumnRef" })
}

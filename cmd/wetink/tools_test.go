package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/mcpserver"
	"github.com/wetink/wetink/target/intervals"
	"github.com/wetink/wetink/wetinktest"
)

var update = flag.Bool("update", false, "rewrite the committed copies in testdata")

// The list of tools is a security boundary: whatever changes in it is to be seen in review.
func TestCalendarToolsAreTheCommittedOnes(t *testing.T) {
	client := intervals.NewClient("http://127.0.0.1:1", intervals.NewKey("k"), "")
	e := wetink.New(wetinktest.NewLedger(), map[string]wetink.Target{"intervals": intervals.New(client, nil)}, nil)
	here, there := mcp.NewInMemoryTransports()
	if _, err := mcpserver.New(e, calendarSurface(client), nil).Connect(context.Background(), there, nil); err != nil {
		t.Fatal(err)
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(context.Background(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(list.Tools, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "tools.json")
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != string(got)+"\n" {
		t.Errorf("the tools differ from %s (%v); look at the difference, then run with -update", path, err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if slices.Contains([]string{"create_event", "create_events_bulk", "update_event", "delete_event", "delete_events_bulk"}, tool.Name) {
			t.Errorf("the direct mutator %s is a tool", tool.Name)
		}
		writes := tool.Annotations.DestructiveHint != nil && *tool.Annotations.DestructiveHint
		if want := slices.Contains([]string{"apply_event_change", "undo_event_change"}, tool.Name); writes != want {
			t.Errorf("%s: destructive %t", tool.Name, writes)
		}
	}
	slices.Sort(names)
	all := []string{"apply_event_change", "get_activity", "get_activity_intervals", "get_activity_streams", "get_athlete", "get_event",
		"get_event_change_status", "get_fitness", "get_power_curves", "get_sport_settings", "get_wellness", "list_activities", "list_events",
		"list_workouts", "preview_event_change", "undo_event_change"}
	if !slices.Equal(names, all) {
		t.Errorf("tools %v", names)
	}
}

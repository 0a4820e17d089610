package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// notesServer is an MCP server as anybody might write one: notes in files, JSON in a text, and hints that say nothing. What
// it really does is in its folder. Variables make it misbehave:
//
//	NOTES_SAYS      stands behind the description of update_note
//	NOTES_DIES      ends the process after the next write, before its answer; the file it names is removed then
//	NOTES_EXTRA     name of one more tool
const (
	notesFolder = "NOTES_FOLDER"
	notesSays   = "NOTES_SAYS"
	notesDies   = "NOTES_DIES"
	notesExtra  = "NOTES_EXTRA"
)

type note struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

func notesServer() error {
	folder := os.Getenv(notesFolder)
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	path := func(id string) (string, error) {
		if id == "" || strings.ContainsAny(id, `/\.`) {
			return "", errors.New("no such note")
		}
		return filepath.Join(folder, id+".json"), nil
	}
	load := func(id string) (n note, err error) {
		p, err := path(id)
		if err != nil {
			return n, err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return n, fmt.Errorf("no such note: %s", id)
		}
		return n, json.Unmarshal(b, &n)
	}
	store := func(n note) error {
		p, err := path(n.ID)
		if err != nil {
			return err
		}
		b, err := json.Marshal(n)
		if err != nil {
			return err
		}
		if err := os.WriteFile(p, b, 0o600); err != nil {
			return err
		}
		if f := os.Getenv(notesDies); f != "" && os.Remove(f) == nil {
			os.Exit(3)
		}
		return nil
	}
	answer := func(v any, err error) (*mcp.CallToolResult, any, error) {
		if err != nil {
			return nil, nil, err
		}
		b, err := json.Marshal(v)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(b)}}}, nil, err
	}
	type byID struct {
		ID string `json:"id"`
	}
	type change struct {
		ID    string  `json:"id"`
		Title *string `json:"title,omitempty"`
		Body  *string `json:"body,omitempty"`
	}
	type create struct {
		Title string `json:"title"`
		Body  string `json:"body"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "get_note", Description: "Reads a note.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in byID) (*mcp.CallToolResult, any, error) {
			return answer(load(in.ID))
		})
	mcp.AddTool(s, &mcp.Tool{Name: "update_note", Description: "Changes a note." + os.Getenv(notesSays)},
		func(_ context.Context, _ *mcp.CallToolRequest, in change) (*mcp.CallToolResult, any, error) {
			n, err := load(in.ID)
			if err != nil {
				return answer(nil, err)
			}
			if in.Title != nil {
				n.Title = *in.Title
			}
			if in.Body != nil {
				n.Body = *in.Body
			}
			return answer(map[string]string{"status": "ok"}, store(n))
		})
	mcp.AddTool(s, &mcp.Tool{Name: "create_note", Description: "Writes a new note."},
		func(_ context.Context, _ *mcp.CallToolRequest, in create) (*mcp.CallToolResult, any, error) {
			n := note{fmt.Sprintf("n%d", os.Getpid()), in.Title, in.Body}
			return answer(n, store(n))
		})
	mcp.AddTool(s, &mcp.Tool{Name: "delete_note", Description: "Deletes a note."},
		func(_ context.Context, _ *mcp.CallToolRequest, in byID) (*mcp.CallToolResult, any, error) {
			p, err := path(in.ID)
			if err == nil {
				err = os.Remove(p)
			}
			return answer(map[string]string{"status": "gone"}, err)
		})
	if name := os.Getenv(notesExtra); name != "" {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Ours, too."},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return answer("the upstream's", nil)
			})
	}
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/render"
)

// changeJSON is a Change as --json prints it: what is shown to a person, field by field. It holds no token.
type changeJSON struct {
	ID        wetink.ChangeID   `json:"id"`
	Status    string            `json:"status"` // wetink.Shown
	State     wetink.Status     `json:"state"`
	Headline  string            `json:"headline"`
	Target    string            `json:"target"`
	Account   wetink.Account    `json:"account"`
	Client    string            `json:"client"`
	Requester wetink.Person     `json:"requester,omitempty"`
	Require   wetink.Require    `json:"require"`
	Expires   time.Time         `json:"expires_at"`
	StartBy   time.Time         `json:"start_by"`
	Created   time.Time         `json:"created_at"`
	Updated   time.Time         `json:"updated_at"`
	Why       string            `json:"why,omitempty"`
	Undoes    []wetink.ChangeID `json:"undoes,omitempty"`
	UndoneBy  wetink.ChangeID   `json:"undone_by,omitempty"`
	Replaces  wetink.ChangeID   `json:"replaces,omitempty"`
	Warnings  []string          `json:"warnings,omitempty"`
	OnFailure wetink.OnFailure  `json:"on_failure"`
	Undo      undoJSON          `json:"undo"`
	Ops       []opJSON          `json:"ops"`
	Approvals []approvalJSON    `json:"approvals,omitempty"`
	SHA256    *wetink.Digest    `json:"sha256,omitempty"` // of the Statement; status leaves it out
}

type undoJSON struct {
	Extent  wetink.Extent `json:"extent"`
	Seconds int64         `json:"seconds,omitempty"`
	Notes   []string      `json:"notes,omitempty"`
}

type opJSON struct {
	Op      int                  `json:"op"` // from 1, as it is shown
	Action  string               `json:"action"`
	Object  string               `json:"object,omitempty"`
	Diff    []wetink.FieldChange `json:"diff"`
	Outcome wetink.Outcome       `json:"outcome,omitempty"`
	How     string               `json:"how,omitempty"`
	Why     string               `json:"why,omitempty"`
}

type approvalJSON struct {
	Level    wetink.Level  `json:"level"`
	Kind     string        `json:"kind"`
	By       wetink.Person `json:"by,omitempty"`
	At       time.Time     `json:"at"`
	Sentence string        `json:"sentence"`
}

func (s *session) toJSON(v render.View) (changeJSON, error) {
	c := v.Change
	t, err := c.Terms()
	if err != nil {
		return changeJSON{}, err
	}
	o := s.options(c, s.out)
	head, err := render.Headline(c, o)
	if err != nil {
		return changeJSON{}, err
	}
	diff := o.Diff
	if diff == nil {
		diff = wetink.Diff
	}
	sum := c.Statement.Digest()
	j := changeJSON{
		ID: c.ID, Status: wetink.Shown(c, v.Undo), State: c.Status, Headline: head,
		Target: t.Target, Account: t.Account, Client: t.Client, Requester: t.Requester, Require: t.Require,
		Expires: t.Expires, StartBy: t.StartBy, Created: c.Created, Updated: c.Updated, Why: c.Why,
		Replaces: t.Replaces, Warnings: t.Warnings, OnFailure: t.OnFailure,
		Undo: undoJSON{t.Undo.Extent, int64(t.Undo.Until / time.Second), t.Undo.Notes}, SHA256: &sum,
	}
	for _, u := range t.Undoes {
		j.Undoes = append(j.Undoes, u.Change)
	}
	if v.Undo != nil {
		j.UndoneBy = v.Undo.ID
	}
	for i, op := range t.Ops {
		row := opJSON{Op: i + 1, Action: op.Action, Object: op.Object, Diff: diff(op, c.Before[i])}
		if step, ok := c.StepOf(i); ok {
			row.Outcome, row.How, row.Why = step.Outcome, step.How, step.Why
		}
		j.Ops = append(j.Ops, row)
	}
	for _, a := range c.Approvals {
		j.Approvals = append(j.Approvals, approvalJSON{a.Level, a.Evidence.Kind, a.Evidence.By, a.At, a.Sentence()})
	}
	return j, nil
}

func (s *session) printChange(v render.View) error {
	j, err := s.toJSON(v)
	if err != nil {
		return err
	}
	return s.printJSON(j)
}

func (s *session) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return s.printLine(b.Bytes())
}

// printLine writes a line of JSON as it is; to a terminal with everything escaped that a terminal could obey or
// a person not see, which JSON allows inside its strings.
func (s *session) printLine(line []byte) error {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if isTerminal(s.out) {
		var b bytes.Buffer
		for _, r := range string(line) {
			switch {
			case r < 0x80 && r != 0x7f:
				b.WriteRune(r)
			case r > 0xffff:
				r -= 0x10000
				fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			default:
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		}
		line = b.Bytes()
	}
	_, err := fmt.Fprintf(s.out, "%s\n", line)
	return err
}

package mcpserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/wetinktest"
)

// Every state that a change can be in, as status shows it: the right word, a next step, and no secret or hash.
func TestStatusInEveryStateHoldsNoSecret(t *testing.T) {
	twoOps := `{"ops":[{"action":"create","object":"1","set":{"n":1}},{"action":"create","object":"2","set":{"n":1}}]}`
	lost := errors.New("connection reset")
	for want, reach := range map[string]func(c *client, p map[string]any){
		"pending":    func(*client, map[string]any) {},
		"applied":    func(c *client, p map[string]any) { c.apply(p) },
		"superseded": func(c *client, p map[string]any) { c.replace(p) },
		"rejected": func(c *client, p map[string]any) {
			if _, err := c.kit.Reject(ctx, wetinktest.By, id(p), "no"); err != nil {
				c.t.Fatal(err)
			}
		},
		"apply_failed": func(c *client, p map[string]any) {
			c.kit.Target.OnExecute = func(int, wetink.Op, func() error) error { return wetink.ErrNotApplied }
			c.apply(p)
		},
		"apply_in_doubt": func(c *client, p map[string]any) {
			c.kit.Target.OnExecute = func(int, wetink.Op, func() error) error { return lost }
			c.apply(p)
		},
		"apply_partial": func(c *client, p map[string]any) {
			c.kit.Target.OnExecute = func(n int, _ wetink.Op, do func() error) error {
				if n == 2 {
					return fmt.Errorf("422: %w", wetink.ErrNotApplied)
				}
				return do()
			}
			c.apply(p)
		},
		"undone":      func(c *client, p map[string]any) { c.undo(p, nil) },
		"undo_failed": func(c *client, p map[string]any) { c.undo(p, func(func() error) error { return wetink.ErrNotApplied }) },
		"undo_in_doubt": func(c *client, p map[string]any) {
			c.undo(p, func(func() error) error { return lost })
		},
		"undo_partial": func(c *client, p map[string]any) {
			n := 0
			c.undo(p, func(do func() error) error {
				if n++; n == 2 {
					return fmt.Errorf("422: %w", wetink.ErrNotApplied)
				}
				return do()
			})
		},
		"approved": func(c *client, p map[string]any) {
			ev := wetink.Evidence{Kind: wetink.EvidenceTicket, Ticket: wetink.PresentedTicket(p["confirmation_token"].(string))}
			if _, err := c.kit.Approve(ctx, wetinktest.By, id(p), ev); err != nil {
				c.t.Fatal(err)
			}
		},
		"applying": func(c *client, p map[string]any) { c.hang(func() { c.apply(p) }) },
		"undoing": func(c *client, p map[string]any) {
			token := c.apply(p)["undo_token"]
			c.hang(func() {
				c.call("undo_event_change", fmt.Sprintf(`{"operation_id":%q,"undo_token":%q}`, p["preview_id"], token))
			})
		},
		"expired": func(c *client, p map[string]any) {
			c.pass(p)
			c.apply(p)
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			o := agentLevel()
			if want == "expired" {
				o.TTL = time.Nanosecond
			}
			c := connect(t, o)
			p, _ := c.call("preview_event_change", twoOps)
			reach(c, p)
			s, res := c.call("get_event_change_status", `{"operation_id":"`+string(id(p))+`"}`)
			if s["status"] != want || s["next_step"] == "" {
				t.Errorf("%v", s)
			}
			change, err := c.kit.Ledger.Get(ctx, "", id(p))
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			secrets := []string{p["confirmation_token"].(string), "confirm_", "undo_token", change.Statement.Digest().String(), change.Claim.ID}
			for _, sealed := range change.Tickets {
				secrets = append(secrets, sealed.Hash.String())
			}
			for _, secret := range secrets {
				if secret != "" && strings.Contains(string(b), secret) {
					t.Errorf("it holds %q: %s", secret, b)
				}
			}
		})
	}
}

func id(p map[string]any) wetink.ChangeID { return wetink.ChangeID(p["preview_id"].(string)) }

func (c *client) apply(p map[string]any) map[string]any {
	a, _ := c.call("apply_event_change", fmt.Sprintf(`{"preview_id":%q,"confirmation_token":%q}`, p["preview_id"], p["confirmation_token"]))
	return a
}

func (c *client) undo(p map[string]any, execute func(do func() error) error) {
	a := c.apply(p)
	if execute != nil {
		c.kit.Target.OnExecute = func(_ int, _ wetink.Op, do func() error) error { return execute(do) }
	}
	c.call("undo_event_change", fmt.Sprintf(`{"operation_id":%q,"undo_token":%q}`, p["preview_id"], a["undo_token"]))
}

// pass returns once the ledger's clock, which counts milliseconds, is past the end of a preview that lived for less.
func (c *client) pass(p map[string]any) {
	change, err := c.kit.Ledger.Get(ctx, "", id(p))
	for now := change.Created; err == nil && !now.After(change.Created); {
		now, err = c.kit.Ledger.Now(ctx)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// hang makes a call that stays in its first send until the test is over.
func (c *client) hang(call func()) {
	sending, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.kit.Target.OnExecute = func(_ int, _ wetink.Op, do func() error) error {
		once.Do(func() { close(sending) })
		<-release
		return do()
	}
	go func() {
		defer close(done)
		call()
	}()
	c.t.Cleanup(func() {
		close(release)
		<-done
	})
	<-sending
}

func (c *client) replace(p map[string]any) {
	if _, _, err := c.kit.Replace(ctx, wetinktest.By, id(p), nil); err != nil {
		c.t.Fatal(err)
	}
}

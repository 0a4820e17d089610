package intervals

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/wetink/wetink"
)

// The direct mutators change the calendar at once: no preview, no approval, no undo. They are for trusted Go code
// that a person runs. No tool of this project calls them, and a test holds the tool list against that.
//
// Their errors are those of Target.Execute: only one that wraps wetink.ErrNotApplied proves that nothing was
// written. Nothing is sent again.

// CreateEvent creates one event from the fields of the service's schema, and returns it as it came back.
func (c *Client) CreateEvent(ctx context.Context, fields json.RawMessage) (json.RawMessage, error) {
	return c.write(ctx, http.MethodPost, c.events(""), fields)
}

// CreateEvents creates several. One with the external_id of an event that this key created replaces it.
func (c *Client) CreateEvents(ctx context.Context, list []json.RawMessage) ([]json.RawMessage, error) {
	b, err := marshal(list)
	if err != nil {
		return nil, fmt.Errorf("create events: %w: %w", err, wetink.ErrNotApplied)
	}
	b, err = c.write(ctx, http.MethodPost, c.events("/bulk?upsert=true"), b)
	if err != nil {
		return nil, err
	}
	var out []json.RawMessage
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, &AnswerError{http.StatusOK, "not a list of events"}
	}
	return out, nil
}

// UpdateEvent writes the given fields and leaves the others.
func (c *Client) UpdateEvent(ctx context.Context, id int64, fields json.RawMessage) (json.RawMessage, error) {
	return c.write(ctx, http.MethodPut, c.events("/"+strconv.FormatInt(id, 10)), fields)
}

// DeleteEvent deletes one event.
func (c *Client) DeleteEvent(ctx context.Context, id int64) error {
	_, err := c.write(ctx, http.MethodDelete, c.events("/"+strconv.FormatInt(id, 10)), nil)
	return err
}

// DeleteEvents deletes events by their ids, never by a range, and returns how many there were to delete: the
// service passes over ids that it does not know.
func (c *Client) DeleteEvents(ctx context.Context, ids []int64) (deleted int, err error) {
	var body bytes.Buffer
	for i, id := range ids {
		fmt.Fprintf(&body, "%c{\"id\":%d}", "[,"[min(i, 1)], id)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	body.WriteByte(']')
	b, err := c.write(ctx, http.MethodPut, c.events("/bulk-delete"), body.Bytes())
	if err != nil {
		return 0, err
	}
	var answer struct {
		Deleted *int `json:"eventsDeleted"`
	}
	if json.Unmarshal(b, &answer) != nil || answer.Deleted == nil {
		return 0, &AnswerError{http.StatusOK, "no count of deleted events"}
	}
	return *answer.Deleted, nil
}

func (c *Client) events(rest string) string {
	return "/athlete/" + url.PathEscape(c.athlete) + "/events" + rest
}

package intervals

import (
	"context"
	"encoding/json"
	"net/url"
)

// Events lists what overlaps the days from oldest to newest, both inclusive, YYYY-MM-DD; category may be "".
func (c *Client) Events(ctx context.Context, oldest, newest, category string) ([]json.RawMessage, error) {
	q := url.Values{"oldest": {oldest}, "newest": {newest}}
	if category != "" {
		q.Set("category", category)
	}
	var list []json.RawMessage
	err := c.get(ctx, "/athlete/"+url.PathEscape(c.athlete)+"/events", q, &list)
	return list, err
}

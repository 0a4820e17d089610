package intervals

import "time"

// SetClock lets a test decide what "today" is for reads.
func (c *Client) SetClock(now func() time.Time) { c.now = now }

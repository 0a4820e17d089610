package intervalssim

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// authenticate finds whose credentials these are and whom the path is about.
func (s *Sim) authenticate(c *call, area string) *failure {
	user, password, basic := c.r.BasicAuth()
	bearer, isBearer := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	switch {
	case basic && user == "API_KEY":
		c.owner = s.byKey(password)
		if c.owner == nil {
			return refuse(401, "Unauthorized")
		}
		c.client = "key:" + c.owner.id
	case isBearer && s.byKey(bearer) != nil:
		return refuse(403, "Access denied") // an API key is no token
	case isBearer:
		t, ok := s.tokens[bearer]
		if !ok {
			return refuse(401, "Unauthorized")
		}
		c.owner, c.scopes, c.oauth = t.athlete, t.scopes, t.client
		c.client = fmt.Sprintf("oauth:%d", t.client)
	default:
		return refuse(401, "Unauthorized")
	}
	if c.scopes != nil && !c.allowed(area) {
		return refuse(403, "Access denied: missing scope for "+area)
	}
	c.a = c.owner
	if !strings.HasPrefix(c.r.URL.Path, "/api/v1/athlete/") {
		return nil
	}
	if id := c.r.PathValue("id"); id != "0" && id != c.owner.id {
		return refuse(403, "Access denied") // also for an athlete that does not exist
	}
	return nil
}

func (c *call) allowed(area string) bool {
	if c.scopes[area+":WRITE"] {
		return true
	}
	return c.method == http.MethodGet && c.scopes[area+":READ"]
}

func (s *Sim) byKey(key string) *athlete {
	for _, a := range s.athletes {
		if subtle.ConstantTimeCompare([]byte(a.key), []byte(key)) == 1 {
			return a
		}
	}
	return nil
}

// quota counts an athlete's requests in fixed windows.
type quota struct {
	quarter, day           time.Time
	inQuarter, inDay       int
	leftQuarter, leftDay   int
	limitQuarter, limitDay int
}

// burst tells whether this request is one too many in its second. The service limits it by address, before anything else.
func (s *Sim) burst() bool {
	if t := s.now().Truncate(time.Second); !t.Equal(s.second) {
		s.second, s.inSecond = t, 0
	}
	s.inSecond++
	return s.opts.BurstPerSecond > 0 && s.inSecond > s.opts.BurstPerSecond
}

// exhausted says for how long.
type exhausted struct{ seconds int }

// count counts one request of a's.
func (s *Sim) count(a *athlete) (quota, *exhausted) {
	now := s.now().UTC()
	q := &a.quota
	if t := now.Truncate(15 * time.Minute); !t.Equal(q.quarter) {
		q.quarter, q.inQuarter = t, 0
	}
	if t := now.Truncate(24 * time.Hour); !t.Equal(q.day) {
		q.day, q.inDay = t, 0
	}
	q.inQuarter++
	q.inDay++
	q.limitQuarter, q.limitDay = s.opts.QuotaQuarter, s.opts.QuotaDay
	q.leftQuarter, q.leftDay = max(0, q.limitQuarter-q.inQuarter), max(0, q.limitDay-q.inDay)
	if !s.opts.EnforceQuota {
		return *q, nil
	}
	var until time.Time
	switch {
	case q.inDay > q.limitDay:
		until = q.day.Add(24 * time.Hour)
	case q.inQuarter > q.limitQuarter:
		until = q.quarter.Add(15 * time.Minute)
	default:
		return *q, nil
	}
	return *q, &exhausted{seconds: int(until.Sub(now).Seconds()) + 1}
}

func (q quota) set(h http.Header) {
	h.Set("X-RateLimit-Limit", fmt.Sprintf("%d,%d", q.limitQuarter, q.limitDay))
	h.Set("X-RateLimit-Remaining", fmt.Sprintf("%d,%d", q.leftQuarter, q.leftDay))
}

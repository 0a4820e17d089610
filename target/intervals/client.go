package intervals

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wetink/wetink"
)

// Key is an API key. It prints as [redacted].
//
// It holds a function and not the text: fmt calls no method on unexported fields, and %+v of a struct that holds a
// Key would print the text.
type Key struct{ reveal func() string }

// NewKey wraps the key from the service's developer settings.
func NewKey(s string) Key {
	s = strings.TrimSpace(s)
	return Key{func() string { return s }}
}

func (Key) String() string               { return "[redacted]" }
func (Key) Format(s fmt.State, _ rune)   { fmt.Fprint(s, "[redacted]") }
func (Key) LogValue() slog.Value         { return slog.StringValue("[redacted]") }
func (Key) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// Client calls the API as one athlete. It is safe for concurrent use.
type Client struct {
	base    string
	key     Key
	athlete string // as configured; "0" is whoever the key belongs to
	reads   *http.Client
	writes  *http.Client
	now     func() time.Time // for "today" in the athlete's zone
}

const (
	// Timeout of one call, from dialling to the last byte.
	Timeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer; streams and workout documents are large.
	maxAnswer = 32 << 20
	// A read waits for a short Retry-After once; longer ones are told to the caller, who knows better.
	maxRetryAfter = 5 * time.Second
)

// NewClient returns a client of the API at base, such as https://intervals.icu. athlete "" means "0": the owner
// of the key.
func NewClient(base string, key Key, athlete string) *Client {
	if athlete == "" {
		athlete = "0"
	}
	read := http.DefaultTransport.(*http.Transport).Clone()
	write := read.Clone()
	// A connection of its own for each write: on a kept one net/http may send a request twice, after the
	// server closed it, and nobody would know.
	write.DisableKeepAlives = true
	write.ForceAttemptHTTP2 = false
	// A clone goes on offering h2 by ALPN, which it then cannot speak: offer only what it speaks.
	write.TLSClientConfig = &tls.Config{NextProtos: []string{"http/1.1"}}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a redirect would repeat the write elsewhere
	return &Client{strings.TrimRight(base, "/") + "/api/v1", key, athlete,
		&http.Client{Transport: read, Timeout: Timeout, CheckRedirect: stay},
		&http.Client{Transport: write, Timeout: Timeout, CheckRedirect: stay}, time.Now}
}

// APIError is an answer that says no. Its text is the service's and untrusted: short, and without our key.
type APIError struct {
	Status  int
	Message string
	Wait    time.Duration // of a 429
}

func (e *APIError) Error() string {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("Intervals.icu refused the credentials or the permission (%d: %s); check INTERVALS_API_KEY and INTERVALS_ATHLETE_ID", e.Status, e.Message)
	case http.StatusNotFound:
		return fmt.Sprintf("Intervals.icu has no such object (404: %s)", e.Message)
	case http.StatusTooManyRequests:
		return fmt.Sprintf("the quota of Intervals.icu is used up (429); it opens again in %s, at %s: try again then",
			e.Wait, time.Now().Add(e.Wait).UTC().Format("2006-01-02 15:04 UTC"))
	}
	return fmt.Sprintf("Intervals.icu answered %d: %s", e.Status, e.Message)
}

// AnswerError is an answer that is none of the API's: HTML of a proxy, cut JSON, a redirect. Of a write it
// tells nothing about the effect.
type AnswerError struct {
	Status int
	What   string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("the answer (%d) is not one of Intervals.icu's: %s; check INTERVALS_URL and whether a proxy or sign-in page stands between", e.Status, e.What)
}

// get reads path. It asks once more after a short Retry-After or a 5xx: a read has no effect.
func (c *Client) get(ctx context.Context, path string, query url.Values, into any) error {
	u := c.base + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	var err error
	for range 2 {
		var b []byte
		if b, err = c.call(ctx, c.reads, http.MethodGet, u, nil); err == nil {
			if err := json.Unmarshal(b, into); err != nil {
				return fmt.Errorf("read %s: %w", path, &AnswerError{http.StatusOK, "not the JSON that was expected"})
			}
			return nil
		}
		var api *APIError
		wait := time.Duration(0)
		if !errors.As(err, &api) || api.Status < 500 && api.Status != http.StatusTooManyRequests {
			break
		}
		if wait = api.Wait; wait > maxRetryAfter {
			break
		}
		select {
		case <-time.After(wait + 100*time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("read %s: %w", path, err)
}

// write sends body once. An error wraps wetink.ErrNotApplied only if nothing was sent, or the service itself
// said that it refused: any 4xx with its JSON. A 5xx, a lost or strange answer proves nothing.
func (c *Client) write(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	b, err := c.call(ctx, c.writes, method, c.base+path, body)
	if err == nil {
		return b, nil
	}
	var api *APIError
	var op *net.OpError
	refused := errors.As(err, &api) && api.Status >= 400 && api.Status < 500 && api.Status != http.StatusRequestTimeout
	unsent := errors.Is(err, errNotSent) || errors.As(err, &op) && op.Op == "dial"
	if refused || unsent {
		return nil, fmt.Errorf("%s %s: %w: %w", method, path, err, wetink.ErrNotApplied)
	}
	return nil, fmt.Errorf("%s %s: %w", method, path, err)
}

var errNotSent = errors.New("not sent")

func (c *Client) call(ctx context.Context, client *http.Client, method, u string, body []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	var r io.Reader
	if body != nil {
		r = struct{ io.Reader }{bytes.NewReader(body)} // hides its type: no GetBody, so net/http cannot send it again
	}
	req, err := http.NewRequestWithContext(ctx, method, u, r)
	if err != nil {
		return nil, fmt.Errorf("%w: INTERVALS_URL is not a URL", errNotSent)
	}
	req.ContentLength = int64(len(body))
	req.SetBasicAuth("API_KEY", c.key.reveal())
	req.Header.Set("User-Agent", "wetink (+https://github.com/wetink/wetink)") // the default one is refused by the service's front
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the service at INTERVALS_URL cannot be reached: %w", scrub(err))
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	isJSON := strings.HasSuffix(media, "json")
	switch {
	case len(b) > maxAnswer:
		return nil, &AnswerError{res.StatusCode, "longer than 32 MiB"}
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return nil, &AnswerError{res.StatusCode, "a redirect"}
	case res.StatusCode >= 400 && (isJSON || len(b) == 0 || res.StatusCode == http.StatusTooManyRequests):
		return nil, apiError(res, b)
	case res.StatusCode >= 400:
		return nil, &AnswerError{res.StatusCode, "not JSON"}
	case !isJSON || !json.Valid(b):
		return nil, &AnswerError{res.StatusCode, "not JSON, or cut off"}
	}
	return b, nil
}

// scrub takes the URL out of an error: it stands in logs and in front of models.
func scrub(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

func apiError(res *http.Response, body []byte) *APIError {
	var said struct {
		Error string          `json:"error"`
		Wait  json.RawMessage `json:"retry_after_seconds"`
	}
	_ = json.Unmarshal(body, &said) // whatever it says is only for people
	e := &APIError{Status: res.StatusCode, Message: clean(said.Error)}
	if e.Message == "" {
		e.Message = http.StatusText(res.StatusCode)
	}
	if res.StatusCode == http.StatusTooManyRequests {
		e.Wait = retryAfter(res.Header.Get("Retry-After"), string(said.Wait))
	}
	return e
}

// retryAfter reads seconds or an HTTP date (RFC 9110 section 10.2.3), else the body's seconds, else a minute.
func retryAfter(header, body string) time.Duration {
	for _, s := range []string{header, body} {
		if n, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil && n >= 0 && n < 1e7 {
			return time.Duration(n * float64(time.Second))
		}
		if at, err := http.ParseTime(s); err == nil {
			return max(time.Until(at), 0).Round(time.Second)
		}
	}
	return time.Minute
}

// clean keeps a foreign text short and printable.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return strings.TrimSpace(s)
}

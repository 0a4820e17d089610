package gateway

import (
	"context"
	"encoding/json"
)

// Guard decides what becomes of a tool's definition and of a call. The proxy asks it for every one of them, and sends
// nothing upstream that it did not pass. All methods are safe for concurrent use.
type Guard interface {
	// Tools gets the definitions of one upstream as they came, whole (all pages), and answers what clients are shown:
	// the same bytes, bytes of its own, or fewer. Names are those of the upstream.
	Tools(ctx context.Context, upstream string, list []json.RawMessage) ([]json.RawMessage, error)
	// Own are the definitions of the guard's own tools, which are added once behind those of the upstreams. Their names
	// are taken: an upstream's tool of the same name is not shown and cannot be called.
	Own(s Session) []json.RawMessage
	// Passes reports whether a call of that tool goes to the upstream as it is.
	Passes(upstream, tool string) bool
	// Call answers a call that does not pass: the bytes of a CallToolResult. upstream is "" for the guard's own tools.
	// An error is answered as a JSON-RPC error with its text.
	Call(ctx context.Context, s Session, upstream, tool string, params json.RawMessage) (result json.RawMessage, err error)
}

// Watcher is a Guard that wants to see calls that pass, too.
type Watcher interface {
	// Watches reports whether it wants those of an upstream.
	Watches(upstream string) bool
	// Watch is told of a call before it is forwarded. It must not wait for anything, and not keep params.
	Watch(s Session, upstream, tool string, params json.RawMessage)
}

// Session is the client at the other end of a call, as far as it told. All of it is claimed, nothing proved.
type Session interface {
	// Client is the clientInfo that it sent, "" if none: of the request (2026-07-28) or of initialize.
	Client() string
	// Capabilities are the client's, as they came; nil if it sent none.
	Capabilities() json.RawMessage
	// Modern reports a request of revision 2026-07-28 or later, which answers input_required; others can be asked.
	Modern() bool
	// Ask sends a request to the client, such as elicitation/create, and waits for its result. For sessions that are
	// not Modern.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Header is a header of the HTTP request that brought the call, "" on stdio.
	Header(name string) string
}

package mcpserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTPOptions of HTTP.
type HTTPOptions struct {
	// Bearer is what every request must carry. It is required: a loopback port is open to every process and,
	// by DNS rebinding, to every web page.
	Bearer string
	// Origins besides loopback ones from which a browser may call.
	Origins []string
}

// HTTP serves s over Streamable HTTP, stateless: each request stands for itself, in any protocol revision.
//
// A request with an Origin that is not allowed is answered 403
// (https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http; the SDK does not
// check it since 1.6), one without the bearer 401. The SDK refuses foreign Host headers on loopback.
func HTTP(s *mcp.Server, o HTTPOptions) http.Handler {
	if o.Bearer == "" {
		panic("mcpserver: HTTP without a bearer") // a mistake in the program, never in its use
	}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: 8 << 20})
	want := sha256.Sum256([]byte("Bearer " + o.Bearer))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); origin != "" && !o.allows(origin) {
			http.Error(w, "this origin may not call", http.StatusForbidden)
			return
		}
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the bearer token of this server is missing", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (o HTTPOptions) allows(origin string) bool {
	if slices.Contains(o.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, strings.ToLower(u.Hostname()))
}

package page

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/wetink/wetink"
)

// Push lets a browser be told that something waits (RFC 8030, the Push API). notify sends; the page only brings the two
// together.
type Push interface {
	// PublicKey is the applicationServerKey: base64url.
	PublicKey(ctx context.Context) (string, error)
	// Subscribe stores where a browser wants to be told; record is the subscription's JSON.
	Subscribe(ctx context.Context, tenant wetink.Tenant, person wetink.Person, endpoint string, record []byte) error
}

// subscribe stores a browser's subscription. What is wrong with it is for the person to read.
func (p *Server) subscribe(ctx context.Context, who Person, record string) (problem string, err error) {
	var s struct {
		Endpoint string `json:"endpoint"`
		Keys     struct {
			P256dh string `json:"p256dh"`
			Auth   string `json:"auth"`
		} `json:"keys"`
	}
	if p.opt.Push == nil {
		return "Browsers are not told here.", nil
	}
	if len(record) > 4096 || json.Unmarshal([]byte(record), &s) != nil || s.Keys.P256dh == "" || s.Keys.Auth == "" {
		return "The browser did not say where to tell it. Nothing was changed.", nil
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "The browser named a place that nothing is sent to. Nothing was changed.", nil
	}
	return "", p.opt.Push.Subscribe(ctx, who.Tenant, who.ID, s.Endpoint, []byte(record))
}

// serviceWorker shows what was pushed. It is served from the root, where its scope is.
func (p *Server) serviceWorker(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	http.ServeFileFS(w, r, files, "static/sw.js")
}

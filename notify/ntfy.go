package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Ntfy publishes to a topic of an ntfy server (ntfy.sh or one's own). Without a token of the server anybody who
// guesses the topic reads along, and can write to it: choose a long random one, and never trust what it says.
type Ntfy struct {
	name, url string
	token     Secret
	http      *sender
}

// NewNtfy takes the topic's whole URL, and an access token or the zero Secret.
func NewNtfy(name, topicURL string, token Secret, o *HTTPOptions) (*Ntfy, error) {
	n := &Ntfy{name: name, url: topicURL, token: token, http: newSender(o)}
	if err := n.http.check(topicURL); err != nil {
		return nil, fmt.Errorf("ntfy %s: %w", name, err)
	}
	return n, nil
}

// Name implements Channel.
func (n *Ntfy) Name() string { return n.name }

// Send implements Channel. It adds no action: the header of an ntfy action is readable for whoever reads the topic.
func (n *Ntfy) Send(ctx context.Context, m Message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, strings.NewReader(m.Text()))
	if err != nil {
		return errors.New("ntfy: the address is no URL")
	}
	req.Header.Set("User-Agent", Title)
	req.Header.Set("Title", Title)
	// Since ntfy 2.16 a second message of the same sequence replaces the first on the phone; older ones ignore it.
	req.Header.Set("X-Sequence-ID", m.ID)
	if m.Link != "" {
		req.Header.Set("Click", m.Link)
	}
	if !n.token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+string(n.token.Reveal()))
	}
	if err := n.http.post(req); err != nil {
		return fmt.Errorf("ntfy: %w", err)
	}
	return nil
}

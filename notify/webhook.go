package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Webhook posts to a URL of the operator, signed as Standard Webhooks 1.0.0 says (standardwebhooks.com).
// Anything but 2xx is a failure. The body is Message.Bytes.
type Webhook struct {
	name, url string
	keys      []Secret // decoded
	http      *sender
}

// NewWebhook takes secrets as they are written: "whsec_" and the base64 of 24 to 64 bytes. With several, each
// message carries a signature of every one of them, so that sender and receiver can change theirs one after the
// other.
func NewWebhook(name, url string, secrets []Secret, o *HTTPOptions) (*Webhook, error) {
	w := &Webhook{name: name, url: url, http: newSender(o)}
	if err := w.http.check(url); err != nil {
		return nil, fmt.Errorf("webhook %s: %w", name, err)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("webhook %s: no secret: without one nobody can tell our messages from others", name)
	}
	for _, s := range secrets {
		key, err := webhookKey(s)
		if err != nil {
			return nil, fmt.Errorf("webhook %s: %w", name, err)
		}
		w.keys = append(w.keys, key)
	}
	return w, nil
}

func webhookKey(s Secret) (Secret, error) {
	text, ok := strings.CutPrefix(string(s.Reveal()), "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		// Without err, which quotes a character of the secret.
		return Secret{}, errors.New(`a secret is "whsec_" and the base64 of 24 to 64 random bytes`)
	}
	return NewSecret(key), nil
}

// Name implements Channel.
func (w *Webhook) Name() string { return w.name }

// Send implements Channel. The timestamp is that of the attempt, so that a receiver may refuse old ones.
func (w *Webhook) Send(ctx context.Context, m Message) error {
	body, err := m.Bytes()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("webhook: the address is no URL")
	}
	at := strconv.FormatInt(w.http.now().Unix(), 10)
	var signatures []string
	for _, key := range w.keys {
		mac := hmac.New(sha256.New, key.Reveal())
		fmt.Fprintf(mac, "%s.%s.%s", m.ID, at, body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", Title)
	req.Header.Set("Webhook-Id", m.ID)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", strings.Join(signatures, " "))
	if err := w.http.post(req); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

package notify

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/SherClockHolmes/webpush-go"
)

// Subscriptions are the browsers that people have subscribed, as JSON of PushSubscription.toJSON: an object with
// endpoint and keys (p256dh, auth).
type Subscriptions interface {
	Subscriptions(ctx context.Context) ([][]byte, error)
	// RemoveSubscription forgets one that its push service does not know any more.
	RemoveSubscription(ctx context.Context, endpoint string) error
}

// VAPIDKeys keeps the key by which push services recognise us (RFC 8292).
type VAPIDKeys interface {
	// KeepVAPIDKey stores fresh if there is none and returns the one that counts from then on, also when two
	// processes call it at once. It is a private key: 32 bytes.
	KeepVAPIDKey(ctx context.Context, fresh Secret) (kept Secret, err error)
}

// WebPushOptions are for production as they are.
type WebPushOptions struct {
	HTTPOptions
	TTL      time.Duration // how long a push service keeps a message for a browser that is away; 0: 24 h
	Patience time.Duration // how long one browser that cannot be reached may hold up later messages; 0: 10 minutes
	Log      *slog.Logger  // nil: slog.Default
}

// WebPush sends to all subscribed browsers (RFC 8030), encrypted so that push services cannot read it (RFC 8291).
// They see when something is sent, to which browser, and one of two constant topics. The payload is Message.Bytes.
//
// An endpoint was chosen by whoever subscribed: its address is held against the same rules as that of a webhook,
// and one that does not work cannot keep messages from the others. It holds them up for Patience, once, and is
// from then on tried once for each message, until it works again. This is the one place where a message can be
// lost to one browser while it is delivered to the rest.
type WebPush struct {
	name    string
	subs    Subscriptions
	keys    VAPIDKeys
	contact string
	opt     WebPushOptions
	http    *sender

	mu      sync.Mutex // Send is not called twice at once, but PublicKey is
	key     *ecdh.PrivateKey
	id      string          // of the message of which the next two tell
	since   time.Time       // its first attempt
	done    map[string]bool // endpoints that have it
	suspect map[string]bool // endpoints that failed for a whole Patience
}

// NewWebPush takes the contact that push services may write to in case of trouble: a mail address or an https URL.
func NewWebPush(name string, subs Subscriptions, keys VAPIDKeys, contact string, o *WebPushOptions) (*WebPush, error) {
	w := &WebPush{name: name, subs: subs, keys: keys, contact: strings.TrimPrefix(contact, "mailto:"), suspect: map[string]bool{}}
	if o != nil {
		w.opt = *o
	}
	if !strings.HasPrefix(w.contact, "https://") && !strings.Contains(w.contact, "@") {
		return nil, fmt.Errorf("web push %s: the contact must be a mail address or an https URL", name)
	}
	if w.opt.TTL == 0 {
		w.opt.TTL = 24 * time.Hour
	}
	if w.opt.Patience == 0 {
		w.opt.Patience = 10 * time.Minute
	}
	if w.opt.Log == nil {
		w.opt.Log = slog.Default()
	}
	w.http = newSender(&w.opt.HTTPOptions)
	return w, nil
}

// Name implements Channel.
func (w *WebPush) Name() string { return w.name }

// PublicKey is the applicationServerKey that a browser needs to subscribe: base64url of 65 bytes.
func (w *WebPush) PublicKey(ctx context.Context) (string, error) {
	key, err := w.vapid(ctx)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()), nil
}

func (w *WebPush) vapid(ctx context.Context) (*ecdh.PrivateKey, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.key != nil {
		return w.key, nil
	}
	fresh, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("web push: make the key: %w", err)
	}
	kept, err := w.keys.KeepVAPIDKey(ctx, NewSecret(fresh.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("web push: keep the key: %w", err)
	}
	key, err := ecdh.P256().NewPrivateKey(kept.Reveal())
	if err != nil {
		return nil, errors.New("web push: what was kept is no key of the curve P-256")
	}
	w.key = key
	return key, nil
}

// Browsers that are sent to at a time.
const parallel = 8

// Send implements Channel. Without subscriptions there is nobody to tell, which is no error.
func (w *WebPush) Send(ctx context.Context, m Message) error {
	payload, err := m.Bytes()
	if err != nil {
		return err
	}
	payload = slices.Clip(payload) // the library pads what it is given in place, and several encrypt at once
	key, err := w.vapid(ctx)
	if err != nil {
		return err
	}
	records, err := w.subs.Subscriptions(ctx)
	if err != nil {
		return fmt.Errorf("web push: read the subscriptions: %w", err)
	}
	if w.id != m.ID {
		w.id, w.since, w.done = m.ID, w.http.now(), map[string]bool{}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	slots := make(chan struct{}, parallel)
	for _, s := range w.parse(ctx, records) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			again, err := w.push(ctx, key, m, payload, s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				w.opt.Log.WarnContext(ctx, "web push: not delivered to one browser", "service", host(s.Endpoint), "id", m.ID, "again", again, "err", err)
			}
			if again {
				failed = append(failed, s.Endpoint)
				return
			}
			w.done[s.Endpoint] = true
			if err == nil {
				delete(w.suspect, s.Endpoint)
			}
		})
	}
	wg.Wait()
	return w.verdict(ctx, failed)
}

// parse returns the subscriptions that can be used and have not got the message, those that worked last time first:
// should the attempt's time not be enough for all, it is the others that lack it.
func (w *WebPush) parse(ctx context.Context, records [][]byte) []webpush.Subscription {
	var first, last []webpush.Subscription
	for _, record := range records {
		var s webpush.Subscription
		err := json.Unmarshal(record, &s)
		if err == nil {
			err = w.usable(s)
		}
		switch {
		case err != nil:
			w.opt.Log.WarnContext(ctx, "web push: a stored subscription cannot be used", "service", host(s.Endpoint), "err", err)
		case w.done[s.Endpoint]:
		case w.suspect[s.Endpoint]:
			last = append(last, s)
		default:
			first = append(first, s)
		}
	}
	return append(first, last...)
}

// usable refuses what would fail in every attempt.
func (w *WebPush) usable(s webpush.Subscription) error {
	if err := w.http.check(s.Endpoint); err != nil {
		return err
	}
	point, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s.Keys.P256dh, "="))
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		return errors.New("keys.p256dh is no point of the curve P-256 in base64url")
	}
	if auth, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s.Keys.Auth, "=")); err != nil || len(auth) != 16 {
		return errors.New("keys.auth is not 16 bytes in base64url")
	}
	return nil
}

// verdict says whether the browsers that failed hold up the next message.
func (w *WebPush) verdict(ctx context.Context, failed []string) error {
	// An attempt that was cut off by the end of the process says nothing of the browsers.
	if errors.Is(ctx.Err(), context.Canceled) && len(failed) > 0 {
		return ctx.Err()
	}
	late := w.http.now().Sub(w.since) >= w.opt.Patience
	holding := 0
	for _, endpoint := range failed {
		if late {
			w.suspect[endpoint] = true
		}
		if !w.suspect[endpoint] {
			holding++
		}
	}
	if holding > 0 {
		return fmt.Errorf("web push: not delivered to %d browsers", holding)
	}
	if len(failed) > 0 {
		w.opt.Log.WarnContext(ctx, "web push: going on without some browsers", "id", w.id, "browsers", len(failed))
	}
	return nil
}

// push sends to one browser. again is false if trying again cannot help.
func (w *WebPush) push(ctx context.Context, key *ecdh.PrivateKey, m Message, payload []byte, s webpush.Subscription) (again bool, err error) {
	resp, err := webpush.SendNotificationWithContext(ctx, payload, &s, &webpush.Options{
		HTTPClient:      w.http,
		Subscriber:      w.contact,
		Topic:           strings.NewReplacer(".", "-", "_", "-").Replace(m.Type()), // a newer one replaces what was not fetched
		TTL:             int(w.opt.TTL / time.Second),
		Urgency:         webpush.UrgencyHigh,
		VAPIDPublicKey:  base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()),
		VAPIDPrivateKey: base64.RawURLEncoding.EncodeToString(key.Bytes()),
	})
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // the endpoint is a secret of the browser
			err = wrapped.Err
		}
		return !errors.Is(err, ErrAddress), err
	}
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		if err := w.subs.RemoveSubscription(ctx, s.Endpoint); err != nil {
			return true, fmt.Errorf("forget a subscription that is gone: %w", err)
		}
		return false, nil
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return true, good(resp)
	default:
		return false, good(resp)
	}
}

// host is all of an endpoint that a log may show.
func host(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/notify"
)

// channelFile is one way to be told that something waits. Secrets stand in no file of ours: it names the variable of the
// environment that holds one.
type channelFile struct {
	Name      string   `yaml:"name"`
	Type      string   `yaml:"type"`
	URL       string   `yaml:"url"`        // webhook, ntfy
	SecretEnv []string `yaml:"secret_env"` // webhook: whsec_…, several while they are changed; ntfy: a token; email: the password
	Private   bool     `yaml:"allow_private_addresses"`
	Host      string   `yaml:"host"` // email
	Port      int      `yaml:"port"`
	Username  string   `yaml:"username"`
	Contact   string   `yaml:"contact"` // push: a mail address or https URL that push services may write to
	From      string   `yaml:"from"`
	To        string   `yaml:"to"`
}

const wantChannel = "webhook, ntfy, email, desktop or push"

// channels are made when the configuration is read: a mistake in one must not wait until something waits.
func channels(list []channelFile, env func(string) string, file string) (out []notify.Channel, err error) {
	seen := map[string]bool{}
	for i, c := range list {
		at := fmt.Sprintf("notify[%d] in %s", i, file)
		if c.Name == "" {
			c.Name = c.Type
		}
		if seen[c.Name] {
			return nil, fmt.Errorf("%w: %s: there is another one named %q: give it a name of its own, which never changes", ErrConfig, at, c.Name)
		}
		seen[c.Name] = true
		var secrets []notify.Secret
		for _, name := range c.SecretEnv {
			v := strings.TrimSpace(env(name))
			if v == "" {
				return nil, fmt.Errorf("%w: %s: the variable %s is not set", ErrConfig, at, name)
			}
			secrets = append(secrets, notify.NewSecret([]byte(v)))
		}
		one := notify.NewSecret(nil)
		if len(secrets) > 0 {
			one = secrets[0]
		}
		web := &notify.HTTPOptions{AllowPrivateAddressesDANGEROUS: c.Private}
		var ch notify.Channel
		switch c.Type {
		case "webhook":
			ch, err = notify.NewWebhook(c.Name, c.URL, secrets, web)
		case "ntfy":
			ch, err = notify.NewNtfy(c.Name, c.URL, one, web)
		case "email":
			ch, err = notify.NewEmail(c.Name, c.Host, c.From, c.To, &notify.EmailOptions{Port: c.Port, Username: c.Username, Password: one})
		case "desktop":
			ch, err = notify.NewDesktop(c.Name)
		case "push":
			ch = &pushChannel{name: c.Name, contact: c.Contact}
			_, err = notify.NewWebPush(c.Name, nil, nil, c.Contact, nil)
		default:
			err = fmt.Errorf("type is %q: want %s", c.Type, wantChannel)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrConfig, at, err)
		}
		out = append(out, ch)
	}
	return out, nil
}

// tell runs the channels until ctx ends, in the process that serves the page: two at once would tell everything twice.
func (c Config) tell(ctx context.Context, inbox string, l wetink.Ledger, who *people, log *slog.Logger) {
	if len(c.Notify) == 0 {
		return
	}
	list := slices.Clone(c.Notify)
	for i, ch := range list {
		if p, ok := ch.(*pushChannel); ok {
			push, err := p.with(who, log)
			if err != nil {
				log.WarnContext(ctx, "browsers are not told", "err", err)
				return
			}
			list[i] = push
		}
	}
	err := notify.New(l, who, list, &notify.Options{Link: inbox, Waiting: forPeople{l}, Log: log}).Run(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		log.WarnContext(ctx, "nobody is told of what waits", "err", err)
	}
}

// pushChannel is one of the configuration until the people are known whose browsers it tells.
type pushChannel struct{ name, contact string }

// Name implements notify.Channel.
func (p *pushChannel) Name() string { return p.name }

// Send implements notify.Channel. It is never run: tell puts the real one in its place.
func (p *pushChannel) Send(context.Context, notify.Message) error {
	return errors.New("the browsers are not known yet")
}

func (p *pushChannel) with(who *people, log *slog.Logger) (*notify.WebPush, error) {
	return notify.NewWebPush(p.name, who, who, p.contact, &notify.WebPushOptions{Log: log})
}

// pagePush brings the page and Web Push together, if the configuration has a push channel.
type pagePush struct {
	*notify.WebPush
	who *people
}

// Subscribe implements page.Push.
func (p pagePush) Subscribe(ctx context.Context, tenant wetink.Tenant, person wetink.Person, endpoint string, record []byte) error {
	return p.who.PutSubscription(ctx, tenant, person, endpoint, record)
}

func (c Config) push(who *people, log *slog.Logger) (page.Push, error) {
	for _, ch := range c.Notify {
		if p, ok := ch.(*pushChannel); ok {
			push, err := p.with(who, log)
			return pagePush{push, who}, err
		}
	}
	return nil, nil
}

// forPeople counts what waits for a person: not what an agent holds the token of.
type forPeople struct{ ledger wetink.Ledger }

// Waiting implements notify.Waiting. More than a thousand are a thousand.
func (w forPeople) Waiting(ctx context.Context) (n int, err error) {
	for c, err := range w.ledger.List(ctx, wetink.Filter{Status: []wetink.Status{wetink.Pending}, AnyTenant: true, Limit: 1000}) {
		if err != nil {
			return n, err
		}
		if t, err := c.Terms(); err == nil && t.Require.Level > wetink.Agent {
			n++
		}
	}
	return n, nil
}

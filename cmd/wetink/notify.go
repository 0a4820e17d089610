package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/wetink/wetink"
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
	From      string   `yaml:"from"`
	To        string   `yaml:"to"`
}

const wantChannel = "webhook, ntfy, email or desktop"

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
	err := notify.New(l, who, c.Notify, &notify.Options{Link: inbox, Waiting: forPeople{l}, Log: log}).Run(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		log.WarnContext(ctx, "nobody is told of what waits", "err", err)
	}
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

package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
)

// EmailOptions are for a submission server that asks for a password on port 587 after STARTTLS.
type EmailOptions struct {
	Port     int    // 0: 587, or 465 with ImplicitTLS
	Username string // "": no authentication
	Password Secret

	ImplicitTLS bool // TLS from the first byte instead of STARTTLS; the server must take AUTH PLAIN
	// PlainTextDANGEROUS sends without encryption where the server offers none. It cannot be had with a password.
	PlainTextDANGEROUS bool

	Timeout time.Duration    // of one delivery; 0: 30 s
	RootCAs *x509.CertPool   // nil: the system's
	Now     func() time.Time // nil: time.Now
}

// Email sends to one address. Two people get two channels: one bad mailbox then neither holds up nor repeats the
// mail of another, and nobody learns who else is told.
type Email struct {
	name, host string
	from, to   *netmail.Address
	domain     string // of from
	opt        EmailOptions
}

// NewEmail takes the mail server's name and two addresses, each with or without a name before it.
func NewEmail(name, host, from, to string, o *EmailOptions) (*Email, error) {
	e := &Email{name: name, host: host}
	if o != nil {
		e.opt = *o
	}
	var err error
	if e.from, err = netmail.ParseAddress(from); err != nil {
		return nil, fmt.Errorf("email %s: the sender's address: %w", name, err)
	}
	if e.to, err = netmail.ParseAddress(to); err != nil {
		return nil, fmt.Errorf("email %s: the recipient's address: %w", name, err)
	}
	e.domain = e.from.Address[strings.LastIndexByte(e.from.Address, '@')+1:]
	if host == "" {
		return nil, fmt.Errorf("email %s: no mail server", name)
	}
	if e.opt.PlainTextDANGEROUS && (e.opt.ImplicitTLS || !e.opt.Password.IsZero()) {
		return nil, fmt.Errorf("email %s: a password needs TLS: leave PlainTextDANGEROUS out", name)
	}
	if e.opt.Timeout == 0 {
		e.opt.Timeout = 30 * time.Second
	}
	if e.opt.Now == nil {
		e.opt.Now = time.Now
	}
	return e, nil
}

// Name implements Channel.
func (e *Email) Name() string { return e.name }

// Send implements Channel. A repeated message has the same Message-ID, by which many mail stores drop the second.
func (e *Email) Send(ctx context.Context, m Message) error {
	// go-mail leaves the connection open when it does not like the server. This way it ends with Send, and with ctx.
	var conn net.Conn
	dial := func(ctx context.Context, network, address string) (c net.Conn, err error) {
		if e.opt.ImplicitTLS {
			c, err = (&tls.Dialer{Config: e.tls()}).DialContext(ctx, network, address)
		} else {
			c, err = new(net.Dialer).DialContext(ctx, network, address)
		}
		conn = c
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.opt.Timeout)
	defer cancel()
	client, err := mail.NewClient(e.host, append(e.options(), mail.WithDialContextFunc(dial))...)
	if err != nil {
		return fmt.Errorf("email: %w", err)
	}
	msg, err := e.message(m)
	if err != nil {
		return fmt.Errorf("email: %w", err)
	}
	err = client.DialAndSendWithContext(ctx, msg)
	if conn != nil {
		conn.Close()
	}
	if err != nil {
		if !msg.IsDelivered() {
			return fmt.Errorf("email: %w", err)
		}
		// The server took it; that it did not say goodbye is no reason to send it again.
	}
	return nil
}

func (e *Email) message(m Message) (*mail.Msg, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	msg.FromMailAddress(e.from)
	msg.ToMailAddress(e.to)
	msg.Subject(Title + ": " + m.Text())
	msg.SetMessageIDWithValue(m.ID + "@" + e.domain)
	msg.SetDateWithValue(e.opt.Now())
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: nobody on holiday answers it
	text := m.Text() + ".\n"
	if m.Link != "" {
		text += "\n" + m.Link + "\n"
	}
	text += "\nThe link shows what it is about after you signed in. Nothing can be decided by mail.\n"
	msg.SetBodyString(mail.TypeTextPlain, text)
	if strings.ContainsAny(m.ID, "<>\r\n ") {
		return nil, errors.New("the message id has characters that a header cannot carry")
	}
	return msg, nil
}

func (e *Email) tls() *tls.Config {
	return &tls.Config{ServerName: e.host, RootCAs: e.opt.RootCAs, MinVersion: tls.VersionTLS12}
}

func (e *Email) options() []mail.Option {
	o := []mail.Option{
		mail.WithTimeout(e.opt.Timeout),
		mail.WithHELO(e.domain), // not the name of this machine
		mail.WithTLSConfig(e.tls()),
		mail.WithoutNoop(),
	}
	switch {
	case e.opt.ImplicitTLS:
		o = append(o, mail.WithSSLPort(false))
	case e.opt.PlainTextDANGEROUS:
		o = append(o, mail.WithTLSPortPolicy(mail.TLSOpportunistic))
	default:
		o = append(o, mail.WithTLSPortPolicy(mail.TLSMandatory))
	}
	if e.opt.Port != 0 {
		o = append(o, mail.WithPort(e.opt.Port))
	}
	if e.opt.Username != "" {
		auth := mail.SMTPAuthAutoDiscover
		if e.opt.ImplicitTLS {
			auth = mail.SMTPAuthPlain // discovery does not see that a connection of ours is encrypted, and finds nothing
		}
		o = append(o, mail.WithSMTPAuth(auth), mail.WithUsername(e.opt.Username),
			mail.WithPassword(string(e.opt.Password.Reveal())))
	}
	return o
}

package notify_test

import (
	"io"
	"mime/quotedprintable"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink/notify"
)

func email(t *testing.T, s *smtpServer, change func(*notify.EmailOptions)) *notify.Email {
	t.Helper()
	o := &notify.EmailOptions{Port: s.port, RootCAs: s.roots, Timeout: 5 * time.Second,
		Now: func() time.Time { return time.Date(2026, 3, 5, 7, 8, 9, 0, time.UTC) }}
	if change != nil {
		change(o)
	}
	e, err := notify.NewEmail("mail", "127.0.0.1", "wetink <guard@example.com>", "ana@example.org", o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func login(o *notify.EmailOptions) {
	o.Username, o.Password = "guard", notify.NewSecret([]byte("pass word"))
}

func TestAMailServerReceivesPlainTextOverTLS(t *testing.T) {
	s := startSMTP(t, &smtpServer{starttls: true})
	if err := email(t, s, login).Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	l := <-s.letters
	if !l.tls || l.login != "guard:pass word" || !strings.HasPrefix(l.from, "FROM:<guard@example.com>") || l.to != "TO:<ana@example.org>" {
		t.Errorf("from %s to %s, login %q, TLS %t", l.from, l.to, l.login, l.tls)
	}
	m, err := netmail.ReadMessage(strings.NewReader(l.data))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"From": `"wetink" <guard@example.com>`, "To": "<ana@example.org>", "Subject": "wetink: 2 changes are waiting",
		"Message-Id": "<msg_0123456789abcdef_42@example.com>", "Date": "Thu, 05 Mar 2026 07:08:09 +0000", "Auto-Submitted": "auto-generated",
		"Mime-Version": "1.0", "Content-Type": "text/plain; charset=UTF-8", "Content-Transfer-Encoding": "quoted-printable",
	}
	for name, value := range want {
		if got := m.Header[name]; !slices.Equal(got, []string{value}) {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	for name := range m.Header {
		if _, ok := want[name]; !ok {
			t.Errorf("there is a header %s: %q", name, m.Header[name])
		}
	}
	const text = "2 changes are waiting.\r\n\r\nhttps://wetink.example/?a=1&b=2\r\n\r\nThe link shows what it is about after you signed in. Nothing can be decided by mail.\r\n"
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil || strings.TrimRight(string(body), "\r\n") != strings.TrimRight(text, "\r\n") {
		t.Errorf("the text is %q (%v), want %q", body, err, text)
	}
	if heard := s.heard(); !strings.HasPrefix(heard, "EHLO example.com\r\n") {
		t.Errorf("it introduced itself with something else than the sender's domain: %.40q", heard)
	}
}

func TestALineThatBeginsWithADotArrives(t *testing.T) {
	s := startSMTP(t, &smtpServer{starttls: true})
	m := message()
	m.Link = "https://wetink.example/" + strings.Repeat(".", 400)
	if err := email(t, s, nil).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	l := <-s.letters
	if !strings.Contains(l.raw, "\r\n..") {
		t.Errorf("no line of the letter begins with a dot, so this shows nothing:\n%s", l.raw)
	}
	got, err := netmail.ReadMessage(strings.NewReader(l.data))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(got.Body))
	if err != nil || !strings.Contains(string(body), m.Link+"\r\n") {
		t.Errorf("the link did not arrive whole (%v):\n%s", err, body)
	}
}

func TestMailIsNotSentWithoutTLS(t *testing.T) {
	s := startSMTP(t, &smtpServer{})
	for _, change := range []func(*notify.EmailOptions){login, nil} {
		if err := email(t, s, change).Send(t.Context(), message()); err == nil {
			t.Error("it was sent to a server without STARTTLS")
		}
		select {
		case <-s.ended:
		case <-time.After(5 * time.Second):
			t.Error("the connection was left open")
		}
	}
	if heard := s.heard(); strings.Contains(heard, "MAIL") || strings.Contains(heard, "AUTH") {
		t.Errorf("something was said in clear:\n%s", heard)
	}
	if err := email(t, s, func(o *notify.EmailOptions) { o.PlainTextDANGEROUS = true }).Send(t.Context(), message()); err != nil {
		t.Errorf("plain text was asked for: %v", err)
	}
	if l := <-s.letters; l.tls {
		t.Error("a server without TLS received it with TLS")
	}
}

func TestMailIsNotSentToAServerWithAnotherCertificate(t *testing.T) {
	other := startSMTP(t, &smtpServer{starttls: true})
	for _, s := range []*smtpServer{{starttls: true}, {implicit: true}} {
		startSMTP(t, s)
		e := email(t, s, func(o *notify.EmailOptions) { o.RootCAs, o.ImplicitTLS = other.roots, s.implicit })
		if err := e.Send(t.Context(), message()); err == nil {
			t.Errorf("implicit TLS %t: the certificate was not checked", s.implicit)
		}
		if len(s.letters) != 0 {
			t.Error("a letter arrived")
		}
	}
}

func TestMailOverImplicitTLS(t *testing.T) {
	s := startSMTP(t, &smtpServer{implicit: true})
	if err := email(t, s, func(o *notify.EmailOptions) { login(o); o.ImplicitTLS = true }).Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	if l := <-s.letters; !l.tls || l.login != "guard:pass word" {
		t.Errorf("%+v", l)
	}
}

func TestMailThatTheServerDidNotTakeIsNotDelivered(t *testing.T) {
	for _, refuse := range []string{"451 later", "550 never"} {
		s := startSMTP(t, &smtpServer{starttls: true, refuse: refuse})
		if err := email(t, s, nil).Send(t.Context(), message()); err == nil {
			t.Errorf("%q counts as delivered", refuse)
		}
	}
}

func TestMailThatWasTakenIsNotSentAgainBecauseTheServerHungUp(t *testing.T) {
	s := startSMTP(t, &smtpServer{starttls: true, slam: true})
	if err := email(t, s, nil).Send(t.Context(), message()); err != nil {
		t.Errorf("%v, want nil: the server had taken it", err)
	}
	if n := len(s.letters); n != 1 {
		t.Errorf("%d letters", n)
	}
}

func TestMailSettingsThatAreNotSafeAreRefused(t *testing.T) {
	for _, tc := range []struct {
		host, from, to string
		o              *notify.EmailOptions
	}{
		{"", "a@example.com", "b@example.com", nil},
		{"mail.example.com", "a", "b@example.com", nil},
		{"mail.example.com", "a@example.com", "b@example.com, c@example.com", nil},
		{"mail.example.com", "a@example.com", "b@example.com\r\nBcc: c@example.com", nil},
		{"mail.example.com", "a@example.com", "b@example.com", &notify.EmailOptions{PlainTextDANGEROUS: true, Username: "u", Password: notify.NewSecret([]byte("p"))}},
		{"mail.example.com", "a@example.com", "b@example.com", &notify.EmailOptions{PlainTextDANGEROUS: true, ImplicitTLS: true}},
	} {
		if _, err := notify.NewEmail("mail", tc.host, tc.from, tc.to, tc.o); err == nil {
			t.Errorf("%+v was not refused", tc)
		}
	}
}

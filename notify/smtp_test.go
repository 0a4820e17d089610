package notify_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// letter is what an SMTP server took.
type letter struct {
	from, to string
	raw      string // as it came over the wire, with its dots
	data     string // with the dots taken away, RFC 5321 section 4.5.2
	login    string // "" or user:password
	tls      bool
}

// smtpServer speaks as much of RFC 5321, RFC 3207 and RFC 4954 as a client that submits mail needs.
type smtpServer struct {
	port    int
	roots   *x509.CertPool
	letters chan letter
	ended   chan struct{} // a connection is over

	starttls bool   // offered
	implicit bool   // TLS from the first byte
	refuse   string // the answer to DATA's end, "" takes the letter
	slam     bool   // closes the connection once it took a letter, without saying goodbye

	mu         sync.Mutex
	transcript strings.Builder // all that clients sent, after decryption
}

func startSMTP(t *testing.T, s *smtpServer) *smtpServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(parsed)
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.letters, s.ended = make(chan letter, 10), make(chan struct{}, 10)
	s.port = l.Addr().(*net.TCPAddr).Port
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { c.Close(); s.ended <- struct{}{} }()
				c.SetDeadline(time.Now().Add(20 * time.Second))
				s.talk(c, config)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return s
}

func (s *smtpServer) talk(c net.Conn, config *tls.Config) {
	secure := s.implicit
	if secure {
		c = tls.Server(c, config)
	}
	in := bufio.NewReader(c)
	line := func() (string, bool) {
		text, err := in.ReadString('\n')
		s.mu.Lock()
		s.transcript.WriteString(text)
		s.mu.Unlock()
		return strings.TrimRight(text, "\r\n"), err == nil
	}
	say := func(text string) { io.WriteString(c, text+"\r\n") }
	say("220 mail.example.com ESMTP")
	var l letter
	for {
		text, ok := line()
		if !ok {
			return
		}
		verb, rest, _ := strings.Cut(text, " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			say("250-mail.example.com")
			if s.starttls && !secure {
				say("250-STARTTLS")
			}
			if secure {
				say("250-AUTH PLAIN")
			}
			say("250 8BITMIME")
		case "STARTTLS":
			say("220 go ahead")
			c, secure = tls.Server(c, config), true
			in = bufio.NewReader(c)
		case "AUTH":
			fields := strings.Fields(rest)
			b, err := base64.StdEncoding.DecodeString(fields[len(fields)-1])
			parts := strings.Split(string(b), "\x00")
			if err != nil || len(parts) != 3 {
				say("501 what?")
				continue
			}
			l.login = parts[1] + ":" + parts[2]
			say("235 welcome")
		case "MAIL":
			l.from = rest
			say("250 ok")
		case "RCPT":
			l.to = rest
			say("250 ok")
		case "DATA":
			say("354 go ahead")
			for {
				text, ok := line()
				if !ok {
					return
				}
				if text == "." {
					break
				}
				l.raw += text + "\r\n"
				l.data += strings.TrimPrefix(text, ".") + "\r\n"
			}
			if s.refuse != "" {
				say(s.refuse)
				continue
			}
			l.tls = secure
			say("250 taken")
			s.letters <- l
			if s.slam {
				return
			}
		case "RSET", "NOOP":
			say("250 ok")
		case "QUIT":
			say("221 bye")
			return
		default:
			say(fmt.Sprintf("502 %s", strconv.Quote(verb)))
		}
	}
}

func (s *smtpServer) heard() string { s.mu.Lock(); defer s.mu.Unlock(); return s.transcript.String() }

package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// ErrAddress is what a channel answers that was to send to an address inside our own network.
var ErrAddress = errors.New("address is not public")

// HTTPOptions are shared by the channels that speak HTTP. The zero value is for production.
type HTTPOptions struct {
	// AllowPrivateAddressesDANGEROUS permits http:// and addresses of this machine and its network. With it, whoever
	// chooses the address (for Web Push: every person who signs in) makes this process send requests there.
	AllowPrivateAddressesDANGEROUS bool

	Timeout time.Duration    // of one request; 0: 10 s
	RootCAs *x509.CertPool   // nil: the system's
	Now     func() time.Time // nil: time.Now
}

// sender does requests to an address that somebody else chose.
//
// The address is checked where it is dialled, after the name was resolved: a check of the name or of an earlier
// look-up says nothing of where the connection goes. Redirects are answers like any other that is not 2xx.
// No proxy of the environment is used, because then only its address would be checked. Errors name neither the
// URL, which for ntfy and Web Push is a secret, nor anything that the other side said.
type sender struct {
	open   bool
	now    func() time.Time
	dialer *net.Dialer
	client *http.Client
}

func newSender(o *HTTPOptions) *sender {
	if o == nil {
		o = &HTTPOptions{}
	}
	s := &sender{open: o.AllowPrivateAddressesDANGEROUS, now: o.Now}
	if s.now == nil {
		s.now = time.Now
	}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	s.dialer = &net.Dialer{Timeout: timeout}
	if !s.open {
		s.dialer.ControlContext = refusePrivate
	}
	s.client = &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            s.dialer.DialContext,
			DisableKeepAlives:      true, // messages are rare, and a kept connection was checked long ago
			TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    timeout,
			MaxResponseHeaderBytes: 16 << 10,
		},
	}
	return s
}

// check refuses what no setting of an address can make right later.
func (s *sender) check(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("the address is no URL") // without err, which quotes it
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the address must begin with https://")
	case u.Scheme == "http" && !s.open:
		return errors.New("the address must begin with https://, or anybody on the way could read and change messages")
	case u.User != nil:
		return errors.New("the address must not carry a name or a password")
	}
	return nil
}

// Do implements webpush.HTTPClient, and closes what it got: only the status counts. The URL has passed check.
func (s *sender) Do(req *http.Request) (*http.Response, error) {
	resp, err := s.client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("request: %w", err)
	}
	io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10))
	resp.Body.Close()
	resp.Body = http.NoBody
	return resp, nil
}

// post is Do where nothing but 2xx is good.
func (s *sender) post(req *http.Request) error {
	resp, err := s.Do(req)
	if err != nil {
		return err
	}
	return good(resp)
}

// statusError is an answer other than 2xx.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("answered with status %d", int(e)) }

func good(resp *http.Response) error {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return statusError(resp.StatusCode)
	}
	return nil
}

func refusePrivate(_ context.Context, _, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: it cannot be read", ErrAddress)
	}
	if !public(a.Addr()) {
		return ErrAddress
	}
	return nil
}

// special are the networks of the IANA special-purpose registries that lead inside, nowhere, or through a
// translator to an IPv4 address that was not looked at. Those that netip knows are not repeated.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), // with Teredo
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("3fff::/20"),
}

// global is all of IPv6 that is given to anybody; what translates to IPv4 (64:ff9b::/96 and the like) is outside.
var global = netip.MustParsePrefix("2000::/3")

func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !global.Contains(a) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

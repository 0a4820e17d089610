package notify_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wetink/wetink/notify"
)

func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	for _, a := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
		"100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
		"2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
	} {
		if notify.Public(netip.MustParseAddr(a)) {
			t.Errorf("%s counts as public", a)
		}
	}
	for _, a := range []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.32.0.1", "198.20.0.1", "::ffff:1.1.1.1", "2606:4700::1111", "2a00:1450::1"} {
		if !notify.Public(netip.MustParseAddr(a)) {
			t.Errorf("%s does not count as public", a)
		}
	}
}

// canary counts the connections that reach this machine.
func canary(t *testing.T) (port string, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	connections = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			c.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, connections
}

func TestNoConnectionReachesThisMachine(t *testing.T) {
	port, connections := canary(t)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "hook.example.com"} {
		w, err := notify.NewWebhook("w", "https://"+host+":"+port+"/", []notify.Secret{whsec(1)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host == "hook.example.com" { // a name of anybody, that leads here
			w.SetResolver(rebinding(t, netip.MustParseAddr("127.0.0.1")))
		}
		if err := w.Send(t.Context(), message()); !errors.Is(err, notify.ErrAddress) {
			t.Errorf("%s: %v, want %v", host, err, notify.ErrAddress)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
	// The canary itself works.
	w, err := notify.NewWebhook("w", "https://hook.example.com:"+port+"/", []notify.Secret{whsec(1)}, &notify.HTTPOptions{AllowPrivateAddressesDANGEROUS: true})
	if err != nil {
		t.Fatal(err)
	}
	w.SetResolver(rebinding(t, netip.MustParseAddr("127.0.0.1")))
	if err := w.Send(t.Context(), message()); err == nil || connections.Load() == 0 {
		t.Errorf("with private addresses allowed: %v, %d connections", err, connections.Load())
	}
}

// rebinding answers every question for an IPv4 address with a.
func rebinding(t *testing.T, a netip.Addr) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			end := 12 // the question: labels, a zero, type and class
			for b[end] != 0 {
				end += int(b[end]) + 1
			}
			end += 5
			answer := append([]byte(nil), b[:end]...)
			binary.BigEndian.PutUint16(answer[2:], 0x8580) // an answer, with authority
			clear(answer[6:12])
			if binary.BigEndian.Uint16(b[end-4:]) == 1 && n >= end {
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, a.AsSlice()...)
			}
			server.WriteTo(answer, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer target.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(target.URL, code))
		w, err := notify.NewWebhook("w", server.URL, []notify.Secret{whsec(1)}, &notify.HTTPOptions{AllowPrivateAddressesDANGEROUS: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Send(t.Context(), message()); err == nil {
			t.Errorf("a redirect with %d counts as delivered", code)
		}
		server.Close()
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

func TestAddressesThatAreNotSafeAreRefusedBeforeAnythingIsSent(t *testing.T) {
	for _, address := range []string{"http://hook.example.com/", "ftp://hook.example.com/", "hook.example.com", "https://", "https://me:pw@hook.example.com/", "https://a b/", "file:///etc/passwd"} {
		if _, err := notify.NewWebhook("w", address, []notify.Secret{whsec(1)}, nil); err == nil {
			t.Errorf("a webhook to %q was not refused", address)
		}
		if _, err := notify.NewNtfy("n", address, notify.Secret{}, nil); err == nil {
			t.Errorf("ntfy at %q was not refused", address)
		}
	}
}

func TestErrorsNameNeitherTheURLNorWhatTheOtherSideSaid(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "instructions to whoever reads the log")
	}))
	gone := httptest.NewServer(http.NotFoundHandler())
	goneURL := gone.URL
	gone.Close()
	defer server.Close()
	for _, url := range []string{server.URL, goneURL} {
		n, err := notify.NewNtfy("n", url+"/topic-that-is-a-secret", notify.NewSecret([]byte("tk_secret")), &notify.HTTPOptions{AllowPrivateAddressesDANGEROUS: true})
		if err != nil {
			t.Fatal(err)
		}
		err = n.Send(t.Context(), message())
		if err == nil {
			t.Fatal("no error")
		}
		for _, never := range []string{"topic-that", "tk_secret", "instructions"} {
			if strings.Contains(err.Error(), never) {
				t.Errorf("the error says %q: %v", never, err)
			}
		}
	}
}

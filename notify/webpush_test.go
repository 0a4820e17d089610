package notify_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wetink/wetink/notify"
)

// browser is the other end of Web Push: it decrypts with the standard library alone what RFC 8291 says.
type browser struct {
	key  *ecdh.PrivateKey
	auth []byte
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{key, make([]byte, 16)}
	rand.Read(b.auth)
	return b
}

var b64 = base64.RawURLEncoding

func (b *browser) subscription(endpoint string) []byte {
	return fmt.Appendf(nil, `{"endpoint":%q,"expirationTime":null,"keys":{"p256dh":%q,"auth":%q}}`,
		endpoint, b64.EncodeToString(b.key.PublicKey().Bytes()), b64.EncodeToString(b.auth))
}

// decrypt is RFC 8291 section 3.4 over RFC 8188 section 2, for one record.
func (b *browser) decrypt(body []byte) ([]byte, error) {
	if len(body) < 21 || len(body) < 21+int(body[20]) {
		return nil, errors.New("shorter than its header")
	}
	salt, size, id, sealed := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:21+int(body[20])], body[21+int(body[20]):]
	if uint32(len(sealed)) > size {
		return nil, errors.New("more than one record")
	}
	theirs, err := ecdh.P256().NewPublicKey(id)
	if err != nil {
		return nil, err
	}
	shared, err := b.key.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	info := "WebPush: info\x00" + string(b.key.PublicKey().Bytes()) + string(id)
	ikm, err := hkdf.Key(sha256.New, shared, b.auth, info, 32)
	if err != nil {
		return nil, err
	}
	cek, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(cek)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nonce, sealed, nil)
	if err != nil {
		return nil, err
	}
	plain = bytes.TrimRight(plain, "\x00")
	if !bytes.HasSuffix(plain, []byte{2}) {
		return nil, errors.New("the last record does not end with 2")
	}
	return plain[:len(plain)-1], nil
}

// The example of RFC 8291 section 5, so that the two ends of these tests cannot be wrong in the same way.
func TestTheBrowserOfTheseTestsDecryptsTheExampleOfTheRFC(t *testing.T) {
	decode := func(s string) []byte {
		b, err := b64.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	key, err := ecdh.P256().NewPrivateKey(decode("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&browser{key, decode("BTBZMqHH6r4Tts7J_aSIgg")}).decrypt(decode("DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml" +
		"mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"))
	if err != nil || string(got) != "When I grow up, I want to be a watermelon" {
		t.Errorf("%q, %v", got, err)
	}
}

// subscriptions are a store of them, and of the key.
type subscriptions struct {
	mu      sync.Mutex
	records map[string][]byte // by endpoint
	key     notify.Secret
	kept    int
}

func (s *subscriptions) add(endpoint string, record []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records = map[string][]byte{}
	}
	s.records[endpoint] = record
}

func (s *subscriptions) Subscriptions(context.Context) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all [][]byte
	for _, r := range s.records {
		all = append(all, r)
	}
	return all, nil
}

func (s *subscriptions) RemoveSubscription(_ context.Context, endpoint string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, endpoint)
	return nil
}

func (s *subscriptions) KeepVAPIDKey(_ context.Context, fresh notify.Secret) (notify.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept++
	if s.key.IsZero() {
		s.key = fresh
	}
	return s.key, nil
}

func (s *subscriptions) count() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.records) }

func webPush(t *testing.T, s *subscriptions, now func() time.Time) *notify.WebPush {
	t.Helper()
	o := &notify.WebPushOptions{HTTPOptions: *loopback, Log: slog.New(slog.DiscardHandler)}
	o.Now = now
	w, err := notify.NewWebPush("push", s, s, "mailto:ops@example.com", o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestABrowserDecryptsWhatAPushServiceCannotRead(t *testing.T) {
	url, got := receiver(t, http.StatusCreated)
	s, b := &subscriptions{}, newBrowser(t)
	s.add(url, b.subscription(url+"/push/abc"))
	w := webPush(t, s, nil)
	if err := w.Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	r := <-got
	plain, err := b.decrypt(r.body)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := message().Bytes(); !bytes.Equal(plain, want) {
		t.Errorf("it reads %s, want %s", plain, want)
	}
	if _, err := newBrowser(t).decrypt(r.body); err == nil {
		t.Error("another browser decrypts it too")
	}
	for name, want := range map[string]string{"Content-Encoding": "aes128gcm", "Ttl": "86400", "Urgency": "high", "Topic": "change-waiting"} {
		if r.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, r.Header.Get(name), want)
		}
	}
	for name, values := range r.Header {
		if s := fmt.Sprint(values); strings.Contains(s, "changes are") || strings.Contains(s, "wetink.example") {
			t.Errorf("%s tells the push service %s", name, s)
		}
	}
	public, err := w.PublicKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkVAPID(t, r.Header.Get("Authorization"), public, url)
}

// checkVAPID is RFC 8292 with the standard library.
func checkVAPID(t *testing.T, header, public, audience string) {
	t.Helper()
	var token, key string
	rest, ok := strings.CutPrefix(header, "vapid ")
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			token = value
		case "k":
			key = value
		}
	}
	parts := strings.Split(token, ".")
	if !ok || len(parts) != 3 || key != public {
		t.Fatalf("Authorization is %q, the public key %s", header, public)
	}
	point, err := b64.DecodeString(key)
	if err != nil || len(point) != 65 {
		t.Fatalf("the key has %d bytes: %v", len(point), err)
	}
	pub, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := b64.DecodeString(parts[2])
	if err != nil || len(sig) != 64 {
		t.Fatalf("the signature has %d bytes: %v", len(sig), err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(pub, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		t.Error("the token's signature is not that of the key")
	}
	head, err := b64.DecodeString(parts[0])
	if err != nil || !strings.Contains(string(head), `"alg":"ES256"`) {
		t.Errorf("the token's header is %s (%v)", head, err)
	}
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	body, err := b64.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(body, &claims)
	}
	until := time.Until(time.Unix(claims.Exp, 0))
	if err != nil || claims.Aud != audience || claims.Sub != "mailto:ops@example.com" || until <= 0 || until > 24*time.Hour {
		t.Errorf("claims are %s (%v)", body, err)
	}
}

func TestTheVAPIDKeyIsMadeOnceAndKept(t *testing.T) {
	s := &subscriptions{}
	first, err := webPush(t, s, nil).PublicKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := webPush(t, s, nil)
	for range 3 {
		if second, err := again.PublicKey(t.Context()); err != nil || second != first {
			t.Errorf("another process has the key %s (%v), want %s", second, err, first)
		}
	}
	if s.kept != 2 {
		t.Errorf("the store was asked %d times by two processes", s.kept)
	}
	s.key = notify.NewSecret([]byte("garbled"))
	if _, err := webPush(t, s, nil).PublicKey(t.Context()); err == nil || strings.Contains(err.Error(), "garbled") {
		t.Errorf("a key that is none: %v", err)
	}
}

// service is a push service that answers by path: /200, /404, …
type service struct {
	*httptest.Server
	mu    sync.Mutex
	paths []string
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		s.mu.Lock()
		s.paths = append(s.paths, r.URL.Path)
		s.mu.Unlock()
		var code int
		fmt.Sscanf(r.URL.Path, "/%d", &code)
		w.WriteHeader(code)
	}))
	t.Cleanup(s.Close)
	return s
}

// asked returns the paths since the last call, sorted.
func (s *service) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := s.paths
	s.paths = nil
	slices.Sort(paths)
	return paths
}

func subscribe(t *testing.T, s *subscriptions, service *service, paths ...string) {
	for _, p := range paths {
		s.add(service.URL+p, newBrowser(t).subscription(service.URL+p))
	}
}

func TestASubscriptionThatIsGoneIsForgotten(t *testing.T) {
	s, service := &subscriptions{}, newService(t)
	subscribe(t, s, service, "/201", "/404", "/410")
	w := webPush(t, s, nil)
	if err := w.Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	want(t, "asked", service.asked(), "/201", "/404", "/410")
	if s.count() != 1 || s.records[service.URL+"/201"] == nil {
		t.Errorf("%d subscriptions are left", s.count())
	}
}

func TestOnlyBrowsersWithoutTheMessageAreTriedAgain(t *testing.T) {
	s, service := &subscriptions{}, newService(t)
	subscribe(t, s, service, "/201", "/400", "/503", "/429")
	w := webPush(t, s, nil)
	for range 2 {
		if err := w.Send(t.Context(), message()); err == nil {
			t.Fatal("two browsers did not get it, and nothing was said")
		}
	}
	want(t, "asked", service.asked(), "/201", "/400", "/429", "/429", "/503", "/503")
	m := message()
	m.ID += "1"
	w.Send(t.Context(), m)
	want(t, "asked for the next message", service.asked(), "/201", "/400", "/429", "/503")
}

func TestABrowserThatNeverAnswersHoldsUpTheOthersOnce(t *testing.T) {
	s, service := &subscriptions{}, newService(t)
	subscribe(t, s, service, "/201", "/503")
	now := time.Date(2026, 3, 5, 7, 0, 0, 0, time.UTC)
	w := webPush(t, s, func() time.Time { return now })
	if err := w.Send(t.Context(), message()); err == nil {
		t.Fatal("one browser did not get it, and nothing was said")
	}
	now = now.Add(9 * time.Minute)
	if err := w.Send(t.Context(), message()); err == nil {
		t.Error("its patience was over too early")
	}
	now = now.Add(time.Minute)
	if err := w.Send(t.Context(), message()); err != nil {
		t.Errorf("after ten minutes: %v, want to go on", err)
	}
	service.asked()
	m := message()
	m.ID += "1"
	if err := w.Send(t.Context(), m); err != nil {
		t.Errorf("the next message: %v, want not to be held up", err)
	}
	want(t, "but it was tried", service.asked(), "/201", "/503")
}

func TestTheEndOfTheProcessIsNotTakenForADelivery(t *testing.T) {
	s, service := &subscriptions{}, newService(t)
	subscribe(t, s, service, "/201")
	now := time.Date(2026, 3, 5, 7, 0, 0, 0, time.UTC)
	w := webPush(t, s, func() time.Time { now = now.Add(time.Hour); return now })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Send(ctx, message()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

func TestAnEndpointInsideOurNetworkIsNotAsked(t *testing.T) {
	port, connections := canary(t)
	s := &subscriptions{}
	for _, endpoint := range []string{"https://127.0.0.1:" + port + "/x", "http://127.0.0.1:" + port + "/x", "https://localhost:" + port + "/"} {
		s.add(endpoint, newBrowser(t).subscription(endpoint))
	}
	var log bytes.Buffer
	w, err := notify.NewWebPush("push", s, s, "ops@example.com", &notify.WebPushOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Send(t.Context(), message()); err != nil {
		t.Errorf("%v, want that it does not hold up others", err)
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
	if said := log.String(); strings.Count(said, notify.ErrAddress.Error()) != 2 || strings.Count(said, "must begin with https://") != 1 {
		t.Errorf("the log does not say why, for two addresses and one without TLS:\n%s", said)
	}
}

func TestAStoredSubscriptionThatIsBrokenDoesNotHoldUpOthers(t *testing.T) {
	s, service := &subscriptions{}, newService(t)
	subscribe(t, s, service, "/201")
	good := string(newBrowser(t).subscription(service.URL + "/202"))
	for i, record := range []string{
		``, `{`, `[]`, `{"endpoint":""}`, `{"endpoint":"` + service.URL + `/200"}`,
		strings.Replace(good, `"p256dh":"B`, `"p256dh":"C`, 1), strings.Replace(good, `"auth":"`, `"auth":"AAAA`, 1),
	} {
		if record == good {
			t.Fatal("a record that was to be broken is not")
		}
		s.add(fmt.Sprint(i), []byte(record))
	}
	if err := webPush(t, s, nil).Send(t.Context(), message()); err != nil {
		t.Error(err)
	}
	want(t, "asked", service.asked(), "/201")
}

func TestLogsOfWebPushDoNotShowEndpoints(t *testing.T) {
	var log bytes.Buffer
	s, service := &subscriptions{}, newService(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	subscribe(t, s, service, "/503/secret-part", "/403/secret-part")
	s.add("x", newBrowser(t).subscription(gone.URL+"/secret-part"))
	w, err := notify.NewWebPush("push", s, s, "https://example.com/contact", &notify.WebPushOptions{HTTPOptions: *loopback, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Send(t.Context(), message())
	if err == nil || strings.Contains(err.Error()+log.String(), "secret-part") {
		t.Errorf("%v\n%s", err, log.String())
	}
	if strings.Count(log.String(), "not delivered") != 3 {
		t.Errorf("the log does not tell of three browsers:\n%s", log.String())
	}
}

func TestWebPushNeedsAContact(t *testing.T) {
	for _, contact := range []string{"", "nobody", "http://example.com/"} {
		if _, err := notify.NewWebPush("push", &subscriptions{}, &subscriptions{}, contact, nil); err == nil {
			t.Errorf("contact %q was not refused", contact)
		}
	}
}

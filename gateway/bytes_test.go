package gateway_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/wetink/wetink/gateway"
)

// value writes JSON that decoding and encoding would change.
func value(r *rand.Rand, b *bytes.Buffer, depth int) {
	space := func() { b.WriteString([]string{"", "", "", " ", "\t", "  "}[r.IntN(6)]) }
	space()
	switch n := r.IntN(12); {
	case n < 3 && depth > 0:
		b.WriteByte('{')
		for i := range r.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			fmt.Fprintf(b, `"%s"`, []string{"a", "a", "b", "\\u0061", "é", "id", "method", "jsonrpc"}[r.IntN(8)]) // twice, too
			space()
			b.WriteByte(':')
			value(r, b, depth-1)
		}
		space()
		b.WriteByte('}')
	case n < 5 && depth > 0:
		b.WriteByte('[')
		for i := range r.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			value(r, b, depth-1)
		}
		space()
		b.WriteByte(']')
	case n < 9:
		b.WriteString([]string{"9007199254740993", "1e400", "-0", "0.10", "1E+2", "123456789012345678901234567890.5", "1.0"}[r.IntN(7)])
	default:
		b.WriteString([]string{`""`, `"\u00e9\/\u2028"`, `"<&>"`, `"\ud83d\ude00"`, `"\ud800"`, "\"\u2028\"", "true", "null", `"\\n\"{}"`}[r.IntN(9)])
	}
	space()
}

func TestTenThousandMessagesPassUnchangedToTheByte(t *testing.T) {
	g, _ := newGateway(t, nil, nil, upstreamOf("one", "raw"))
	w := serve(t, g)
	r := rand.New(rand.NewPCG(1, 2))
	differ := 0
	for i := range 10_000 {
		var b bytes.Buffer
		b.WriteString(`{"p":`)
		value(r, &b, 5)
		b.WriteByte('}')
		if i%1000 == 0 { // 5 MB there is more than a client may send; ask for it instead
			b.Reset()
			b.WriteString(`{"deep":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `,"big":"` + strings.Repeat("x", 1<<20) + `"}`)
		}
		// The upstream answers with the params that reached it.
		go io.WriteString(w.in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo","params":%s}`+"\n", i, b.String()))
		if want, got := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, i, b.String()), w.read(); got != want {
			differ++
			t.Errorf("message %d\ngot  %.300q\nwant %.300q", i, got, want)
		}
		if differ > 5 {
			break
		}
	}
}

func TestWhatAnUpstreamAnswersPassesAsItIsOrIsRefusedClearly(t *testing.T) {
	g, log := newGateway(t, nil, &gateway.Options{UpstreamBytes: 6 << 20}, upstreamOf("one", "raw"))
	w := serve(t, g)
	ask := func(answer string) string {
		w.send(`{"jsonrpc":"2.0","id":7,"method":"say","params":{"text":"` + base64.StdEncoding.EncodeToString([]byte(answer)) + `"}}`)
		return w.read()
	}
	for _, same := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2,"A":3}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"latin1\":\"caf\xe9\"}}",
		`{"result" : 1e400 ,"id": 7,"jsonrpc":"2.0","extra":[ ]}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"x","data":9007199254740993}}`,
		`{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 3<<20) + `"}`, // in base64 4 MiB, as much as a client may send
	} {
		if len(same) > 1<<20 {
			same = same[:2<<20] + `"}`
		}
		if got := ask(same); got != same {
			t.Errorf("got  %.200q\nwant %.200q", got, same)
		}
	}
	for bad, why := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":1,"result":2}`:                                                `\"result\" stands twice`,
		`{"jsonrpc":"2.0","id":7,"result":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`: "nested deeper than 512",
		`{"jsonrpc":"2.0","id":7,"result":{]}`:                                                          "a string is missing",
	} {
		if got := ask(bad); !strings.Contains(got, why) || !strings.Contains(got, `"id":7`) || !strings.Contains(got, `"outcome":"unknown"`) {
			t.Errorf("%.80s: got %.300s", bad, got)
		}
	}
	// None of these is an answer: the one that follows is.
	for _, noise := range []string{"hello, I log to stdout\n", "[]\n", `{"jsonrpc":"2.0","id":"other","result":{}}` + "\n", "\n\n"} {
		if got := ask(noise + `{"jsonrpc":"2.0","id":7,"result":"real"}`); !strings.HasSuffix(got, `"real"}`) {
			t.Errorf("%q: got %s", noise, got)
		}
	}
	if !strings.Contains(log.String(), "nobody waits for") {
		t.Error("an answer to nothing is not in the log")
	}
}

func TestFiveMegabytesPassAndMoreThanTheLimitIsNamed(t *testing.T) {
	g, _ := newGateway(t, nil, &gateway.Options{ClientBytes: 12 << 20, UpstreamBytes: 6 << 20}, upstreamOf("one", "raw"))
	w := serve(t, g)
	ask := func(n int) string {
		w.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"big":"` + strings.Repeat("x", n) + `"}}`)
		return w.read()
	}
	if got := ask(5 << 20); len(got) < 5<<20 {
		t.Errorf("got %.200s", got)
	}
	if got := ask(6 << 20); !strings.Contains(got, "more than 6291456 bytes") || !strings.Contains(got, `"id":1`) {
		t.Errorf("got %.200s", got)
	}
	if got := ask(10); !strings.Contains(got, `"xxxxxxxxxx"`) {
		t.Errorf("afterwards: %s", got)
	}
	w.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"big":"` + strings.Repeat("x", 12<<20) + `"}}`)
	if got := w.read(); !strings.Contains(got, "too long") || !strings.Contains(got, `"id":null`) {
		t.Errorf("a client's message over the limit: %.200s", got)
	}
}

func TestALineFeedSmugglesNoSecondMessage(t *testing.T) {
	g, _ := newGateway(t, nil, nil, upstreamOf("one", "raw"))
	url := listen(t, g)
	_, _, h := post(t, url, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}")
	_, got, _ := post(t, url, "{\"jsonrpc\":\"2.0\",\"id\":1,\r\n\"method\":\"echo\",\n\"params\":{\n\"a\":1}}\n", "Mcp-Session-Id", h.Get("Mcp-Session-Id"))
	if got != `{"jsonrpc":"2.0","id":1,"result":{ "a":1}}` {
		t.Errorf("got %q", got)
	}
	// To a reader with universal newlines (Python's) a carriage return ends a line, too: there, the value of x would be
	// a message that no guard saw.
	_, got, _ = post(t, url, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"x\":\r{\"id\":2,\"method\":\"tools/call\"}\r}}", "Mcp-Session-Id", h.Get("Mcp-Session-Id"))
	if strings.Contains(got, "\r") || !strings.Contains(got, `{"x": {"id":2`) {
		t.Errorf("got %q", got)
	}
}

func TestBytesPassBetweenHTTPAndHTTP(t *testing.T) {
	var seen []byte
	answer := []byte("id: 7\r\nevent: message\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata: \"result\":1e400}\n\n: comment \xff\n\n")
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Mcp-Session-Id", "s1")
		w.WriteHeader(http.StatusAccepted)
		w.Write(answer)
	}))
	t.Cleanup(up.Close)
	g, _ := newGateway(t, nil, nil, gateway.Upstream{Name: "one", URL: up.URL})
	body := "\n { \"jsonrpc\":\"2.0\", \"id\":9007199254740993 ,\n\"method\":\"x\",\"params\":{\"b\":1,\"a\":1e400}} "
	status, got, h := post(t, listen(t, g), body)
	if string(seen) != body || got != string(answer) || status != http.StatusAccepted || h.Get("Mcp-Session-Id") != "s1" {
		t.Errorf("HTTP %d, %q, there %q", status, got, seen)
	}
}

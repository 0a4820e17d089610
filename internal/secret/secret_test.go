package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/wetink/wetink/internal/secret"
)

func TestBytesAreNeverPrinted(t *testing.T) {
	const word = "correct horse"
	s := secret.New([]byte(word))
	inside := struct{ hidden secret.Bytes }{s}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "inside", inside)
	asJSON, err := json.Marshal(map[string]any{"secret": s, "inside": inside})
	if err != nil {
		t.Fatal(err)
	}
	asBytes := fmt.Sprint([]byte(word))
	for _, printed := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %x %d %q", s, s, s, s, s, s, s),
		fmt.Sprintf("%v %+v %#v", inside, inside, inside), log.String(), string(asJSON)} {
		if strings.Contains(printed, word) || strings.Contains(printed, fmt.Sprintf("%x", word)) || strings.Contains(printed, asBytes[1:len(asBytes)-1]) {
			t.Errorf("it was printed: %s", printed)
		}
	}
	if string(s.Reveal()) != word || s.IsZero() || !(secret.Bytes{}).IsZero() {
		t.Error("what was wrapped does not come back")
	}
}

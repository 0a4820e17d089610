package crashpoint_test

import (
	"testing"

	"github.com/wetink/wetink/internal/crashpoint"
)

func TestEveryPointHasANameOfItsOwn(t *testing.T) {
	seen := map[string]crashpoint.Point{}
	for _, p := range crashpoint.All() {
		if p.String() == "" {
			t.Errorf("point %d is not in the table of names", int(p))
		}
		if other, ok := seen[p.String()]; ok {
			t.Errorf("points %d and %d are both named %q", int(other), int(p), p)
		}
		seen[p.String()] = p
	}
	if len(seen) == 0 {
		t.Error("no points")
	}
}

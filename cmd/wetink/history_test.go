package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/ledger/memory"
)

func TestHistoryBeginsWithTheFirstEventOfThatTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{ledger: memory.New(nil)}
		start := time.Now()
		for i := range 100 { // event i+1 happens i minutes after the start
			if err := s.ledger.SetMode(t.Context(), []wetink.Mode{wetink.ModeOff, wetink.ModeGuarded}[i%2], "ana"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		for minutes, want := range map[int]int64{-5: 0, 0: 0, 1: 1, 2: 2, 49: 49, 63: 63, 64: 64, 65: 65, 99: 99, 100: 100, 1000: 100} {
			got, err := s.before(t.Context(), start.Add(time.Duration(minutes)*time.Minute))
			if err != nil || got != want {
				t.Errorf("after %d minutes: %d, %v; want %d", minutes, got, err, want)
			}
		}
	})
}

func TestADurationMayBeDays(t *testing.T) {
	for s, want := range map[string]time.Duration{"7d": 168 * time.Hour, "12h": 12 * time.Hour, "90m": 90 * time.Minute} {
		if got, err := days(s); err != nil || got != want {
			t.Errorf("%s is %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "d", "0d", "-1d", "7", "1.5d", "99999d", "-1h", "yesterday"} {
		if got, err := days(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

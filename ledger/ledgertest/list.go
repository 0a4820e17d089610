package ledgertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wetink/wetink"
)

func ids(rows []wetink.Change) []string {
	out := []string{}
	for _, c := range rows {
		out = append(out, string(c.ID))
	}
	return out
}

func list(t *testing.T, open opener) {
	open.that(t, "filters, each and together, newest first", func(f *fixture) {
		make := func(id, target, account, undoes string, status wetink.Status, due time.Duration) {
			c := undo("chg_"+id, strings.Fields(undoes)...)
			c.Target, c.Account = target, wetink.Account(account)
			c = f.bring(c, status)
			if due != 0 {
				m := move(c, status)
				m.Due = start.Add(due)
				f.advance(m)
			}
		}
		make("1", "cal", "a", "", wetink.Pending, time.Hour)
		make("2", "cal", "b", "chg_1", wetink.Rejected, 0)
		make("3", "web", "a", "chg_0 chg_1", wetink.Applied, time.Minute)
		make("4", "web", "b", "", wetink.Applied, 0)
		make("5", "cal", "a", "chg_4", wetink.InDoubt, time.Second)
		stranger := row("chg_9")
		stranger.Tenant, stranger.Target = "acme", "cal"
		f.bring(stranger, wetink.Pending)

		for _, c := range []struct {
			name   string
			filter wetink.Filter
			want   []string
		}{
			{"none", wetink.Filter{}, []string{"5", "4", "3", "2", "1"}},
			{"another tenant", wetink.Filter{Tenant: "acme"}, []string{"9"}},
			{"no such tenant", wetink.Filter{Tenant: "acm"}, nil},
			{"any tenant", wetink.Filter{AnyTenant: true}, []string{"9", "5", "4", "3", "2", "1"}},
			{"any tenant, though one is named", wetink.Filter{AnyTenant: true, Tenant: "x"}, []string{"9", "5", "4", "3", "2", "1"}},
			{"target", wetink.Filter{Target: "cal"}, []string{"5", "2", "1"}},
			{"target of any tenant", wetink.Filter{Target: "cal", AnyTenant: true}, []string{"9", "5", "2", "1"}},
			{"account", wetink.Filter{Account: "b"}, []string{"4", "2"}},
			{"status", wetink.Filter{Status: []wetink.Status{wetink.Applied}}, []string{"4", "3"}},
			{"statuses", wetink.Filter{Status: []wetink.Status{wetink.InDoubt, wetink.Pending}}, []string{"5", "1"}},
			{"undoes", wetink.Filter{Undoes: "chg_1"}, []string{"3", "2"}},
			{"undoes, with another", wetink.Filter{Undoes: "chg_0"}, []string{"3"}},
			{"undoes, of any tenant", wetink.Filter{Undoes: "chg_1", AnyTenant: true}, []string{"3", "2"}},
			{"latest undo", wetink.Filter{Undoes: "chg_1", Limit: 1}, []string{"3"}},
			{"due", wetink.Filter{DueBefore: start.Add(time.Hour + time.Millisecond)}, []string{"5", "3", "1"}},
			{"due, exclusive", wetink.Filter{DueBefore: start.Add(time.Hour)}, []string{"5", "3"}},
			{"due, of a status", wetink.Filter{DueBefore: start.Add(time.Hour), Status: []wetink.Status{wetink.InDoubt}}, []string{"5"}},
			{"before", wetink.Filter{Before: "chg_3"}, []string{"2", "1"}},
			{"before one that is not there", wetink.Filter{Before: "chg_3x"}, []string{"3", "2", "1"}},
			{"limit", wetink.Filter{Limit: 2}, []string{"5", "4"}},
			{"all", wetink.Filter{Target: "cal", Account: "a", Status: []wetink.Status{wetink.InDoubt, wetink.Applied}, Undoes: "chg_4",
				DueBefore: start.Add(time.Minute), Before: "chg_6", Limit: 5}, []string{"5"}},
			{"all but one", wetink.Filter{Target: "cal", Account: "a", Status: []wetink.Status{wetink.Applied}, Undoes: "chg_4"}, nil},
		} {
			want := []string{}
			for _, id := range c.want {
				want = append(want, "chg_"+id)
			}
			rows := f.list(c.filter)
			if got := ids(rows); !slices.Equal(got, want) {
				f.t.Errorf("%s: %v, want %v", c.name, got, want)
			}
			for _, c := range rows {
				f.same(c, f.get(c))
			}
		}
	})
	open.that(t, "pages cover every row once, whatever their size", func(f *fixture) {
		var moves []wetink.Move
		for i := range 25 {
			moves = append(moves, born(row(fmt.Sprintf("chg_%02d", i)), wetink.Pending))
		}
		f.advance(moves...)
		whole := ids(f.list(wetink.Filter{}))
		if len(whole) != 25 || whole[0] != "chg_24" || whole[24] != "chg_00" {
			f.t.Fatalf("%v", whole)
		}
		for _, size := range []int{1, 2, 7, 24, 25, 26} {
			var got []string
			for page := (wetink.Filter{Limit: size}); ; {
				rows := f.list(page)
				got = append(got, ids(rows)...)
				if len(rows) > size || len(got) > len(whole) {
					f.t.Fatalf("a page of %d has %d rows, and so far it was %v", size, len(rows), got)
				}
				if len(rows) < size {
					break
				}
				page.Before = rows[len(rows)-1].ID
			}
			if !slices.Equal(got, whole) {
				f.t.Errorf("in pages of %d: %v", size, got)
			}
		}
	})
	open.that(t, "a hundred are given when no limit is named", func(f *fixture) {
		var moves []wetink.Move
		for i := range 105 {
			moves = append(moves, born(row(fmt.Sprintf("chg_%03d", i)), wetink.Pending))
		}
		f.advance(moves...)
		if got := f.list(wetink.Filter{}); len(got) != 100 || got[99].ID != "chg_005" {
			f.t.Errorf("%d rows", len(got))
		}
		if got := f.list(wetink.Filter{Limit: 500}); len(got) != 105 {
			f.t.Errorf("%d rows", len(got))
		}
	})
	open.that(t, "ids are ordered as bytes", func(f *fixture) {
		order := []string{"chg_é", "chg_a", "chg__", "chg_B", "chg_A", "chg_1", "chg_-"}
		for _, id := range order {
			f.bring(row(id), wetink.Pending)
		}
		if got := ids(f.list(wetink.Filter{})); !slices.Equal(got, order) {
			f.t.Errorf("%q", got)
		}
		if got := ids(f.list(wetink.Filter{Before: "chg_a"})); !slices.Equal(got, order[2:]) {
			f.t.Errorf("before chg_a: %q", got)
		}
	})
	open.that(t, "a reader may stop early, and may read and write between two rows", func(f *fixture) {
		for i := range 20 {
			f.bring(row(fmt.Sprintf("chg_%02d", i)), wetink.Pending)
		}
		seen := 0
		for c, err := range f.l.List(f.ctx, wetink.Filter{}) {
			if err != nil {
				f.t.Fatal(err)
			}
			f.step(f.get(c), wetink.Expired)
			if seen++; seen == 3 {
				break
			}
		}
		f.bring(row("chg_99"), wetink.Pending)
		if n := len(f.list(wetink.Filter{Status: []wetink.Status{wetink.Expired}})); n != 3 || seen != 3 {
			f.t.Errorf("%d seen, %d expired", seen, n)
		}
	})
}

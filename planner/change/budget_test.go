package change

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var usual = []Rate{{10, time.Hour}, {25, 24 * time.Hour}}

func TestASmallFleetMayAlwaysMoveOneCluster(t *testing.T) {
	for _, test := range []struct{ percent, clusters, want int }{
		{10, 100, 10}, {10, 109, 10}, {10, 9, 1}, {1, 1, 1}, {1, 0, 1}, {100, 7, 7}, {0, 1000, 0}, {100, 100_000, 100_000},
	} {
		if got := (Rate{test.percent, time.Hour}).Allowed(test.clusters); got != test.want {
			t.Errorf("%d %% of %d clusters are %d moves, want %d", test.percent, test.clusters, got, test.want)
		}
	}
}

func TestEveryWindowHolds(t *testing.T) {
	hour, day := 3600, 24*3600
	spread := Ledger(nil).Add(at(0), Balance, 10).Add(at(hour), Balance, 10).Add(at(2*hour), Pin, 4)
	for name, test := range map[string]struct {
		ledger   Ledger
		rates    []Rate
		clusters int
		now      time.Time
		left     int
		next     time.Time
		says     string
	}{
		"nothing was moved": {nil, usual, 100, at(0), 10, at(0), "10 more clusters may move now: made 0 of 10 within 1h, 0 of 25 within 24h"},
		"no limit":          {spread, nil, 100, at(0), math.MaxInt, at(0), "the number of moves is not limited"},
		"the hour is full": {Ledger(nil).Add(at(0), Failover, 10), usual, 100, at(hour - 1), 0, at(hour),
			"no cluster may move before 2026-11-20T18:03:20Z: made 10 of 10 within 1h, 10 of 25 within 24h (Failover 10)"},
		"the hour is over": {Ledger(nil).Add(at(0), Failover, 10), usual, 100, at(hour), 10, at(hour),
			"10 more clusters may move now: made 0 of 10 within 1h, 10 of 25 within 24h (Failover 10)"},
		"the day leaves one": {spread, usual, 100, at(3 * hour), 1, at(3 * hour),
			"1 more cluster may move now: made 0 of 10 within 1h, 24 of 25 within 24h (Balance 20, Pin 4)"},
		"the day is full": {spread.Add(at(3*hour), Drain, 1), usual, 100, at(4 * hour), 0, at(day),
			"no cluster may move before 2026-11-21T17:03:20Z: made 0 of 10 within 1h, 25 of 25 within 24h (Balance 20, Drain 1, Pin 4)"},
		"pins took more than there is": {Ledger(nil).Add(at(0), Pin, 40).Add(at(60), Pin, 40), usual, 100, at(120), 0, at(day + 60),
			"no cluster may move before 2026-11-21T17:04:20Z: made 80 of 10 within 1h, 80 of 25 within 24h (Pin 80)"},
		"the fleet shrank": {Ledger(nil).Add(at(0), Balance, 10), usual, 20, at(hour), 0, at(day),
			"no cluster may move before 2026-11-21T17:03:20Z: made 0 of 2 within 1h, 10 of 5 within 24h (Balance 10)"},
		"nothing is allowed": {nil, []Rate{{0, time.Hour}}, 100, at(0), 0, time.Time{}, "no cluster may move: made 0 of 0 within 1h"},
		"odd periods": {Ledger(nil).Add(at(0), Balance, 1), []Rate{{1, 90 * time.Second}, {50, 168 * time.Hour}, {2, 150 * time.Minute}}, 100, at(1), 0, at(90),
			"no cluster may move before 2026-11-20T17:04:50Z: made 1 of 1 within 1m30s, 1 of 50 within 168h, 1 of 2 within 2h30m (Balance 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := Look(test.ledger, test.rates, test.clusters, test.now)
			if b.Left != test.left || !b.Next.Equal(test.next) {
				t.Errorf("left %d and next at %s, want %d at %s", b.Left, b.Next, test.left, test.next)
			}
			if diff := cmp.Diff(test.says, b.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := Left(test.ledger, test.rates, test.clusters, test.now); got != test.left {
				t.Errorf("Left says %d, want %d", got, test.left)
			}
		})
	}
}

func TestMoreMovesThanAWindowAllowsNeverFit(t *testing.T) {
	if when, ok := When(nil, usual, 100, at(0), 11); ok || !when.IsZero() {
		t.Errorf("11 of 10 moves fit at %s", when)
	}
	if when, ok := When(Ledger(nil).Add(at(0), Balance, 1), usual, 100, at(1), 10); !ok || !when.Equal(at(3600)) {
		t.Errorf("10 of 10 moves fit at %s (%t), want an hour after the last", when, ok)
	}
}

// history plays random moves against random rates on a clock that sometimes goes back, through JSON now and then as from
// leader to leader, and keeps what really happened at which real time.
type history struct {
	rates    []Rate
	clusters int
	ledger   Ledger
	real     time.Time
	behind   time.Duration // of the clock
	made     []Record
}

func newHistory(t *rapid.T) *history {
	period := rapid.SampledFrom([]time.Duration{time.Minute, 7 * time.Minute, time.Hour, 3 * time.Hour, 24 * time.Hour})
	rate := rapid.Custom(func(t *rapid.T) Rate {
		return Rate{rapid.IntRange(1, 100).Draw(t, "percent"), period.Draw(t, "period")}
	})
	return &history{real: start, clusters: rapid.IntRange(1, 500).Draw(t, "clusters"), rates: rapid.SliceOfN(rate, 1, 3).Draw(t, "rates")}
}

func (h *history) clock() time.Time { return h.real.Add(-h.behind) }

func (h *history) pass(t *rapid.T) {
	h.real = h.real.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 350, 59_000, 61_000, 1_800_000, 3_599_999, 7_200_000, 40_000_000}).Draw(t, "ms")) * time.Millisecond)
	if rapid.IntRange(0, 9).Draw(t, "the clock goes back") == 0 {
		h.behind += time.Duration(rapid.IntRange(1, 200_000).Draw(t, "seconds back")) * time.Second
	}
	h.ledger = h.ledger.Kept(h.clock(), h.rates)
}

func (h *history) move(cause Cause, n int) {
	h.ledger = h.ledger.Add(h.clock(), cause, n)
	h.made = append(h.made, Record{h.real, n, cause})
}

func (h *history) reread(t *rapid.T) {
	data, err := json.Marshal(h.ledger)
	if err != nil {
		t.Fatal(err)
	}
	var again Ledger
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	h.ledger = again
}

// within is what was really moved less than a period ago.
func (h *history) within(period time.Duration) int {
	n := 0
	for _, r := range h.made {
		if h.real.Sub(r.At) < period {
			n += r.Moves
		}
	}
	return n
}

func TestNoWindowEverHasMoreMovesThanItAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.pass(t)
			if rapid.Bool().Draw(t, "another leader") {
				h.reread(t)
			}
			if rapid.IntRange(0, 4).Draw(t, "a pin") == 0 {
				h.move(Pin, rapid.IntRange(1, 3).Draw(t, "pins"))
			}
			left := Left(h.ledger, h.rates, h.clusters, h.clock())
			if left == 0 {
				continue
			}
			n := left
			if rapid.Bool().Draw(t, "some") {
				n = rapid.IntRange(1, left).Draw(t, "moves")
			}
			h.move(rapid.SampledFrom([]Cause{Balance, Failover, Drain, Rollback}).Draw(t, "cause"), n)
			for _, r := range h.rates {
				if got := h.within(r.Period); got > r.Allowed(h.clusters) {
					t.Fatalf("%d moves within %s, allowed are %d of %d clusters", got, r.Period, r.Allowed(h.clusters), h.clusters)
				}
			}
		}
	})
}

func TestTheBudgetComesBackWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			h.pass(t)
			h.move(Balance, rapid.IntRange(1, 50).Draw(t, "moves"))
		}
		want, longest := math.MaxInt, time.Duration(0)
		for _, r := range h.rates {
			want, longest = min(want, r.Allowed(h.clusters)), max(longest, r.Period)
		}
		later := h.clock().Add(longest + time.Second) // a move counts from the next whole second
		if got := Left(h.ledger, h.rates, h.clusters, later); got != want {
			t.Fatalf("%d moves are left after %s of rest, want %d", got, longest, want)
		}
	})
}

func TestTheNextMoveFitsWhenItIsSaidToAndNotBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			h.pass(t)
			h.move(Balance, rapid.IntRange(1, 20).Draw(t, "moves"))
		}
		now, n := h.clock().Add(time.Second), rapid.IntRange(1, 20).Draw(t, "wanted")
		when, ok := When(h.ledger, h.rates, h.clusters, now, n)
		switch {
		case !ok:
			if later := now.AddDate(1, 0, 0); Left(h.ledger, h.rates, h.clusters, later) >= n {
				t.Fatalf("%d moves never fit, but do in a year", n)
			}
		case Left(h.ledger, h.rates, h.clusters, when) < n:
			t.Fatalf("%d moves do not fit at %s", n, when)
		case when.After(now) && Left(h.ledger, h.rates, h.clusters, when.Add(-time.Nanosecond)) >= n:
			t.Fatalf("%d moves fit before %s", n, when)
		}
	})
}

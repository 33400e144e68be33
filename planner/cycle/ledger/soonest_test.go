package ledger

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/sim"
)

var epoch = sim.Epoch

func TestSoonest(t *testing.T) {
	hour, day := change.Rate{Percent: 10, Period: time.Hour}, change.Rate{Percent: 25, Period: 24 * time.Hour}
	used := func(ago time.Duration, n int) change.Ledger {
		return change.Ledger{{At: epoch.Add(-ago), Moves: n, Cause: change.Balance}}
	}
	for name, test := range map[string]struct {
		ledger change.Ledger
		rates  []change.Rate
		moves  int
		want   time.Duration
		never  bool
	}{
		"none":                                {nil, []change.Rate{hour}, 0, 0, false},
		"as many as there is room for":        {nil, []change.Rate{hour}, 10, 0, false},
		"one more":                            {nil, []change.Rate{hour}, 11, time.Hour, false},
		"without a limit":                     {nil, nil, 1000, 0, false},
		"behind those that were made":         {used(15*time.Minute, 10), []change.Rate{hour}, 1, 45 * time.Minute, false},
		"the longer window holds them up":     {nil, []change.Rate{hour, day}, 26, 24 * time.Hour, false},
		"the shorter one before it":           {nil, []change.Rate{hour, day}, 25, 2 * time.Hour, false},
		"a rate that never lets any of it be": {nil, []change.Rate{{Period: time.Hour}}, 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			at, ok := Soonest(test.ledger, test.rates, 100, test.moves, epoch)
			if ok == test.never && test.moves > 0 || !test.never && !at.Equal(epoch.Add(test.want)) {
				t.Errorf("got %s, %t; want %s later, never %t", at, ok, test.want, test.never)
			}
		})
	}
}

// Whoever moves a cluster whenever the budget has room for one, looking each minute, is done then and not before.
func TestSoonestIsWhenSomebodyWhoNeverRestsIsDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clusters, moves := rapid.IntRange(1, 60).Draw(t, "clusters"), rapid.IntRange(0, 60).Draw(t, "moves")
		var rates []change.Rate
		for range rapid.IntRange(0, 2).Draw(t, "rates") {
			rates = append(rates, change.Rate{Percent: rapid.IntRange(5, 100).Draw(t, "percent"), Period: time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute})
		}
		got, ok := Soonest(nil, rates, clusters, moves, epoch)
		var l change.Ledger
		at := epoch
		for left := moves; ; at = at.Add(time.Minute) {
			n := min(change.Left(l, rates, clusters, at), left)
			if l, left = l.Add(at, change.Balance, n), left-n; left == 0 {
				break
			}
		}
		if moves > 0 && !ok || !got.Equal(at) {
			t.Fatalf("%d of %d clusters under %v: %s, %t; they are done at %s", moves, clusters, rates, got, ok, at)
		}
	})
}

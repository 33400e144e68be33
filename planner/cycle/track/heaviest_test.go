package track

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/sim"
)

func TestTheHeaviestGrowsToTwiceADay(t *testing.T) {
	loads := func(heavy ...plan.Load) []plan.Load { return append(slices.Repeat([]plan.Load{10}, 40), heavy...) }
	after := func(h Heaviest, d time.Duration, l []plan.Load) Heaviest { return h.Next(l, h.At.Add(d)) }
	first := Heaviest{}.Next(loads(), sim.Epoch)
	for name, test := range map[string]struct {
		is   Heaviest
		of   []plan.Load
		want plan.Load
	}{
		"nothing is remembered":          {Heaviest{}, loads(1000), 1000},
		"the first":                      {first, loads(), 10},
		"a heavier one, at once":         {first, loads(1000), 13},
		"by a quarter":                   {first, loads(12), 12},
		"all are heavier":                {first, slices.Repeat([]plan.Load{500}, 40), 500},
		"four heavier ones":              {first, loads(1000, 1000, 1000, 1000), 14},
		"after a day":                    {after(first, 24*time.Hour, loads(1000)), loads(1000), 25},
		"after a week without a planner": {after(first, 7*24*time.Hour, loads(1000)), loads(1000), 25},
		"after a clock that went back":   {after(first, -time.Hour, loads(1000)), loads(1000), 13},
		"a heavy one from the start":     {Heaviest{}.Next(loads(1000), sim.Epoch), loads(1000), 1000},
		"it falls, and is back in a day": {after(Heaviest{}.Next(loads(1000), sim.Epoch), 24*time.Hour, loads()), loads(1000), 1000},
		"one cluster":                    {Heaviest{}.Next([]plan.Load{7}, sim.Epoch), []plan.Load{9}, 9},
		"no load":                        {first, []plan.Load{0, 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.is.Capacity(test.of)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheHeaviestIsHalfForgottenInAWeek(t *testing.T) {
	level := slices.Repeat([]plan.Load{10}, 40)
	first := Heaviest{}.Next(append(slices.Clone(level), 100000), sim.Epoch)
	h := first
	for range 7 * 24 {
		h = h.Next(level, h.At.Add(time.Hour))
	}
	if got := h.Share / first.Share; math.Abs(got-0.5) > 1e-9 {
		t.Errorf("after a week %v of it is left, want half", got)
	}
}

// However one cluster's load goes, a replica may carry no more than what the heaviest was, twice of it after a day, and never more
// than the heaviest is. What the others have changes with the one that is left out of them, a tenth at most.
func TestNoClusterLiftsTheCapacityAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := make([]plan.Load, rapid.IntRange(20, 60).Draw(t, "clusters"))
		for i := range loads {
			loads[i] = plan.Load(rapid.Int64Range(5e8, 1e9).Draw(t, "load"))
		}
		most := float64(slices.Max(loads))
		h := Heaviest{}.Next(loads, sim.Epoch)
		for at := sim.Epoch; at.Before(sim.Epoch.Add(24 * time.Hour)); {
			at = at.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute)
			loads[0] = plan.Load(rapid.Int64Range(0, math.MaxInt64/8).Draw(t, "own"))
			h = h.Next(loads, at)
			bound := 1.15 * spare * most * math.Pow(growsADay, at.Sub(sim.Epoch).Hours()/24)
			if got := h.Capacity(loads); float64(got) > bound || got > slices.Max(loads) || got < slices.Min(loads[1:]) {
				t.Fatalf("after %v it is %v, want at most %v", at.Sub(sim.Epoch), got, bound)
			}
		}
	})
}

package cycle

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/measure"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// forty are clusters of a load of 10 each that a planner with the shipped rates has levelled, where the heaviest says what a replica
// may carry.
func forty(t *testing.T) *liveWorld {
	w := adopted(t, slices.Repeat([]float64{10}, 40)...)
	w.in.Config.Partition.Capacity = nil
	w.in.Config.Change.Moves.Rate = shipped()
	for range 60 * 60 {
		w.step(time.Minute)
	}
	return w
}

func (w *liveWorld) most() (most int) {
	for r := range w.in.Workload.Replicas {
		most = max(most, len(w.on(r)))
	}
	return most
}

// Whoever has one cluster say a thousand, for good or for ten minutes before its series end, has nobody else's clusters packed
// together: 16 replicas became 2 within four days, with 39 clusters on one.
func TestOneHeavyClusterDoesNotPackTheOthersTogether(t *testing.T) {
	for name, ends := range map[string]bool{"it stays": false, "its series end": true} {
		t.Run(name, func(t *testing.T) {
			w := forty(t)
			w.setLoad("c007", 1000)
			for minute := range 2 * 24 * 60 {
				if ends && minute == 10 {
					own := w.secret("c007").Server
					w.in.Fetched[0].Samples = slices.DeleteFunc(w.in.Fetched[0].Samples, func(s poll.Sample) bool { return s.Key == own })
				}
				w.step(time.Minute)
			}
			if n := w.in.Workload.Replicas; n != 16 || w.most() > 6 {
				t.Errorf("%d replicas with up to %d clusters, want 16 with no more than 6", n, w.most())
			}
		})
	}
}

// A heavy cluster that has a replica to itself when its series end, while its pod still shows it: nothing tells whether Prometheus
// would have them, so that its value stands. After a day it makes no room any more.
func TestWhatIsHeldForLongMakesNoRoom(t *testing.T) {
	w := adopted(t, append([]float64{1000}, slices.Repeat([]float64{10}, 39)...)...)
	w.in.Config.Partition.Capacity = nil
	for range 6 * 60 {
		w.step(time.Minute)
	}
	before, alone := w.in.Workload.Replicas, w.on(w.row(t, "c000"))
	own := w.secret("c000").Server
	w.in.Fetched[0].Samples = slices.DeleteFunc(w.in.Fetched[0].Samples, func(s poll.Sample) bool { return s.Key == own })
	for range 23 * 60 {
		w.step(time.Minute)
	}
	within := w.in.Workload.Replicas
	for range 7 * 60 {
		w.step(time.Minute)
	}
	got, value := []int{before, len(alone), within, w.in.Workload.Replicas}, w.last.Table.Columns[0].Values[0]
	if diff := cmp.Diff([]int{2, 1, 2, 16}, got); diff != "" || value != 1000 {
		t.Errorf("its value is %v, want 1000 still; replicas before, clusters beside it with itself, replicas within the day and "+
			"after it (-want +got):\n%s", value, diff)
	}
}

// TestTheAgeOfAValueDecidesWhetherItMakesRoom, but only among values that are believed: where a metric is refused, all of them are old.
func TestTheAgeOfAValueDecidesWhetherItMakesRoom(t *testing.T) {
	for name, test := range map[string]struct {
		flag   measure.Flag
		age    time.Duration
		frozen bool
		want   plan.Load
	}{
		"fresh":                             {measure.Fresh, 0, false, 1000},
		"fresh, by samples that are old":    {measure.Fresh, 48 * time.Hour, false, 1000},
		"held for a day":                    {measure.Held, 24 * time.Hour, false, 1000},
		"held for longer":                   {measure.Held, 24*time.Hour + time.Second, false, 10},
		"held for longer, all are refused":  {measure.Held, 24*time.Hour + time.Second, true, 1000},
		"held since a clock that went back": {measure.Held, -time.Hour, false, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(slices.Repeat([]float64{10}, 20)...)
			out := w.cycle()
			c := &cycle{in: w.in, out: out}
			c.in.Memory.Heaviest, c.out.Memory.Heaviest = Heaviest{}, Heaviest{}
			c.out.Loads, c.out.Table.Frozen = slices.Repeat([]plan.Load{10}, 20), test.frozen
			c.out.Loads[7] = 1000
			c.out.Table.Columns[0].Flags[7] = test.flag
			c.out.Table.Columns[0].SampledAt[7] = w.in.Now.Add(-test.age).UnixMilli()
			a := &adoption{in: w.in, fleet: c.out.Fleet}
			if c.limit(a); a.capacity != test.want {
				t.Errorf("a replica may carry %d, want %d", a.capacity, test.want)
			}
		})
	}
}

// Nor are the others left as they are for it: three replicas have some eleven clusters each when it comes.
func TestOneHeavyClusterKeepsNoOthersFromBeingLevelled(t *testing.T) {
	w := adopted(t, slices.Repeat([]float64{10}, 40)...)
	w.in.Config.Partition.Capacity = nil
	w.in.Config.Change.Moves.Rate = shipped()
	for range 24 * 60 {
		w.step(time.Minute)
	}
	before := w.most()
	w.setLoad("c007", 1000)
	for range 72 * 60 {
		w.step(time.Minute)
	}
	if before < 10 || w.most() > 5 {
		t.Errorf("a replica had %d clusters and has %d, want no more than 5", before, w.most())
	}
}

// Nor does it make room on the replicas that take a dead one's clusters.
func TestOneHeavyClusterMakesNoRoomForAFailover(t *testing.T) {
	w := forty(t)
	w.in.Config.Change.Moves.Rate = nil
	gone := w.on(0)
	w.setLoad("c007", 1000)
	w.down[0] = true
	w.until(t, "replica 0 is empty", time.Hour, func(Outcome) bool { return len(w.on(0)) == 0 })
	on := map[int]int{}
	for _, name := range gone {
		on[w.row(t, name)]++
	}
	if len(on) != len(gone) || len(gone) < 3 {
		t.Errorf("the %d clusters of replica 0 went to %v, want one to each", len(gone), on)
	}
}

// A total that one cluster has by turns keeps the metrics believed: they were refused for 974 of 1,139 minutes.
func TestATotalThatOneClusterHasByTurnsIsBelieved(t *testing.T) {
	w := honest(t, 0)
	got := w.frozenFor(24*60, func(minute int) {
		load := 5.0
		if minute%35 < 2 {
			load = 5000
		}
		w.setLoad("c007", load)
	})
	if got != 0 {
		t.Errorf("the metrics were refused for %d min, want none: %v", got, problems(w.last))
	}
}

func TestTheHeaviestGrowsToTwiceADay(t *testing.T) {
	loads := func(heavy ...plan.Load) []plan.Load { return append(slices.Repeat([]plan.Load{10}, 40), heavy...) }
	after := func(h Heaviest, d time.Duration, l []plan.Load) Heaviest { return h.next(l, h.At.Add(d)) }
	first := Heaviest{}.next(loads(), epoch)
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
		"a heavy one from the start":     {Heaviest{}.next(loads(1000), epoch), loads(1000), 1000},
		"it falls, and is back in a day": {after(Heaviest{}.next(loads(1000), epoch), 24*time.Hour, loads()), loads(1000), 1000},
		"one cluster":                    {Heaviest{}.next([]plan.Load{7}, epoch), []plan.Load{9}, 9},
		"no load":                        {first, []plan.Load{0, 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.is.capacity(test.of)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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
		h := Heaviest{}.next(loads, epoch)
		for at := epoch; at.Before(epoch.Add(24 * time.Hour)); {
			at = at.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute)
			loads[0] = plan.Load(rapid.Int64Range(0, math.MaxInt64/8).Draw(t, "own"))
			h = h.next(loads, at)
			bound := 1.15 * spare * most * math.Pow(growsADay, at.Sub(epoch).Hours()/24)
			if got := h.capacity(loads); float64(got) > bound || got > slices.Max(loads) || got < slices.Min(loads[1:]) {
				t.Fatalf("after %v it is %v, want at most %v", at.Sub(epoch), got, bound)
			}
		}
	})
}

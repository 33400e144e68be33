package cycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/track"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/partition"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// forty are clusters of a load of 10 each that a planner with the shipped rates has levelled over sixteen replicas.
func forty(t *testing.T) *liveWorld {
	w := adopted(t, slices.Repeat([]float64{10}, 40)...)
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 16}
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

// TestNothingButAPersonChangesTheNumberOfReplicas: what the heaviest cluster makes was what a replica could carry, so that twenty
// equal clusters asked for sixteen replicas, and one heavy cluster packed all others together.
func TestNothingButAPersonChangesTheNumberOfReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		loads []float64
		on    []int // clusters of each replica at last, from few to many
	}{
		"twenty equal clusters": {slices.Repeat([]float64{10}, 20), []int{6, 7, 7}},
		"one is heavy":          {append([]float64{1000}, slices.Repeat([]float64{10}, 39)...), []int{1, 19, 20}},
		"many light ones":       {lognormal(9, 200), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := adopted(t, test.loads...)
			for range 48 * 60 {
				if w.step(time.Minute); w.in.Workload.Replicas != 3 {
					t.Fatalf("%d replicas after %s, want the 3 that were found", w.in.Workload.Replicas, w.in.Now.Sub(epoch))
				}
			}
			on := []int{len(w.on(0)), len(w.on(1)), len(w.on(2))}
			if slices.Sort(on); test.on != nil && !slices.Equal(on, test.on) {
				t.Errorf("replicas have %v clusters, want %v", on, test.on)
			}
		})
	}
	capacity := config.Decimal("0.2")
	for name, test := range map[string]struct {
		says func(*config.Partition)
		want int
	}{
		"capacity":              {func(p *config.Partition) { p.Capacity = &capacity }, 5}, // four of twenty fit
		"replicas":              {func(p *config.Partition) { p.Replicas = &config.Replicas{Fixed: 4} }, 4},
		"minReplicas":           {func(p *config.Partition) { p.MinReplicas = ptr.To(6) }, 6},
		"maxReplicas":           {func(p *config.Partition) { p.MaxReplicas = ptr.To(2) }, 2},
		"maxClustersPerReplica": {func(p *config.Partition) { p.MaxClustersPerReplica = 4 }, 5},
	} {
		t.Run(name+" does", func(t *testing.T) {
			w := adopted(t, slices.Repeat([]float64{10}, 20)...)
			test.says(&w.in.Config.Partition)
			w.until(t, fmt.Sprintf("%d replicas", test.want), 6*time.Hour, func(outcome.Outcome) bool {
				return w.in.Workload.Replicas == test.want && w.in.InForce.Rollout == nil
			})
		})
	}
}

// TestACountHasRoomBeforeItFalls: a load near the capacity opened and closed a replica at every election.
func TestACountHasRoomBeforeItFalls(t *testing.T) {
	w := adopted(t, slices.Repeat([]float64{10}, 20)...)
	capacity := config.Decimal("0.25") // five clusters
	w.in.Config.Partition.Capacity = &capacity
	w.until(t, "4 replicas", 6*time.Hour, func(outcome.Outcome) bool { return w.in.Workload.Replicas == 4 && w.in.InForce.Rollout == nil })
	w.setLoad("c000", 11)
	w.until(t, "a fifth", 6*time.Hour, func(outcome.Outcome) bool { return w.in.Workload.Replicas == 5 && w.in.InForce.Rollout == nil })
	w.setLoad("c000", 10)
	for range 6 * 60 {
		if w.step(time.Minute); w.in.Workload.Replicas != 5 {
			t.Fatal("the fifth went as soon as four would do to the last drop")
		}
	}
	for i := range 10 {
		w.setLoad(fmt.Sprintf("c%03d", i), 5)
	}
	w.until(t, "four again, which have room now", 6*time.Hour, func(outcome.Outcome) bool { return w.in.Workload.Replicas == 4 && w.in.InForce.Rollout == nil })
}

// TestAFleetWhoseEveryMetricDoublesNeedsTwiceTheReplicas: by the capacity that a person wrote, in the cycles of half a day.
func TestAFleetWhoseEveryMetricDoublesNeedsTwiceTheReplicas(t *testing.T) {
	w := shippedPlans(t, 60)
	capacity := config.Decimal("0.2") // twelve of sixty clusters, of which ten are within low
	w.in.Config.Partition.Capacity = &capacity
	rests := func() (replicas int, load plan.Load) {
		for range 12 * 60 {
			w.step(time.Minute)
		}
		for _, l := range w.last.Loads {
			load += l
		}
		return w.in.Workload.Replicas, load
	}
	replicas, load := rests()
	for i := range 60 {
		w.setLoad(fmt.Sprintf("c%03d", i), 20)
	}
	twice, doubled := rests()
	if off := doubled - 2*load; replicas != 6 || twice != 12 || max(off, -off) > 100 { // each load is rounded
		t.Errorf("%d replicas with a load of %s became %d with %s; want 6, 12 and twice the load", replicas, load, twice, doubled)
	}
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
	room := func() string {
		c, a := &outcome.Draft{In: w.in, Out: w.last}, &ground.Ground{In: w.in, Fleet: w.last.Fleet}
		loads.Limit(c, a)
		return a.Capacity.Display()
	}
	before, alone := room(), w.on(w.row(t, "c000"))
	own := w.secret("c000").Server
	w.in.Fetched[0].Samples = slices.DeleteFunc(w.in.Fetched[0].Samples, func(s poll.Sample) bool { return s.Key == own })
	for range 23 * 60 {
		w.step(time.Minute)
	}
	within := room()
	for range 7 * 60 {
		w.step(time.Minute)
	}
	got, value := []string{before, within, room()}, w.last.Table.Columns[0].Values[0]
	if diff := cmp.Diff([]string{"0.719", "0.719", "0.00719"}, got); diff != "" || value != 1000 || len(alone) != 1 {
		t.Errorf("its value is %v, want 1000 still, and it is one of %d clusters of its replica, want 1; what a replica may carry before, "+
			"within the day and after it (-want +got):\n%s", value, len(alone), diff)
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
			c := &outcome.Draft{In: w.in, Out: out}
			c.In.Memory.Heaviest, c.Out.Memory.Heaviest = track.Heaviest{}, track.Heaviest{}
			c.Out.Loads, c.Out.Table.Frozen = slices.Repeat([]plan.Load{10}, 20), test.frozen
			c.Out.Loads[7] = 1000
			c.Out.Table.Columns[0].Flags[7] = test.flag
			c.Out.Table.Columns[0].SampledAt[7] = w.in.Now.Add(-test.age).UnixMilli()
			a := &ground.Ground{In: w.in, Fleet: c.Out.Fleet}
			if loads.Limit(c, a); a.Capacity != test.want {
				t.Errorf("a replica may carry %d, want %d", a.Capacity, test.want)
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
	if got := len(w.on(w.row(t, "c007"))); before < 10 || got != 1 || w.most() > 20 {
		t.Errorf("a replica had %d clusters; now there are %d on the heavy one's, and %d on another, want it alone and half of the others", before, got, w.most())
	}
}

// Nor does it make room on the replicas that take a dead one's clusters.
func TestOneHeavyClusterMakesNoRoomForAFailover(t *testing.T) {
	w := forty(t)
	w.in.Config.Change.Moves.Rate = nil
	gone := w.on(0)
	w.setLoad("c007", 1000)
	w.down[0] = true
	w.until(t, "replica 0 is empty", time.Hour, func(outcome.Outcome) bool { return len(w.on(0)) == 0 })
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

// TestALooseCapacityIsDealtLevel: what a replica may carry says how many there are. Filled up to it one after the other, four
// replicas of such a fleet carried 1.19 of the mean.
func TestALooseCapacityIsDealtLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := make([]partition.Item, rapid.IntRange(1, 60).Draw(t, "clusters"))
		var heaviest, total plan.Load
		for i := range items {
			load := plan.Load(rapid.Int64Range(1, 1_000_000).Draw(t, "load"))
			items[i] = partition.Item{ID: fmt.Sprintf("c%02d", i), Clusters: 1, Replica: -1, Load: load}
			heaviest, total = max(heaviest, load), total+load
		}
		b := partition.Bounds{MinReplicas: 1, MaxReplicas: 16, Capacity: heaviest + plan.Load(rapid.Int64Range(0, int64(total)).Draw(t, "room"))}
		packed, err := partition.LPT(items, b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := division.Count(items, b, 1)
		if err != nil {
			t.Fatal(err)
		}
		fixed := b
		fixed.Fixed = packed.Replicas
		level, err := partition.LPT(items, fixed)
		if err != nil {
			t.Fatal(err)
		}
		if want := min(slices.Max(packed.Loads), slices.Max(level.Loads)); got.Replicas != packed.Replicas || slices.Max(got.Loads) != want {
			t.Fatalf("%d replicas, the fullest with %d; want %d and %d", got.Replicas, slices.Max(got.Loads), packed.Replicas, want)
		}
	})
}

// TestWhatIsAboveTheCapacityIsMendedWhateverItCosts: of 60 equal clusters 31 are on one of two replicas. To deal them anew moves
// half of them for 3 %, which does not pay; only a capacity below that asks for it.
func TestWhatIsAboveTheCapacityIsMendedWhateverItCosts(t *testing.T) {
	for capacity, most := range map[config.Decimal]int{"0.52": 31, "0.51": 30} {
		w := newWorld(slices.Repeat([]float64{10}, 60)...)
		w.in.Config.Partition.Capacity, w.in.Config.Partition.Replicas = &capacity, &config.Replicas{Fixed: 2}
		w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.UpdatedReplicas, w.in.Workload.CurrentReplicas = 2, 2, 2, 2
		w.in.Workload.EnvReplicas = ptr.To("2")
		for i := range w.in.Discovered.Secrets {
			w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: i / 31}
		}
		w.run(30)
		has := map[int]int{}
		for _, row := range w.in.InForce.Clusters {
			has[row.Replica]++
		}
		if diff := cmp.Diff(map[int]int{0: most, 1: 60 - most}, has); diff != "" {
			t.Errorf("with a capacity of %s (-want +got):\n%s", capacity, diff)
		}
	}
}

package adopt

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// filled has so many clusters on each replica, of one MiB each.
func filled(on ...int) *ground.Ground {
	g := &ground.Ground{Next: plan.Plan{Replicas: len(on), MaxReplicas: 16, Clusters: map[string]plan.Row{}}}
	for replica, n := range on {
		for i := range n {
			name := fmt.Sprintf("r%d-%d", replica, i)
			g.Fleet.Clusters = append(g.Fleet.Clusters, discover.Cluster{Shard: plan.Shard{ID: name}})
			g.Next.Clusters[name] = plan.Row{Replica: replica}
			g.Owners = append(g.Owners, replica)
		}
	}
	return g
}

// bounded bounds what filled has by memory, in MiB.
func bounded(g *ground.Ground, room plan.Bytes) {
	g.InUse = &outcome.InUse{Of: make([]plan.Bytes, len(g.Fleet.Clusters)), Room: room << 20}
	for i := range g.InUse.Of {
		g.InUse.Of[i] = 1 << 20
	}
}

func TestWhoIsFull(t *testing.T) {
	capped := func(most int, on ...int) *ground.Ground {
		g := filled(on...)
		g.In.Config.Partition.MaxClustersPerReplica = most
		return g
	}
	within := func(room plan.Bytes, on ...int) *ground.Ground {
		g := filled(on...)
		g.In.Config.Partition.Sticky = &config.Sticky{High: "0.9", Low: "0.5"}
		bounded(g, room)
		return g
	}
	with := func(g *ground.Ground, change func(*ground.Ground)) *ground.Ground { change(g); return g }
	moving := func(from, to int) func(*ground.Ground) {
		r := &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, From: plan.Count{Replicas: from}, Replicas: to,
			Moves: map[string]int{"r0-0": 1}}
		return func(g *ground.Ground) { g.Next.Rollout = r }
	}
	for name, test := range map[string]struct {
		ground *ground.Ground
		target map[string]int
		want   []int
	}{
		"nothing bounds it":       {ground: filled(9, 1, 0)},
		"as many as there may be": {ground: capped(3, 4, 3, 2), want: []int{0, 1}},
		"no fewer than the fleet needs": {
			ground: with(capped(3, 4, 3, 2), func(g *ground.Ground) { g.Next.MaxReplicas = 2 })},
		"a Secret without a row counts": {
			ground: with(capped(3, 0, 3, 3), func(g *ground.Ground) { delete(g.Next.Clusters, "r1-0") }), want: []int{1, 2}},
		"what a wave takes there counts, and where it is yet": {ground: with(capped(3, 3, 2, 0), moving(3, 3)), want: []int{0, 1}},
		"so does what later waves do": {
			ground: with(capped(3, 3, 2, 2), moving(3, 3)), target: map[string]int{"r0-0": 2, "r0-1": 2}, want: []int{0, 1, 2}},
		"and where a pin takes one": {
			ground: with(capped(3, 3, 2, 2), func(g *ground.Ground) { g.Pins = plan.Pins{"r0-0": 2, "r0-1": 0} }), want: []int{0, 2}},
		"but no target of before":     {ground: capped(3, 3, 2, 2), target: map[string]int{"r0-1": 2}, want: []int{0}},
		"a replica that goes is none": {ground: with(capped(3, 3, 1, 3), moving(3, 2)), want: []int{0}},
		"no memory for one more":      {ground: within(10, 9, 8, 0), want: []int{0}},
		"which has had it is full until low": {
			ground: with(within(10, 9, 8, 4), func(g *ground.Ground) { g.In.InForce = &plan.Plan{Full: []int{1, 2}} }), want: []int{0, 1}},
		"one cluster that has all of it": {ground: within(1, 1, 0, 0), want: []int{0}},
		"of memory without sticky all counts": {
			ground: with(within(10, 9, 10, 0), func(g *ground.Ground) { g.In.Config.Partition.Sticky = nil }), want: []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			SayFull(test.ground, test.target, 0, nil)
			if diff := cmp.Diff(test.want, test.ground.Next.Full); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoIsFullStaysWhileADiscoveryIsRefused(t *testing.T) {
	g := filled(1, 1)
	g.Partial, g.Next.Full = true, []int{1}
	SayFull(g, nil, plan.LoadUnit, nil)
	if diff := cmp.Diff([]int{1}, g.Next.Full); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhoHasNoCapacityForOneMore: each cluster has a load of 1; high is 0.9 of the capacity, and low half of it.
func TestWhoHasNoCapacityForOneMore(t *testing.T) {
	const one = plan.LoadUnit
	for name, test := range map[string]struct {
		before   []int
		capacity plan.Load
		unknown  bool // nothing is measured
		lpt      bool
		want     []int
	}{
		"without a capacity":                    {},
		"above high with one more":              {capacity: 10 * one, want: []int{0}},
		"which was full is so until low":        {capacity: 10 * one, before: []int{1, 2}, want: []int{0, 1}},
		"one that has nothing takes any":        {capacity: one, want: []int{0, 1, 2}},
		"what was full stays so without a load": {capacity: 10 * one, before: []int{2}, unknown: true, want: []int{2}},
		"lpt knows no shares of it":             {capacity: 10 * one, lpt: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := filled(9, 8, 4, 0)
			if g.In.InForce = (&plan.Plan{Full: test.before}); !test.lpt {
				g.In.Config.Partition.Sticky = &config.Sticky{High: "0.9", Low: "0.5"}
			}
			loads := slices.Repeat([]plan.Load{one}, len(g.Fleet.Clusters))
			if test.unknown {
				loads = nil
			}
			SayFull(g, nil, test.capacity, loads)
			if diff := cmp.Diff(test.want, g.Next.Full); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoNewClusterComesAboveTheCapacity: whatever replicas carry, a new cluster of the mean load brings none above it while it brings
// another one, that may have it, no higher than low.
func TestNoNewClusterComesAboveTheCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := filled(rapid.SliceOfN(rapid.IntRange(0, 6), 1, 5).Draw(t, "clusters")...)
		g.In.Config.Partition.Sticky = &config.Sticky{High: "0.9", Low: "0.5"}
		loads, on, sum, n := make([]plan.Load, len(g.Fleet.Clusters)), make([]plan.Load, g.Next.Replicas), plan.Load(0), plan.Load(0)
		for i, at := range g.Owners {
			if loads[i] = plan.Load(rapid.IntRange(0, 100).Draw(t, "load")); loads[i] > 0 {
				on[at], sum, n = on[at]+loads[i], sum+loads[i], n+1
			}
			g.Next.Clusters[g.Fleet.Clusters[i].Shard.ID] = plan.Row{Replica: at, Load: loads[i].String()}
		}
		mean, capacity := sum/max(n, 1), plan.Load(rapid.IntRange(1, 500).Draw(t, "capacity"))
		g.In.InForce = &plan.Plan{Full: rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 0, 3, rapid.ID).Draw(t, "full before")}
		g.Next.Cordoned = rapid.SliceOfNDistinct(rapid.IntRange(0, g.Next.Replicas-1), 0, g.Next.Replicas-1, rapid.ID).Draw(t, "cordoned")
		SayFull(g, nil, capacity, loads)
		roomy := func(replica int) bool {
			return !slices.Contains(g.Next.Cordoned, replica) && (on[replica]+mean)*2 <= capacity
		}
		some := false
		for replica := range on {
			some = some || roomy(replica)
		}
		arrivals := placement.NewArrivals(plan.NewView(g.Next, nil))
		for i := range 20 {
			to := arrivals.Place(fmt.Sprint("https://new-", i), plan.NoReplica, nil)
			if above := on[to] > 0 && on[to]+mean > capacity; some && above {
				t.Fatalf("a new cluster comes to replica %d, of %v, and one of the mean is %d; the capacity is %d, and %v are full",
					to, on, mean, capacity, g.Next.Full)
			}
		}
	})
}

// TestAnArrivalCountsAsOneOfTheMean: for an hour, whatever is measured of it by then; high is 0.9 of the capacity of ten, and a cluster
// makes one.
func TestAnArrivalCountsAsOneOfTheMean(t *testing.T) {
	const one = plan.LoadUnit
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		came   time.Duration // ago
		makes  plan.Load
		change func(*discover.Cluster)
		want   []int
	}{
		"just now":                       {want: []int{0}},
		"an hour ago":                    {came: time.Hour},
		"just within it":                 {came: time.Hour - time.Second, want: []int{0}},
		"a little is measured":           {makes: one / 10, want: []int{0}},
		"whoever's Secret has no age":    {change: func(c *discover.Cluster) { c.Created = time.Time{} }},
		"of a server that is there":      {change: func(c *discover.Cluster) { c.Follows = true }},
		"Argo CD is told to leave alone": {change: func(c *discover.Cluster) { c.Skip = true }},
	} {
		t.Run(name, func(t *testing.T) {
			g := filled(9, 7, 4) // eight that make one, and this one
			g.In.Now, g.In.Config.Partition.Sticky = now, &config.Sticky{High: "0.9", Low: "0.5"}
			bounded(g, 10)
			loads := slices.Repeat([]plan.Load{one}, len(g.Fleet.Clusters))
			c := &g.Fleet.Clusters[0]
			c.Created, loads[0], g.InUse.Of[0] = now.Add(-test.came), test.makes, plan.Bytes(test.makes*(1<<20)/one)
			if test.change != nil {
				test.change(c)
			}
			for by, full := range map[string]func(){
				"load":   func() { memory := g.InUse; g.InUse = nil; SayFull(g, nil, 10*one, loads); g.InUse = memory },
				"memory": func() { SayFull(g, nil, 0, nil) },
			} {
				full()
				if diff := cmp.Diff(test.want, g.Next.Full); diff != "" {
					t.Errorf("by %s (-want +got):\n%s", by, diff)
				}
			}
		})
	}
}

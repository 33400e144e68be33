package adopt

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
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
			SayFull(test.ground, test.target)
			if diff := cmp.Diff(test.want, test.ground.Next.Full); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoIsFullStaysWhileADiscoveryIsRefused(t *testing.T) {
	g := filled(1, 1)
	g.Partial, g.Next.Full = true, []int{1}
	SayFull(g, nil)
	if diff := cmp.Diff([]int{1}, g.Next.Full); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

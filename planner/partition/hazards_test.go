package partition_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/index"
	"ballast/planner/normalize"
	"ballast/planner/partition"
	"ballast/planner/plan"
)

// The hazards of facts/peer.md that a partition can have. Each test shows first that the seed's rule has it.

func TestHazard3NoLoadAtAllDoesNotOpenAReplicaACluster(t *testing.T) {
	in := items(make([]plan.Load, 40)...)
	if s := count(seed(byName(in), "")); s != 40 {
		t.Fatalf("the seed takes %d replicas, and the hazard is 40", s)
	}
	p := lpt(t, in, partition.Bounds{MinReplicas: 3, MaxReplicas: 16})
	if d := cmp.Diff([]int{14, 13, 13}, p.Clusters); d != "" {
		t.Errorf("clusters by replica (-want +got)\n%s", d)
	}
	if p := lpt(t, in, partition.Bounds{MaxReplicas: 16}); p.Replicas != 1 {
		t.Errorf("%d replicas without a minimum, want 1", p.Replicas)
	}
}

func TestHazard3ManyReplicasAreBounded(t *testing.T) {
	in := items(alike(40)...)
	if s := count(seed(byName(in), "")); s != 40 {
		t.Fatalf("the seed takes %d replicas, and the hazard is 40", s)
	}
	p := lpt(t, in, partition.Bounds{MaxReplicas: 16})
	if p.Replicas != 16 {
		t.Errorf("%d replicas, want the 16 that are allowed", p.Replicas)
	}
}

// alike are loads close enough that no two of them fit the heaviest.
func alike(n int) []plan.Load {
	out := make([]plan.Load, n)
	for i := range out {
		out[i] = plan.LoadUnit + plan.Load(i)
	}
	return out
}

func TestHazard4AnEmptyClusterDoesNotChangeTheReplicas(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	fleet := make([]float64, 200)
	for i := range fleet {
		fleet[i] = 100 * math.Exp(0.1*r.NormFloat64())
	}
	joined := append(fleet[:200:200], 0)
	robust := func(cols []normalize.Column) ([]normalize.Column, error) {
		e := 0.01
		return normalize.Robust(cols, &e)
	}
	before := count(seed(byName(indexed(t, fleet, robust)), ""))
	after := count(seed(byName(indexed(t, joined, robust)), ""))
	t.Logf("the seed: %d replicas, %d with an empty cluster more", before, after)
	if after < before*3/2 {
		t.Fatalf("the seed goes from %d to %d replicas, and the hazard is 96 to 200", before, after)
	}

	var lacking *normalize.UnanchoredError // whose totals a planner takes as references
	if _, err := normalize.Reference([]normalize.Column{{ID: "apps", Values: fleet}}, nil); !errors.As(err, &lacking) {
		t.Fatalf("got %v, want an UnanchoredError", err)
	}
	refs := lacking.Totals
	reference := func(cols []normalize.Column) ([]normalize.Column, error) { return normalize.Reference(cols, refs) }
	for name, capacity := range map[string]plan.Load{"of the heaviest": 0, "of an operator": plan.LoadUnit / 50} {
		b := partition.Bounds{MaxReplicas: 1000, Capacity: capacity}
		without := lpt(t, indexed(t, fleet, reference), b)
		with := lpt(t, indexed(t, joined, reference), b)
		t.Logf("ours, capacity %s: %d replicas, then %d", name, without.Replicas, with.Replicas)
		if with.Replicas != without.Replicas {
			t.Errorf("capacity %s: an empty cluster took %d replicas to %d", name, without.Replicas, with.Replicas)
		}
		if d := cmp.Diff(without.Of, with.Of[:200]); d != "" {
			t.Errorf("capacity %s: an empty cluster moved others\n%s", name, d)
		}
	}
}

// indexed are the fleet's items by one metric, normalized and indexed.
func indexed(t *testing.T, values []float64, by func([]normalize.Column) ([]normalize.Column, error)) []partition.Item {
	t.Helper()
	cols, err := by([]normalize.Column{{ID: "apps", Values: values}})
	if err != nil {
		t.Fatal(err)
	}
	loads, err := index.PNorm(cols, 1, map[string]float64{"apps": 1})
	if err != nil {
		t.Fatal(err)
	}
	return items(loads...)
}

func TestHazard5InClusterIsAlwaysOnReplica0(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	in := items(alike(50)...)
	in[20].Load, in[20].Replica = 1, 0 // the lightest, which alone would be on the last replica
	seedsOn0 := 0
	for range 500 {
		r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		if seed(byName(in), "c00020")["c00020"] == 0 {
			seedsOn0++
		}
		p := lpt(t, in, unbounded)
		if got := placed(p, in)["c00020"]; got != 0 {
			t.Fatalf("in-cluster is on replica %d", got)
		}
	}
	t.Logf("the seed has it on replica 0 in %d of 500", seedsOn0)
	if seedsOn0 > 250 {
		t.Fatalf("the seed finds in-cluster in %d of 500, and the hazard is 12 %%", seedsOn0)
	}
}

func TestHazard6AFrozenInputWithTiesGivesOnePlan(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	loads := make([]plan.Load, 60)
	for i := range loads {
		loads[i] = plan.Load(1 + i%4)
	}
	in := items(loads...)
	ours, seeds := map[string]bool{}, map[string]bool{}
	for range 1000 {
		r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		seeds[fmt.Sprint(seed(byName(in), ""))] = true
		ours[fmt.Sprint(placed(lpt(t, in, unbounded), in))] = true
	}
	t.Logf("of 1000 shuffles the seed makes %d plans, ours %d", len(seeds), len(ours))
	if len(seeds) < 100 {
		t.Fatalf("the seed makes %d plans, and the hazard is one a run", len(seeds))
	}
	if len(ours) != 1 {
		t.Errorf("%d plans for one input", len(ours))
	}
}

func TestHazard7ALoadThatFillsTheCapacityFits(t *testing.T) {
	loads := make([]plan.Load, 50)
	for i := range loads {
		loads[i] = 5
	}
	loads[0] = 10
	in := items(loads...)
	if s := count(seed(byName(in), "")); s != 50 {
		t.Fatalf("the seed takes %d replicas, and the hazard is 50", s)
	}
	if p := lpt(t, in, unbounded); p.Replicas != 26 {
		t.Errorf("%d replicas, want 26", p.Replicas)
	}
}

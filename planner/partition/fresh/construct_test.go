package fresh_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/fresh"
	"ballast/planner/plan"
)

// ruledFleets are loads of which few fit together, under a rule that the search does not look at.
func ruledFleets(rule string) (all []constraint.Question) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := 20 + r.IntN(60)
		p := constraint.Question{Bounds: partition.Bounds{MaxReplicas: n, Capacity: 150}}
		for i := range n {
			p.Items = append(p.Items, partition.Item{ID: fmt.Sprintf("c%02d", i), Clusters: 1, Replica: partition.Free,
				Load: plan.Load(20 + r.IntN(81)), Memory: plan.Bytes(10 + r.IntN(40))})
		}
		switch rule {
		case "cap":
			p.Bounds.MaxClusters = 4
		case "apart":
			p.Apart = []constraint.Group{{Name: "g", Items: []int{0, 1, 2}}}
		case "memory":
			p.Bounds.Memory = 150
		case "closed":
			p.Closed = []bool{false, true}
		}
		all = append(all, p)
	}
	return all
}

// TestConstructionsSaveReplicasWhereTheSearchMayNotLook: best fit and first fit, by themselves and together, against LPT or sticky from
// nothing with exchanges: no fleet has more replicas or, with as many, a higher makespan, and one in six has fewer replicas or more.
func TestConstructionsSaveReplicasWhereTheSearchMayNotLook(t *testing.T) {
	for _, rule := range []string{"cap", "apart", "memory", "closed"} {
		for name, by := range map[string]planner{"all": fresh.Plan, "best fit": fresh.ByBestFit, "first fit": fresh.ByFirstFit} {
			before, after, saved := 0, 0, 0
			for _, p := range ruledFleets(rule) {
				without, err := fresh.BySearch(p, fresh.Options{Steps: 200_000})
				if err != nil {
					t.Fatal(err)
				}
				with, err := by(p, fresh.Options{Steps: 200_000})
				if err != nil {
					t.Fatal(err)
				}
				if with.Replicas == without.Replicas && with.Makespan() > without.Makespan() || with.Replicas > without.Replicas {
					t.Errorf("%s, %s: %d replicas, the fullest at %d; without it %d and %d",
						rule, name, with.Replicas, with.Makespan(), without.Replicas, without.Makespan())
				}
				if with.Makespan() > p.Bounds.Capacity || len(with.Lost) > 0 {
					t.Errorf("%s, %s: the fullest carries %d of %d, lost %v", rule, name, with.Makespan(), p.Bounds.Capacity, with.Lost)
				}
				before, after = before+without.Replicas, after+with.Replicas
				if with.Replicas < without.Replicas {
					saved++
				}
			}
			t.Logf("%s, %s: %d replicas instead of %d, fewer in %d of 60", rule, name, after, before, saved)
			if saved < 10 {
				t.Errorf("%s, %s: fewer replicas in %d of 60", rule, name, saved)
			}
		}
	}
}

package fresh_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/fresh"
	"ballast/planner/plan"
)

func drawProblem(t *rapid.T) constraint.Question {
	most := rapid.IntRange(1, 12).Draw(t, "maxReplicas")
	p := constraint.Question{Bounds: partition.Bounds{
		MaxReplicas: most,
		MinReplicas: rapid.IntRange(0, most).Draw(t, "minReplicas"),
		MaxClusters: rapid.SampledFrom([]int{0, 0, 0, 3, 8}).Draw(t, "maxClusters"),
		Capacity:    plan.Load(rapid.SampledFrom([]int64{0, 30, 100}).Draw(t, "capacity")),
	}}
	if rapid.IntRange(0, 3).Draw(t, "is fixed") == 0 {
		p.Bounds.Fixed = rapid.IntRange(1, 14).Draw(t, "fixed")
	}
	pins := rapid.Bool().Draw(t, "pins")
	for i := range rapid.IntRange(0, 40).Draw(t, "items") {
		it := partition.Item{ID: fmt.Sprintf("c%02d", i), Clusters: 1, Replica: partition.Free,
			Load: plan.Load(rapid.Int64Range(0, 40).Draw(t, "load"))}
		if rapid.IntRange(0, 7).Draw(t, "is a unit") == 0 {
			it.Clusters = rapid.IntRange(2, 4).Draw(t, "clusters")
		}
		if pins && rapid.IntRange(0, 9).Draw(t, "is pinned") == 0 {
			it.Replica = rapid.IntRange(0, most-1).Draw(t, "pin")
		}
		p.Items = append(p.Items, it)
	}
	if n := len(p.Items); n > 1 && rapid.Bool().Draw(t, "is ruled") {
		p.Closed = rapid.SliceOfN(rapid.Bool(), 0, 3).Draw(t, "closed")
		p.Apart = append(p.Apart, constraint.Group{Name: "g", Items: rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, min(n, 5), rapid.ID).Draw(t, "group")})
	}
	return p
}

// checked answers nil where the rules clash.
func checked(t *rapid.T, p constraint.Question) *partition.Partition {
	return checkedBy(t, p, fresh.Plan)
}

type planner func(constraint.Question, fresh.Options) (partition.Partition, error)

func checkedBy(t *rapid.T, p constraint.Question, plan planner) *partition.Partition {
	out, err := plan(p, fresh.Options{Steps: 20_000})
	var clash *constraint.Error
	if errors.As(err, &clash) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &out
}

// Each by itself, too.
func TestEveryPlanKeepsEveryRuleAndIsNoWorseThanLPT(t *testing.T) {
	ways := map[string]planner{"all": fresh.Plan, "search": fresh.BySearch, "best fit": fresh.ByBestFit, "first fit": fresh.ByFirstFit}
	for name, plan := range ways {
		t.Run(name, func(t *testing.T) { keepsEveryRule(t, plan) })
	}
}

func keepsEveryRule(t *testing.T, plan planner) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		got := checkedBy(t, p, plan)
		if got == nil {
			return
		}
		for i, r := range got.Of {
			if at := p.Items[i].Replica; r < 0 || r >= got.Replicas || at != partition.Free && at != r {
				t.Fatalf("%q is on %d of %d, pinned to %d", p.Items[i].ID, r, got.Replicas, at)
			}
			if p.IsClosed(r) && p.Items[i].Replica != r {
				t.Fatalf("%q is on %d, which is closed", p.Items[i].ID, r)
			}
		}
		for _, g := range p.Apart {
			on := map[int]bool{}
			for _, i := range g.Items {
				if on[got.Of[i]] {
					t.Fatalf("two of %q are on %d", g.Name, got.Of[i])
				}
				on[got.Of[i]] = true
			}
		}
		if len(p.Apart) > 0 { // LPT knows no such rule
			return
		}
		lpt, err := partition.LPT(p.Items, p.Bounds)
		if err != nil {
			t.Fatal(err)
		}
		if got.Replicas > lpt.Replicas || got.Replicas == lpt.Replicas && got.Makespan() > lpt.Makespan() || len(got.Lost) > len(lpt.Lost) {
			t.Fatalf("%d replicas, %d, lost %v; LPT has %d, %d, %v", got.Replicas, got.Makespan(), got.Lost, lpt.Replicas, lpt.Makespan(), lpt.Lost)
		}
		if got.Replicas < lpt.Replicas && got.Makespan() > max(p.Bounds.Capacity, lpt.Makespan()) {
			t.Fatalf("fewer replicas than LPT's, but above the capacity")
		}
	})
}

func TestOrderAndUnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.Apart = nil
		first := checked(t, p)
		if first == nil {
			return
		}
		q := p
		q.Items = rapid.Permutation(p.Items).Draw(t, "order")
		q.Bounds.Capacity *= 2
		of := map[string]int{}
		for i := range q.Items {
			q.Items[i].Load *= 2
		}
		second := checked(t, q)
		if second == nil {
			t.Fatal("the rules clash in one order only")
		}
		for i, r := range second.Of {
			of[q.Items[i].ID] = r
		}
		for i, r := range first.Of {
			if of[p.Items[i].ID] != r {
				t.Fatalf("%q is on %d, in another order on %d", p.Items[i].ID, r, of[p.Items[i].ID])
			}
		}
	})
}

// With the number fixed and in force, the fullest carries about the least that is possible, by moves of little load: twice three
// that are at 12 and 6 are level once one of 3 moves.
func TestAPlanInForceIsRelievedByFewMoves(t *testing.T) {
	p := constraint.Question{Replicas: 2, Bounds: partition.Bounds{MaxReplicas: 2, Fixed: 2}}
	for i, load := range []plan.Load{5, 4, 3, 1, 2, 3} {
		p.Items = append(p.Items, partition.Item{ID: fmt.Sprintf("c%02d", i), Load: load, Clusters: 1, Replica: partition.Free})
		p.Now = append(p.Now, i/3)
	}
	got, err := fresh.Plan(p, fresh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 0, 1, 1, 1, 1}; !slices.Equal(got.Of, want) {
		t.Errorf("got %v, want %v", got.Of, want)
	}
}

func TestWhatIsPinnedStaysAndTheOthersAreDealtAroundIt(t *testing.T) {
	p := constraint.Question{Bounds: partition.Bounds{MaxReplicas: 9, Capacity: 10}}
	for i, load := range []plan.Load{4, 6, 6, 5, 5, 2, 2} {
		p.Items = append(p.Items, partition.Item{ID: fmt.Sprintf("c%02d", i), Load: load, Clusters: 1, Replica: partition.Free})
	}
	p.Items[0].Replica = 0
	got, err := fresh.Plan(p, fresh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Replicas != 3 || got.Of[0] != 0 || got.Makespan() != 10 {
		t.Errorf("%d replicas, the pinned on %d, the fullest at %d; want 3, 0 and 10", got.Replicas, got.Of[0], got.Makespan())
	}
}

package sticky_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky"
	"ballast/planner/partition/sticky/draft"
	"ballast/planner/plan"
)

// A replica that somebody added gets its share from the fullest, in as many calls as the limit takes, and then nothing moves.
func TestAReplicaThatWasAddedIsFilled(t *testing.T) {
	loads := slices.Repeat([]float64{10}, 90)
	for name, test := range map[string]struct {
		moves []int // that each call makes
		most  int
	}{
		"at once":        {moves: []int{9, 0}},
		"by and by":      {moves: []int{5, 0}, most: 5},             // half of an even share is enough to stay
		"no more than 1": {moves: []int{1, 1, 1, 1, 1, 0}, most: 1}, // half of 9 is more than 4
	} {
		t.Run(name, func(t *testing.T) {
			p := constraint.Question{Items: items(loads), Bounds: partition.Bounds{MaxReplicas: 16, Fixed: 10}, Now: make([]int, 90), Replicas: 10}
			for i := range p.Now {
				p.Now[i] = i % 9
			}
			for call, want := range test.moves {
				a, err := sticky.Plan(p, sticky.Options{MaxMoves: test.most})
				if err != nil {
					t.Fatal(err)
				}
				if len(a.Moves) != want {
					t.Errorf("call %d: %d moves, want %d", call+1, len(a.Moves), want)
				}
				for _, m := range a.Moves {
					if m.Why != draft.Filled || m.To != 9 || m.Sake != 9 || m.Must() {
						t.Errorf("call %d: %+v", call+1, m)
					}
				}
				p.Now = a.Of
			}
		})
	}
}

// Nothing is done for the sake of a replica that has to wait, and what is done for others is what rules or they themselves ask for.
func TestAPatientReplicaWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProblem(t), drawOptions(t)
		waits := rapid.SliceOfN(rapid.Bool(), 16, 16).Draw(t, "waits")
		o.Patient = func(r int) bool { return r < len(waits) && waits[r] }
		a := ask(t, p, o)
		if a == nil {
			return
		}
		for _, m := range a.Moves {
			if m.Sake != plan.NoReplica && o.Patient(m.Sake) {
				t.Errorf("%+v, and that replica waits", m)
			}
		}
	})
}

// What a move is for is its replica's overload, its emptiness, or nobody's.
func TestAMoveSaysForWhoseSakeItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProblem(t), drawOptions(t)
		a := ask(t, p, o)
		if a == nil {
			return
		}
		for _, m := range a.Moves {
			named := m.Sake != plan.NoReplica
			if want := slices.Contains([]draft.Why{draft.Overload, draft.MadeRoom, draft.Filled}, m.Why); named != want {
				t.Errorf("%+v: a replica is named: %v, want %v", m, named, want)
			}
			if diff := cmp.Diff(m.Why == draft.Drained, !named && !m.Must()); diff != "" {
				t.Errorf("%+v (-drained +not a must)\n%s", m, diff)
			}
		}
	})
}

func items(loads []float64) []partition.Item {
	out := make([]partition.Item, len(loads))
	for i, l := range loads {
		out[i] = partition.Item{ID: fmt.Sprintf("c%05d", i), Load: plan.Load(l * float64(plan.LoadUnit)), Clusters: 1, Replica: partition.Free}
	}
	return out
}

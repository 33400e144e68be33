package cycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
)

// crossed is a fleet of six on three replicas. With a capacity of 25.2 two are enough at 20.16 each, though what the highest has, 4 and 4,
// has no room on 17 and 15: the 8 of the one and the 7 of the other change places first.
func crossed(t *testing.T) (w *liveWorld, names [3][]string) {
	t.Helper()
	w = shippedPlans(t, 6)
	w.in.Config.Change.Moves.Rate = nil
	for r, loads := range [3][]float64{{9, 8}, {8, 7}, {4, 4}} {
		names[r] = w.on(r)
		for k, name := range names[r] {
			w.setLoad(name, loads[k])
		}
	}
	capacity := config.Decimal("0.42") // of sixty
	w.in.Config.Partition.Capacity = &capacity
	return w, names
}

func TestTheHighestReplicaGoesWhereOthersMakeRoom(t *testing.T) {
	w, names := crossed(t)
	if first := w.cycles(6*60-10, func(int) {}); first >= 0 || w.in.InForce.Replicas != 3 {
		t.Fatalf("%v moved within downWindow, and there are %d replicas", w.moved(), w.in.InForce.Replicas)
	}
	reason := ""
	w.cycles(60, func(int) {
		if w.in.InForce.Rollout != nil && reason == "" {
			reason = w.last.Reason
		}
	})
	fullest := 0.0
	for _, r := range w.last.Now {
		fullest = max(fullest, r.TotalLoad.Float())
	}
	if a, b := w.owners()[names[2][0]], w.owners()[names[2][1]]; w.in.InForce.Replicas != 2 || a+b != 1 {
		t.Errorf("%d replicas, and what the third had is on %d and %d, want one on each of two", w.in.InForce.Replicas, a, b)
	}
	if len(w.moved()) != 4 || fullest > 0.336 {
		t.Errorf("%v moved, and the fullest carries %.3f; want four moves, and at most 0.336", w.moved(), fullest)
	}
	want := "replica 2 has not been needed for as long as partition.sticky.downWindow: the others take what it has by 4 moves in all"
	if !strings.Contains(reason, want) {
		t.Errorf("the plan's reason is %q, want in it %q", reason, want)
	}
	moved := w.moved()
	w.cycles(24*60, func(int) {})
	if diff := cmp.Diff(moved, w.moved()); diff != "" || w.in.InForce.Replicas != 2 {
		t.Errorf("it does not rest, with %d replicas (-before +after):\n%s", w.in.InForce.Replicas, diff)
	}
}

func TestAReplicaStaysThatIsNotWorthTheMoves(t *testing.T) {
	for name, tc := range map[string]struct {
		says string
		with func(*config.PlannerConfig)
	}{
		"the budget never has room for all": {"it may; replica 2 could go by 4 moves, and half of the move budget never has room for more than 0 (change.moves.rate)",
			func(c *config.PlannerConfig) { c.Change = config.Default().Change }},
		"half of the budget is less": {"it may; replica 2 could go by 4 moves, and half of the move budget never has room for more than 3 (change.moves.rate)",
			func(c *config.PlannerConfig) {
				c.Change.Moves.Rate = []config.Rate{{Percent: 100, Period: config.Duration(time.Hour)}}
			}},
		"the horizon is short": {"it may; replica 2 could go by 4 moves, which cost more than a replica is worth",
			func(c *config.PlannerConfig) { c.Evaluate.CostBenefit.Horizon = config.Duration(time.Hour) }},
		"a number is asked for":         {"", func(c *config.PlannerConfig) { c.Partition.Replicas = &config.Replicas{Fixed: 3} }},
		"change.in lets none go":        {"", func(c *config.PlannerConfig) { c.Change.In.Mode = "Off" }},
		"so many are asked for, anyway": {"", func(c *config.PlannerConfig) { least := 3; c.Partition.MinReplicas = &least }},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := crossed(t)
			tc.with(&w.in.Config)
			w.cycles(8*60, func(int) {})
			if len(w.moved()) > 0 || w.in.InForce.Replicas != 3 {
				t.Errorf("%d replicas, and %v moved", w.in.InForce.Replicas, w.moved())
			}
			if got := w.last.Candidate.Verdict; !strings.Contains(got, tc.says) {
				t.Errorf("the verdict is %q, want in it %q", got, tc.says)
			}
		})
	}
}

// What its moves leave of the budget is at least half: levelling needs it when the load is back.
func TestAReplicaGoesByHalfOfTheBudget(t *testing.T) {
	w, _ := crossed(t)
	w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 134, Period: config.Duration(time.Hour)}} // 8 of six, and 4 by half
	w.cycles(8*60, func(int) {})
	if len(w.moved()) != 4 || w.in.InForce.Replicas != 2 {
		t.Errorf("%d replicas, and %v moved; want 2 by four moves: %s", w.in.InForce.Replicas, w.moved(), w.last.Candidate.Verdict)
	}
}

// Without a capacity nobody said what a replica carries: none goes, however little there is to carry.
func TestWithoutACapacityNoReplicaGoes(t *testing.T) {
	w, _ := crossed(t)
	w.in.Config.Partition.Capacity = nil
	for i := range 6 {
		w.setLoad(w.last.Fleet.Clusters[i].Shard.ID, 1)
	}
	w.cycles(8*60, func(int) {})
	if len(w.moved()) > 0 || w.in.InForce.Replicas != 3 {
		t.Errorf("%d replicas, and %v moved", w.in.InForce.Replicas, w.moved())
	}
}

package cycle

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/explain"
	"ballast/planner/plan"
)

// lopsided has six clusters on replica 0, and one on each of the others.
func lopsided() *world {
	return grouped(map[string]int{"a": 0, "b": 0, "c": 0, "d": 0, "e": 0, "f": 0, "g": 1, "h": 2}, nil)
}

// Leave it is an answer, and each of its reasons has a sentence.
func TestExplainSaysWhetherToLeaveACluster(t *testing.T) {
	for name, test := range map[string]struct {
		world   func() *world
		cluster string
		to      int
		leave   bool
		saves   bool
		says    string
	}{
		"nothing is too full": {func() *world { return grouped(map[string]int{"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}, nil) },
			"a", -1, true, false, "Leave it: every other replica is ruled out."},
		"a light one of a full fleet": {func() *world {
			w := grouped(map[string]int{"a": 0, "b": 0, "c": 1, "d": 2}, nil)
			w.setLoad("a", 0.1)
			w.setLoad("c", 0.9)
			return w
		}, "a", 1, true, false, "Leave it: replica 0 carries 0.367 and may carry "},
		"it moves":         {lopsided, "f", 1, false, true, "Do not leave it: the partition has it on replica 1; the plan: "},
		"others move":      {lopsided, "a", 1, true, true, "Leave it: the partition relieves replica 0 by 2 moves of others."},
		"beside the crowd": {lopsided, "g", 2, true, false, "Leave it: replica 1 carries 0.125 and may carry "},
		"it would never pay": {func() *world {
			w := lopsided()
			w.in.Config.Evaluate.CostBenefit.Horizon = config.Duration(time.Second)
			return w
		}, "a", 1, true, true, "longer than evaluate.costBenefit.horizon (1s)."},
		"pinned": {func() *world {
			w := lopsided()
			w.in.Pins = plan.Pins{"a": 0}
			return w
		}, "a", -1, true, false, "Leave it: it is pinned to replica 0."},
		"to be empty": {func() *world {
			w := lopsided()
			w.in.Cordon = "0=" + w.in.Now.Add(time.Hour).Format(time.RFC3339)
			return w
		}, "f", 1, false, true, "Do not leave it: a person wants replica 0 empty, and it goes with the others there."},
		"lpt knows no line": {func() *world {
			w := lopsided()
			w.in.Config.Partition = config.Partition{LPT: &config.LPT{}}
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(time.Hour), MinSamples: 10}}
			return w
		}, "a", 1, true, false, "Leave it: the partition does; the move would bring the fullest replica from 0.75 to 0.625 for 0.0312 load hours."},
		"alone": {func() *world {
			w := grouped(map[string]int{"a": 0, "b": 0}, nil)
			w.in.Workload.Replicas = 1
			return w
		}, "a", -1, true, false, "Leave it: there is no other replica."},
	} {
		t.Run(name, func(t *testing.T) {
			w := test.world()
			w.cycle()
			e, err := explain.Cluster(w.in, w.last, test.cluster)
			if err != nil {
				t.Fatal(err)
			}
			m := e.Moving
			if m.To != test.to || m.Leave != test.leave || m.Saves > 0 != test.saves || !strings.Contains(m.Answer, test.says) {
				t.Errorf("%+v, want to %d, leave it %t, saves %t, %q", m, test.to, test.leave, test.saves, test.says)
			}
			if strings.Count(m.Answer, ". ") > 0 || !strings.HasSuffix(m.Answer, ".") {
				t.Errorf("%q is not one sentence", m.Answer)
			}
		})
	}
}

// What a move costs is what starts from an empty cache: the cluster and what goes with it, and all there is where every replica restarts.
func TestExplainSaysWhatAMoveCosts(t *testing.T) {
	w := grouped(map[string]int{"a": 0, "b": 0, "c": 1, "d": 2}, map[string][]string{"a": {"pay"}, "b": {"pay"}}, together("pay"))
	w.in.Config.Change.Moves.Rate = config.Default().Change.Moves.Rate
	w.cycle()
	e, err := explain.Cluster(w.in, w.last, "a")
	if err != nil {
		t.Fatal(err)
	}
	if m := e.Moving; m.Clusters != 2 || m.LoadHours != 0.5*0.25 || m.Restarts || !m.Limited {
		t.Errorf("two of four go: %+v", m)
	}
	w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}}
	w.cycle()
	if e, err = explain.Cluster(w.in, w.last, "a"); err != nil {
		t.Fatal(err)
	}
	if m := e.Moving; m.LoadHours != 0.25 || !m.Restarts {
		t.Errorf("every replica restarts: %+v", m)
	}
}

// Whatever the fleet: what is left moves nowhere, what is weighed adds up, and no replica is better than the best of those that nothing
// speaks against.
func TestExplainWeighsEveryMoveByOneModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		on, n := map[string]int{}, rapid.IntRange(1, 14).Draw(t, "clusters")
		for i := range n {
			on[fmt.Sprintf("c%02d", i)] = rapid.IntRange(0, 2).Draw(t, "replica")
		}
		w := grouped(on, nil)
		for name := range on {
			w.setLoad(name, rapid.Float64Range(0, 100).Draw(t, "load"))
		}
		w.cycle()
		for name := range on {
			e, err := explain.Cluster(w.in, w.last, name)
			if err != nil {
				t.Fatal(err)
			}
			if m := e.Moving; m != nil {
				checkMoving(t, w, e, *m)
			} else if len(e.Choices) > 0 {
				t.Fatalf("%s: nothing is said of a move of %+v", name, e)
			}
		}
	})
}

func checkMoving(t *rapid.T, w *world, e explain.Explanation, m explain.Moving) {
	if m.To == e.Replica || m.Leave && e.To >= 0 || m.Answer == "" {
		t.Errorf("%+v of a cluster on replica %d that the partition has on %d", m, e.Replica, e.To)
	}
	if diff := m.LoadHours - e.Load.Float()/4; math.Abs(diff) > 1e-9 {
		t.Errorf("it costs %g load hours, and makes %s", m.LoadHours, e.Load)
	}
	own := e.Choices[e.Replica].Carries
	high := w.last.Candidate.High
	if m.Saves > e.Load || m.Saves > 0 && own <= high {
		t.Errorf("it saves %s of %s on a replica that carries %s and may %s", m.Saves, e.Load, own, high)
	}
	if (m.PaysAfter > 0) != (m.Saves > 0 && e.Load > 0) {
		t.Errorf("it saves %s and pays after %s", m.Saves, m.PaysAfter)
	}
	for _, c := range e.Choices {
		better := c.Replica != e.Replica && c.Against == "" && c.Imbalance < m.Level
		if better && e.To < 0 {
			t.Errorf("replica %d is better than %d", c.Replica, m.To)
		}
	}
}

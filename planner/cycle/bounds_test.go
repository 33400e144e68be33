package cycle

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/plan"
)

// Whatever a plan says, the next one is within the configuration or what stands.
func TestEveryNumberOfAPlanIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(3, 2, 1, 1, 1)
		w.in.Config.Mode = plan.Enforce
		w.run(2)
		most := rapid.IntRange(3, 20).Draw(t, "maxReplicas")
		if rapid.Bool().Draw(t, "configured") {
			w.in.Config.Partition.MaxReplicas = &most
		} else {
			most = defaultMaxReplicas
		}
		number := rapid.SampledFrom([]int{-1, 0, 1, 2, 3, most, most + 1, 900, plan.ReplicaLimit})
		p := w.in.InForce.Clone()
		p.Replicas, p.ControllerReplicas, p.MaxReplicas = number.Draw(t, "replicas"), number.Draw(t, "env"), number.Draw(t, "max")
		for _, name := range slices.Sorted(maps.Keys(p.Clusters)) {
			p.Clusters[name] = plan.Row{Replica: number.Draw(t, "row")}
		}
		if rapid.Bool().Draw(t, "rollout") {
			p.Rollout = drawRollout(t, number, w.in.Now)
		}
		w.in.InForce = &p
		next := Run(w.in).Next
		if err := next.Validate(); err != nil {
			t.Fatal(err)
		}
		x0y := next.Rollout != nil && next.Rollout.Mode == plan.ModeX0Y
		if next.Replicas > most || next.Replicas < 1 && !x0y || next.ControllerReplicas > most || next.MaxReplicas > most {
			t.Fatalf("replicas %d, env %d, max %d beyond %d, rollout %+v", next.Replicas, next.ControllerReplicas, next.MaxReplicas, most, next.Rollout)
		}
		for name, row := range next.Clusters {
			if row.Replica < 0 || row.Replica >= most {
				t.Fatalf("%s is on replica %d of at most %d", name, row.Replica, most)
			}
		}
		checkRollout(t, next.Rollout, most)
	})
}

// checkRollout: where a rollout comes from and goes to, and what it moves.
func checkRollout(t *rapid.T, r *plan.Rollout, most int) {
	if r == nil {
		return
	}
	for what, n := range map[string]int{"from": r.From.Replicas, "to": r.Replicas} {
		if n < 1 || n > most {
			t.Fatalf("%s %d replicas of at most %d", what, n, most)
		}
	}
	if r.From.ControllerReplicas < 0 || max(r.From.ControllerReplicas, r.ControllerReplicas) > most {
		t.Fatalf("env from %d to %d of at most %d", r.From.ControllerReplicas, r.ControllerReplicas, most)
	}
	for _, moves := range []map[string]int{r.Moves, r.Was} {
		for name, replica := range moves {
			if replica < 0 || replica >= most {
				t.Fatalf("%s moves by way of replica %d of at most %d", name, replica, most)
			}
		}
	}
}

func drawRollout(t *rapid.T, number *rapid.Generator[int], now time.Time) *plan.Rollout {
	r := &plan.Rollout{
		Mode:  rapid.SampledFrom([]string{plan.ModeX0Y, plan.ModeLive, plan.ModeDefault}).Draw(t, "mode"),
		Stage: rapid.SampledFrom([]plan.Stage{plan.Assigning, plan.Scaling, plan.Restarting, plan.Reverting, plan.Draining, plan.Restoring, plan.Moving, plan.Verifying, plan.Shrinking}).Draw(t, "stage"),
		Since: now.Add(time.Duration(rapid.IntRange(-90, 90).Draw(t, "since")) * time.Minute),
		From:  plan.Count{Replicas: number.Draw(t, "from"), ControllerReplicas: number.Draw(t, "fromEnv")}, Replicas: number.Draw(t, "to"),
		ControllerReplicas: number.Draw(t, "toEnv"), Moves: map[string]int{}, Was: map[string]int{},
	}
	for _, name := range []string{"c000", "c001", "nobody"} {
		r.Moves[name], r.Was[name] = number.Draw(t, "moves"), number.Draw(t, "was")
	}
	return r
}

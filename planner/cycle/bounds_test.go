package cycle

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/adopt"
	"ballast/planner/discover"
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
			most = adopt.DefaultMaxReplicas
		}
		number := rapid.SampledFrom([]int{-1, 0, 1, 2, 3, most, most + 1, 900, plan.ReplicaLimit})
		w.drawSizing(t)
		w.in.Paused = rapid.Bool().Draw(t, "paused")
		if rapid.Bool().Draw(t, "the env is left to people") {
			w.in.Config.Rollout.Default, w.in.Config.Rollout.Live = nil, &config.LiveRollout{MaxMovesPerWave: 5, Adopt: config.AdoptWithNext}
		}
		if rapid.Bool().Draw(t, "a Secret that people keep says anything") {
			kept := &w.in.Discovered.Secrets[4]
			kept.Unmanaged = rapid.Bool().Draw(t, "opted out")
			kept.Immutable, kept.Shard = !kept.Unmanaged, discover.ShardValue{State: discover.ShardValid, N: plan.ReplicaLimit - 2}
		}
		p := w.in.InForce.Clone()
		p.NextControllerReplicas = number.Draw(t, "next env")
		p.Resources, p.Sizes = drawSizes(t)
		p.Replicas, p.ControllerReplicas, p.MaxReplicas = number.Draw(t, "replicas"), number.Draw(t, "env"), number.Draw(t, "max")
		for _, name := range slices.Sorted(maps.Keys(p.Clusters)) {
			p.Clusters[name] = plan.Row{Replica: number.Draw(t, "row")}
		}
		if rapid.Bool().Draw(t, "rollout") {
			p.Rollout = drawRollout(t, number, w.in.Now)
		}
		w.in.InForce = &p
		w.in.Observed.Known = true // what pods have stands, so that nothing is cut while nobody sees them
		next := Run(w.in).Next
		if err := next.Validate(); err != nil {
			t.Fatal(err)
		}
		if next.NextControllerReplicas > most || next.NextControllerReplicas < 0 {
			t.Fatalf("the env becomes %d of at most %d", next.NextControllerReplicas, most)
		}
		checkSizes(t, next)
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

// drawSizing has the configuration hold sizes, under a written cap of 4Gi and two cores, or none.
func (w *world) drawSizing(t *rapid.T) {
	w.in.Workload.Resources = &plan.Resources{Requests: map[string]string{"memory": "1Gi", "cpu": "1"}, Limits: map[string]string{"memory": "2Gi", "cpu": "2"}}
	w.in.Config.Size = config.Size{Apply: rapid.SampledFrom([]config.SizeApply{config.InPlace, config.Template}).Draw(t, "apply"), NodeCap: config.SizeCap{Memory: "4Gi", CPU: "2"}}
	if rapid.Bool().Draw(t, "policies") {
		w.in.Config.Size.Policies = []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
			{List: config.Requests, Resource: "memory", Base: "1Gi"}, {List: config.Requests, Resource: "cpu", Base: "1"}}}}
	}
}

// drawSizes are sizes of the template or of pods, as large as a plan may say.
func drawSizes(t *rapid.T) (*plan.Resources, *plan.Sizes) {
	one := func(of string) plan.Resources {
		memory := rapid.SampledFrom([]string{"1Gi", "4Gi", "900Gi"}).Draw(t, of)
		return plan.Resources{Requests: map[string]string{"memory": memory, "cpu": rapid.SampledFrom([]string{"1", "900"}).Draw(t, of)},
			Limits: map[string]string{"memory": rapid.SampledFrom([]string{memory, "901Gi"}).Draw(t, of), "cpu": "900"}}
	}
	switch rapid.IntRange(0, 2).Draw(t, "sizes") {
	case 1:
		r := one("resources")
		return &r, nil
	case 2:
		return nil, &plan.Sizes{Default: one("default"), Replicas: map[int]plan.Resources{1: one("own")}}
	}
	return nil, nil
}

// checkSizes: the template's limits are twice its requests, so that limits may be twice the cap.
func checkSizes(t *rapid.T, p plan.Plan) {
	var all []plan.Resources
	if p.Resources != nil {
		all = append(all, *p.Resources)
	}
	for replica := range 4 {
		if own, held := p.SizeOf(replica); held {
			all = append(all, own)
		}
	}
	for _, r := range all {
		for _, list := range []struct {
			of   map[string]string
			most map[string]string
		}{{r.Requests, map[string]string{"memory": "4Gi", "cpu": "2"}}, {r.Limits, map[string]string{"memory": "8Gi", "cpu": "4"}}} {
			for name, text := range list.of {
				if q := resource.MustParse(text); q.Cmp(resource.MustParse(list.most[name])) > 0 {
					t.Fatalf("%s %s of at most %s: %+v", name, text, list.most[name], r)
				}
			}
		}
	}
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

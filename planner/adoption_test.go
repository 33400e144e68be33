package planner

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// pods are Argo CD's replicas as they run: each with the env that it read at its start.
type pods struct {
	*liveWorld
	algorithm discover.Algorithm
	envs      []int
}

// owners is who owns each cluster, by every pod's own reckoning. discover.Owners is Argo CD's: see the vectors in
// planner/discover.
func (p *pods) owners(t *testing.T) map[string][]int {
	t.Helper()
	fleet := fleetOf(t, p.world)
	owners := map[string][]int{}
	for pod, env := range p.envs {
		for i, owner := range discover.Owners(fleet.Clusters, p.algorithm, env, nil) {
			if name := fleet.Clusters[i].Shard.ID; owner == pod {
				owners[name] = append(owners[name], pod)
			}
		}
	}
	return owners
}

// TestAdoptionChangesNoOwner takes fleets over from each algorithm: through stamping Secret by Secret, and through the
// restart for the env pod by pod, every cluster keeps the owner that it had, and no other beside.
func TestAdoptionChangesNoOwner(t *testing.T) {
	for _, algorithm := range []discover.Algorithm{discover.Legacy, discover.RoundRobin, discover.ConsistentHashing} {
		t.Run(string(algorithm), func(t *testing.T) {
			w := newLiveWorld(lognormal(7, 180)...)
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 5000}}
			w.in.Discovered.Algorithm = string(algorithm)
			six := "6"
			w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.UpdatedReplicas, w.in.Workload.CurrentReplicas = 6, 6, 6, 6
			w.in.Workload.EnvReplicas = &six
			p := &pods{liveWorld: w, algorithm: algorithm, envs: []int{6, 6, 6, 6, 6, 6}}
			before := p.owners(t)
			same := func(when string) {
				t.Helper()
				for name, now := range p.owners(t) {
					if fmt.Sprint(now) != fmt.Sprint(before[name]) || len(now) != 1 {
						t.Fatalf("%s: %s is owned by %v, and was by %v", when, name, now, before[name])
					}
				}
			}
			stamped, restarted := 0, false
			for range 20 {
				w.in.Now = w.in.Now.Add(time.Minute)
				w.observe()
				out := Cycle(w.in)
				w.in.Memory = out.Memory
				if out.Changed {
					next := out.Next.Clone()
					next.Revision = int64(w.writes + 1)
					w.in.InForce, w.writes = &next, w.writes+1
				}
				for _, step := range rollout.Steps(plan.NewView(w.in.InForce.Clone(), out.Pins), Seen(out.Fleet, w.in.Workload), rollout.StepOptions{}).Steps {
					switch s := step.(type) {
					case rollout.PatchShard:
						w.secret(s.Secret).Shard = discover.ShardValue{State: discover.ShardValid, N: s.Shard}
						if stamped++; stamped%9 == 0 {
							same(fmt.Sprintf("after %d stamps", stamped))
						}
					case rollout.PatchWorkload:
						if s.Replicas != nil || s.ControllerReplicas == nil || restarted {
							t.Fatalf("the workload is written otherwise than once for its env: %s", s)
						}
						restarted = true
						env := strconv.Itoa(*s.ControllerReplicas)
						w.in.Workload.EnvReplicas = &env
						for pod := 5; pod >= 0; pod-- { // as a StatefulSet does
							p.envs[pod] = *s.ControllerReplicas
							same(fmt.Sprintf("with pods %d to 5 restarted", pod))
						}
					}
				}
				same("after a cycle")
			}
			if stamped != 180 || !restarted || w.in.InForce.Rollout != nil || w.in.InForce.ControllerReplicas != 16 {
				t.Errorf("%d Secrets were stamped, restarted %v, rollout %v, env %d; want 180, once, none, 16", stamped, restarted, w.in.InForce.Rollout, w.in.InForce.ControllerReplicas)
			}
		})
	}
}

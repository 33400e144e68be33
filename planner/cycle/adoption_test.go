package cycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// envPods are Argo CD's replicas as they run: each with the env that it read at its start, 0 for none. Apps is the number of
// Applications by server, by which consistent-hashing weighs clusters.
type envPods struct {
	*liveWorld
	algorithm sharding.Algorithm
	envs      []int
	apps      map[string]int
}

// weigh gives every cluster another number of Applications.
func (p *envPods) weigh() {
	p.apps = map[string]int{}
	for i, s := range p.in.Discovered.Secrets {
		p.apps[s.Server] = 1 + i*i%97
	}
}

// owners is who owns each cluster, by every pod's own reckoning. discover.Owners is Argo CD's: see the vectors in
// planner/discover. A pod without an env owns all, and one whose number is above its env takes itself for replica 0.
func (p *envPods) owners(t *testing.T) map[string][]int {
	t.Helper()
	fleet := fleetOf(t, p.world)
	owners, computed := map[string][]int{}, map[int][]int{}
	for pod, env := range p.envs {
		if computed[env] == nil {
			computed[env] = sharding.Owners(fleet.Clusters, p.algorithm, env, p.apps)
		}
		own := pod
		if pod > env {
			own = 0
		}
		for i, owner := range computed[env] {
			if name := fleet.Clusters[i].Shard.ID; owner == own || env <= 1 {
				owners[name] = append(owners[name], pod)
			}
		}
	}
	return owners
}

// adopting is a fleet that is taken over, and who owned its clusters before.
type adopting struct {
	*envPods
	before, last map[string][]int
	stamped      int
	restarted    bool
	silent       bool // the pods say nothing before the Secrets are stamped
	waits        bool // and there is no plan before they do
}

// fair looks that no cluster comes to another owner than it had, nor loses its last one; one that nobody had may get one.
func (a *adopting) fair(t *testing.T, when string) {
	t.Helper()
	now := a.owners(t)
	for _, s := range a.in.Discovered.Secrets {
		before, last, now := a.before[s.Name], a.last[s.Name], now[s.Name]
		foreign := slices.ContainsFunc(now, func(pod int) bool { return !slices.Contains(before, pod) })
		switch {
		case len(before) > 0 && (foreign || len(now) == 0):
			t.Fatalf("%s: %s is owned by %v, and was by %v", when, s.Name, now, before)
		case len(before) == 0 && (len(now) > 1 || len(last) == 1 && !slices.Equal(last, now)):
			t.Fatalf("%s: %s is owned by %v; nobody had it, then %v", when, s.Name, now, last)
		}
	}
	a.last = now
}

// observed is what such pods say.
func (a *adopting) observed(t *testing.T) {
	if a.observe(); a.silent && a.stamped == 0 {
		a.in.Observed = input.Observed{}
		return
	}
	for name, owners := range a.owners(t) {
		c := a.in.Observed.Reported.Clusters[name]
		c.Owners, c.Live, c.Cached, c.Holders = owners, owners, owners, owners
		a.in.Observed.Reported.Clusters[name] = c
	}
}

// mend does a cycle's steps, one at a time.
func (a *adopting) mend(t *testing.T, out outcome.Outcome) {
	for _, step := range diff.Between(plan.NewView(a.in.InForce.Clone(), out.Pins), standing.Seen(a.in.InForce.Clusters, out.Fleet, a.in.Memory.Known, a.in.Workload), diff.Options{}).Steps {
		switch s := step.(type) {
		case diff.PatchShard:
			a.secret(s.Secret).Shard = discover.ShardValue{State: discover.ShardValid, N: s.Shard}
			a.stamped++
			a.fair(t, fmt.Sprintf("after %d stamps", a.stamped))
		case diff.PatchWorkload:
			if s.Replicas != nil || s.ControllerReplicas == nil || a.restarted {
				t.Fatalf("the workload is written otherwise than once for its env: %s", s)
			}
			a.restarted = true
			env := strconv.Itoa(*s.ControllerReplicas)
			a.in.Workload.EnvReplicas = &env
			for pod := len(a.envs) - 1; pod >= 0; pod-- { // as a StatefulSet does
				a.envs[pod] = *s.ControllerReplicas
				a.fair(t, fmt.Sprintf("with pods from %d on restarted", pod))
			}
		}
	}
}

// cycle is one, and its steps.
func (a *adopting) cycle(t *testing.T) outcome.Outcome {
	t.Helper()
	a.in.Now = a.in.Now.Add(time.Minute)
	a.observed(t)
	out := Run(a.in)
	a.in.Memory = out.Memory
	if out.Changed {
		next := out.Next.Clone()
		next.Revision = int64(a.writes + 1)
		a.in.InForce, a.writes = &next, a.writes+1
	}
	if a.in.InForce != nil {
		a.mend(t, out)
	}
	a.fair(t, "after a cycle")
	return out
}

// waitsForThePods sees no plan, and people told for whom it waits, until the pods answer.
func (a *adopting) waitsForThePods(t *testing.T) {
	t.Helper()
	for range 10 {
		out := a.cycle(t)
		told := findProblem(out, "OwnersUnknown").Message
		if a.in.InForce != nil || !strings.Contains(told, "no pod says that it has c000, c001, c002 and 177 more") {
			t.Fatalf("the pods are silent; there is a plan: %t, told %q", a.in.InForce != nil, told)
		}
	}
	a.silent = false
}

// TestAdoptionChangesNoOwner takes fleets of six replicas over from each algorithm, with an env that fits, none, and one that is
// smaller or larger, whether or not the pods say what they own: through stamping Secret by Secret, and through the restart for the env pod by pod, no cluster comes to a
// replica that did not have it or is left by its last one; in the end each has one. Under consistent-hashing nobody knows who has a cluster
// but the pods: while they are silent there is no plan.
func TestAdoptionChangesNoOwner(t *testing.T) {
	const replicas, clusters = 6, 180
	for _, algorithm := range []sharding.Algorithm{sharding.Legacy, sharding.RoundRobin, sharding.ConsistentHashing} {
		for name, test := range map[string]struct {
			env               int
			doubled, orphaned bool
		}{
			"as many": {6, false, false}, "none": {0, true, false}, "too small": {4, true, false}, "too large": {8, false, true},
		} {
			for _, silent := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, env %s, silent %t", algorithm, name, silent), func(t *testing.T) {
					w := newLiveWorld(lognormal(7, clusters)...)
					w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 5000}}
					w.in.Discovered.Algorithm = string(algorithm)
					w.scale(replicas)
					w.in.Workload.EnvReplicas = nil
					if env := strconv.Itoa(test.env); test.env > 0 {
						w.in.Workload.EnvReplicas = &env
					}
					a := &adopting{envPods: &envPods{liveWorld: w, algorithm: algorithm, envs: slices.Repeat([]int{test.env}, replicas)}}
					a.weigh()
					a.before, a.silent = a.owners(t), silent
					a.waits = silent && algorithm == sharding.ConsistentHashing && test.env > 0
					a.last = a.before
					doubled, orphaned := 0, clusters-len(a.before)
					for _, owners := range a.before {
						if len(owners) > 1 {
							doubled++
						}
					}
					if doubled > 0 != test.doubled || orphaned > 0 != test.orphaned {
						t.Fatalf("the test itself failed: %d clusters are doubled and %d orphaned before", doubled, orphaned)
					}
					if a.waits {
						a.waitsForThePods(t)
					}
					for range 20 {
						a.cycle(t)
					}
					for _, s := range w.in.Discovered.Secrets {
						if got := a.last[s.Name]; len(got) != 1 || got[0] != w.row(t, s.Name) {
							t.Errorf("%s is owned by %v in the end, its row is %d", s.Name, got, w.row(t, s.Name))
						}
					}
					if a.stamped != clusters || !a.restarted || w.in.InForce.Rollout != nil || w.in.InForce.ControllerReplicas != 16 {
						t.Errorf("%d Secrets were stamped, restarted %v, rollout %+v, env %d; want %d, once, none, 16",
							a.stamped, a.restarted, w.in.InForce.Rollout, w.in.InForce.ControllerReplicas, clusters)
					}
				})
			}
		}
	}
}

// A plan whose write is lost forgets its rows in the next one, and not an hour later.
func TestARowIsForgottenThoughTheWriteIsLost(t *testing.T) {
	w := newWorld(slices.Repeat([]float64{10}, 20)...)
	w.run(70)
	w.remove("c007")
	for minute := 0; ; minute++ {
		before := *w.in.InForce
		w.run(1)
		if _, there := w.in.InForce.Clusters["c007"]; !there {
			w.in.InForce = &before // the write was lost, and the memory is this cycle's
			w.run(1)
			if _, there := w.in.InForce.Clusters["c007"]; there {
				t.Errorf("the row is there still, %d min after its Secret went", minute+1)
			}
			return
		}
		if minute > 130 {
			t.Fatal("the row was never forgotten")
		}
	}
}

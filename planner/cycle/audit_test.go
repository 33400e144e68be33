package cycle

import (
	"slices"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

func (w *liveWorld) minutes(n int) {
	for range n {
		w.step(time.Minute)
	}
}

// scaleTo is an autoscaler, whose pods are there at once.
func (w *liveWorld) scaleTo(replicas int) {
	s := &w.in.Workload
	s.Replicas, s.ReadyReplicas, s.UpdatedReplicas, s.CurrentReplicas = replicas, replicas, replicas, replicas
}

// TestASecretThatIsUnstampedKeepsNoCountFromBeingFollowed: an autoscaler has taken the replica already, and whoever was on it waits
// for nothing.
func TestASecretThatIsUnstampedKeepsNoCountFromBeingFollowed(t *testing.T) {
	for name, cannot := range map[string]func(*liveWorld, *discover.Secret){
		"immutable":      func(_ *liveWorld, s *discover.Secret) { s.Immutable = true },
		"always refused": func(w *liveWorld, s *discover.Secret) { w.refuses = map[string]bool{s.Name: true} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newLiveWorld(skewed(24)...)
			w.in.Workload.Kind, w.in.Workload.DynamicDistribution, w.in.Workload.EnvReplicas = plan.Deployment, true, nil
			w.in.Config.Change, w.in.Config.Failover = config.Default().Change, config.Default().Failover
			w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 10_000}}
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: i % 3}
			}
			w.add("zz", 1)
			w.secret("zz").Shard = discover.ShardValue{}
			cannot(w, w.secret("zz"))
			w.minutes(60)
			w.scaleTo(2)
			owned := 0
			for range 60 {
				w.step(time.Minute)
				owned += len(w.on(2))
			}
			if w.in.InForce.Replicas != 2 || owned > 60 {
				t.Errorf("an hour after the autoscaler took replica 2 the plan has %d replicas, and clusters were on it for %d cluster-minutes", w.in.InForce.Replicas, owned)
			}
			w.scaleTo(5)
			w.minutes(60)
			if w.in.InForce.Replicas != 2 { // what an autoscaler adds to a Deployment owns by another number (scaled_test.go)
				t.Errorf("an hour after the autoscaler made five the plan has %d", w.in.InForce.Replicas)
			}
		})
	}
}

// TestASecretThatIsUnstampedKeepsNoStatefulSetsCountFromBeingFollowed: nobody has what is on the two replicas that went.
func TestASecretThatIsUnstampedKeepsNoStatefulSetsCountFromBeingFollowed(t *testing.T) {
	for name, cannot := range map[string]func(*liveWorld, *discover.Secret){
		"immutable":      func(_ *liveWorld, s *discover.Secret) { s.Immutable = true },
		"always refused": func(w *liveWorld, s *discover.Secret) { w.refuses = map[string]bool{s.Name: true} },
	} {
		t.Run(name, func(t *testing.T) {
			w, env := newLiveWorld(skewed(25)...), "5"
			w.in.Workload.EnvReplicas = &env
			w.scaleTo(5)
			w.in.Config.Change, w.in.Config.Failover = config.Default().Change, config.Default().Failover
			w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 10_000}}
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: i % 5}
			}
			w.add("zz", 1)
			w.secret("zz").Shard = discover.ShardValue{}
			cannot(w, w.secret("zz"))
			w.minutes(60)
			if at := len(w.on(3)) + len(w.on(4)); w.in.InForce.Replicas != 5 || at != 10 {
				t.Fatalf("the plan has %d replicas, and %d clusters on the last two, want 5 and 10", w.in.InForce.Replicas, at)
			}
			w.scaleTo(3)
			owned := 0
			for range 60 {
				w.step(time.Minute)
				owned += len(w.on(3)) + len(w.on(4))
			}
			if w.in.InForce.Replicas != 3 || owned > 60 {
				t.Errorf("an hour after people took two replicas the plan has %d, and clusters were on the two for %d cluster-minutes",
					w.in.InForce.Replicas, owned)
			}
			if zz := w.secret("zz"); zz.Shard != (discover.ShardValue{}) {
				t.Errorf("the Secret was written: %+v", zz.Shard)
			}
		})
	}
}

// TestTwinsPinnedApartRest, whether or not one pin is beyond the replicas that there are: their rows went to and fro, a plan a cycle, and
// a dead replica's clusters waited behind that. Where both pins hold, each row and Secret stays at its own, through every stage of whatever
// rollout is made: x0y's stop had the second one go to the first, and back at the next cycle.
func TestTwinsPinnedApartRest(t *testing.T) {
	for name, apart := range map[string]func(*liveWorld){
		"one beyond the replicas": func(w *liveWorld) { w.in.Pins = plan.Pins{"c000": 0, "c001": 4} },
		"both beyond them":        func(w *liveWorld) { w.in.Pins = plan.Pins{"c000": 3, "c001": 4} },
		"while the number grows": func(w *liveWorld) {
			w.in.Pins = plan.Pins{"c000": 0, "c001": 4}
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 5}
		},
		"by Secrets": func(w *liveWorld) { w.secret("c000").Pin, w.secret("c001").Pin = "0", "4" },
		"both within the replicas": func(w *liveWorld) {
			w.in.Pins = plan.Pins{"c000": 0, "c001": 2}
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
		},
	} {
		for _, mode := range []string{plan.ModeLive, plan.ModeDefault, plan.ModeX0Y} {
			t.Run(name+", "+mode, func(t *testing.T) {
				w := newLiveWorld(skewed(24)...)
				w.in.Config.Change, w.in.Config.Evaluate, w.in.Config.Failover = config.Default().Change, config.Default().Evaluate, config.Default().Failover
				w.in.Config.Partition = config.Default().Partition
				late := config.Duration(10 * time.Minute)
				switch mode {
				case plan.ModeDefault:
					w.in.Config.Rollout = config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: late}
				case plan.ModeX0Y:
					w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: late}
				}
				w.in.Discovered.Secrets[1].Server = w.in.Discovered.Secrets[0].Server
				apart(w)
				for range 48 * 20 {
					w.step(3 * time.Minute)
				}
				most := 6
				if count := w.in.Config.Partition.Replicas; count != nil && count.Fixed == 3 {
					count.Fixed, most = 4, 15 // for a rollout, while both pins hold
				}
				writes, rollouts := w.writes, 0
				for range 24 * 20 {
					w.step(3 * time.Minute)
					if w.in.InForce.Rollout != nil {
						rollouts++
					}
					for _, pinned := range []string{"c000", "c001"} {
						at, within := w.in.Pins[pinned]
						within = within && max(w.in.Pins["c000"], w.in.Pins["c001"]) < 3
						row, shard := w.in.InForce.Clusters[pinned].Replica, w.secret(pinned).Shard
						if within && (row != at || shard != discover.ShardValue{State: discover.ShardValid, N: at}) {
							t.Fatalf("%s is pinned to %d; its row is on %d, and its Secret says %+v, in %+v", pinned, at, row, shard, w.in.InForce.Rollout)
						}
					}
				}
				if made := w.writes - writes; made > most || most > 6 && rollouts == 0 {
					t.Errorf("%d plans on the third day, %d cycles of it in a rollout; the two are on %d and %d", made, rollouts, w.in.InForce.Clusters["c000"].Replica, w.in.InForce.Clusters["c001"].Replica)
				}
				if !slices.ContainsFunc(problems(w.last), func(p string) bool { return p == "partition/PinConflict/c001" || p == "discover/PinFollows/c001" }) {
					t.Errorf("people are told %v", problems(w.last))
				}
			})
		}
	}
}

// TestAnEnvThatIsNotSaidIsNotGuessedUnderAPlanThatHoldsNothing: Observe makes its rows anew each cycle, of what the pods say; where they
// said nothing for a while, it took the env for absent, and Hold stamped that.
func TestAnEnvThatIsNotSaidIsNotGuessedUnderAPlanThatHoldsNothing(t *testing.T) {
	w := newLiveWorld(skewed(12)...)
	w.in.Config.Mode = plan.Observe
	w.minutes(5)
	rows := func() map[string]int {
		at := map[string]int{}
		for name, row := range w.in.InForce.Clusters {
			at[name] = row.Replica
		}
		return at
	}
	right := rows()
	w.in.Workload.EnvReplicas, w.in.Workload.EnvUnknown = nil, true
	w.mute = map[int]bool{0: true, 1: true, 2: true}
	w.minutes(5)
	if !slices.Contains(problems(w.last), "discover/EnvUnknown/"+"argocd-application-controller") {
		t.Errorf("people are told %v", problems(w.last))
	}
	w.in.Config.Mode = plan.Hold
	w.minutes(5)
	for name, at := range right {
		if s := w.secret(name).Shard; s.State == discover.ShardValid && s.N != at {
			t.Errorf("%s is owned by %d and was stamped with %d", name, at, s.N)
		}
	}
}

// TestAnAutoscalerThatGoesToAndFroRestartsTheFleetOnce in the modes that restart: the env followed it each time, 23 times a day.
func TestAnAutoscalerThatGoesToAndFroRestartsTheFleetOnce(t *testing.T) {
	w := newLiveWorld(skewed(24)...)
	w.in.Config.Rollout = config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: config.Duration(10 * time.Minute)}
	w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
	w.in.Config.Change, w.in.Config.Failover = config.Default().Change, config.Default().Failover
	w.minutes(120)
	var envs []int
	last := w.in.InForce.ControllerReplicas
	for hour := range 24 {
		w.scaleTo(3 + hour%2)
		for range 60 {
			w.step(time.Minute)
			if env := w.in.InForce.ControllerReplicas; env != last {
				envs, last = append(envs, env), env
			}
		}
		if at := w.in.InForce.Replicas; at != 3+hour%2 {
			t.Errorf("after %d hours the plan has %d replicas, want %d", hour+1, at, 3+hour%2)
		}
	}
	if len(envs) > 1 {
		t.Errorf("the env became %v within a day", envs)
	}
}

package cycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/poll"
	"ballast/planner/sharding"
)

func TestTheFirstPlanIsTheFleetAsItIs(t *testing.T) {
	for _, algorithm := range []sharding.Algorithm{sharding.Legacy, sharding.RoundRobin, sharding.ConsistentHashing} {
		for _, mode := range []plan.Mode{plan.Observe, plan.Hold, plan.Enforce} {
			t.Run(fmt.Sprint(algorithm, " in ", mode), func(t *testing.T) {
				w := newWorld(lognormal(1, 180)...)
				w.in.Config.Mode, w.in.Discovered.Algorithm = mode, string(algorithm)
				w.secret("c007").Shard = discover.ShardValue{State: discover.ShardValid, N: 2}
				w.secret("c008").Shard = discover.ShardValue{State: discover.ShardValid, N: 9} // beyond the replicas: Argo CD takes shard 0
				fleet, _, err := discover.Discover(w.in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, epoch)
				if err != nil {
					t.Fatal(err)
				}
				want, apps := map[string]int{}, map[string]int{}
				for i, c := range fleet.Clusters {
					apps[c.Shard.Server] = 1 + i*i%97
				}
				for i, owner := range sharding.Owners(fleet.Clusters, algorithm, 3, apps) {
					c := fleet.Clusters[i].Shard
					want[c.ID] = owner
					if algorithm == sharding.ConsistentHashing { // only the pods know what it weighs
						key := fmt.Sprintf("%s-%d|%s", w.in.Workload.Name, owner, c.Server)
						w.in.Owners.Samples = append(w.in.Owners.Samples, poll.Sample{Key: key, Value: 1})
					}
				}
				if want["c007"] != 2 || want["c008"] != 0 {
					t.Fatalf("Argo CD's owners of c007 and c008 are %d and %d, the test expects 2 and 0", want["c007"], want["c008"])
				}
				out := w.cycle()
				got := map[string]int{}
				for name, row := range out.Next.Clusters {
					got[name] = row.Replica
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("rows (-Argo CD +plan):\n%s", diff)
				}
				if out.Next.Replicas != 3 || out.Next.ControllerReplicas != 3 || out.Next.MaxReplicas != 16 || out.Next.Rollout != nil {
					t.Errorf("the first plan is %d replicas, env %d, at most %d, rollout %v; want 3, 3, 16, none",
						out.Next.Replicas, out.Next.ControllerReplicas, out.Next.MaxReplicas, out.Next.Rollout)
				}
			})
		}
	}
}

func TestTheOwnerSeenInMetricsComesFirst(t *testing.T) {
	w := newWorld(1, 1, 1)
	w.in.Owners = poll.Fetched{Samples: []poll.Sample{
		{Key: "argocd-application-controller-2|" + server("c000")},
		{Key: "argocd-application-controller-1|" + server("c001")}, {Key: "argocd-application-controller-2|" + server("c001")},
		{Key: "somebody-else-1|" + server("c002")},
	}}
	byHash := standing.Owners(w.in, discover.Fleet{Clusters: fleetOf(t, w).Clusters})
	out := w.cycle()
	if got := out.Next.Clusters["c000"].Replica; got != 2 {
		t.Errorf("c000, which only replica 2 reports, is on %d", got)
	}
	w.in.Owners = poll.Fetched{}
	plain := standing.Owners(w.in, fleetOf(t, w))
	if byHash[1] != plain[1] || byHash[2] != plain[2] {
		t.Errorf("two reporters, or a stranger, decided: %v instead of %v", byHash, plain)
	}
}

func fleetOf(t *testing.T, w *world) discover.Fleet {
	t.Helper()
	fleet, _, err := discover.Discover(w.in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, w.in.Now)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

func TestAnIdleHourWritesNothing(t *testing.T) {
	for _, mode := range []plan.Mode{plan.Observe, plan.Hold, plan.Enforce} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(lognormal(2, 60)...)
			w.in.Config.Mode = mode
			w.run(60) // the fleet's first hour: taken over, voted on, brought to its plan
			before := w.writes
			w.run(60)
			if w.writes != before {
				t.Errorf("an idle hour wrote the plan %d times, last because %q", w.writes-before, w.last.Reason)
			}
		})
	}
}

func TestObserveAndHoldMoveNothing(t *testing.T) {
	for _, mode := range []plan.Mode{plan.Observe, plan.Hold} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(lognormal(3, 40)...)
			w.in.Config.Mode = mode
			w.cycle()
			first := w.in.InForce.Clone()
			w.run(90)
			if !w.in.InForce.SameEnforced(first) {
				t.Errorf("90 minutes of %s changed the plan", mode)
			}
			if mode == plan.Observe && w.secret("c000").Shard.State != discover.ShardAbsent {
				t.Error("Observe stamped a Secret")
			}
			if mode == plan.Hold && w.secret("c000").Shard.N != first.Clusters["c000"].Replica {
				t.Errorf("Hold stamped c000 with %d instead of its owner %d", w.secret("c000").Shard.N, first.Clusters["c000"].Replica)
			}
			if w.last.Candidate == nil || len(w.last.Candidate.Moves) == 0 {
				t.Error("nobody was told what Enforce would move")
			}
		})
	}
}

func TestEnforceComesToTheElectedPlan(t *testing.T) {
	w := newWorld(lognormal(4, 24)...)
	w.cycle()
	before := outcome.Imbalance(w.last.Now)
	if w.in.InForce.Rollout != nil {
		t.Fatal("the first plan began a rollout")
	}
	w.run(8)
	if w.in.InForce.Rollout != nil || w.writes != 1 {
		t.Fatalf("something was decided on %d samples", 9)
	}
	w.run(20)
	if w.in.InForce.Rollout != nil {
		t.Fatalf("the rollout is still in %s", w.in.InForce.Rollout.Stage)
	}
	if after := outcome.Imbalance(w.last.Now); after >= before {
		t.Errorf("makespan over mean went from %.3f to %.3f", before, after)
	}
	if len(w.last.Now) != 3 {
		t.Errorf("%d replicas, want the 3 that were found", len(w.last.Now))
	}
	for name, row := range w.in.InForce.Clusters {
		if got := w.secret(name).Shard; got.State != discover.ShardValid || got.N != row.Replica {
			t.Errorf("Secret %s has shard %+v, the plan says %d", name, got, row.Replica)
		}
	}
	if w.in.Workload.Replicas != w.in.InForce.Replicas || *w.in.Workload.EnvReplicas != fmt.Sprint(w.in.InForce.ControllerReplicas) {
		t.Errorf("the workload has %d replicas, env %s; the plan %d, %d", w.in.Workload.Replicas, *w.in.Workload.EnvReplicas, w.in.InForce.Replicas, w.in.InForce.ControllerReplicas)
	}
}

// Adoption writes present owners first: a number of replicas that changes under an algorithm gives clusters two owners.
func TestNothingBeginsBeforeEverySecretIsStamped(t *testing.T) {
	w := newWorld(lognormal(4, 24)...)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	w.cycle()
	w.secret("c003").Shard = discover.ShardValue{}
	w.run(1)
	if w.in.InForce.Rollout != nil {
		t.Fatal("a rollout began while c003 has no shard")
	}
	if diff := cmp.Diff([]string{"rollout/Unstamped/c003"}, problems(w.last)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	w.run(1)
	if w.in.InForce.Rollout == nil {
		t.Error("no rollout began after c003 was stamped")
	}
}

// A move must be worth it: loads that wobble by a per cent re-deal nothing, and one that doubles does.
func TestAGainOfNextToNothingMovesNothing(t *testing.T) {
	w := newWorld(lognormal(4, 24)...)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	w.run(20)
	before := w.in.InForce.Clone()
	heaviest, other := 0.0, 0.0
	for _, s := range w.in.Fetched[0].Samples {
		heaviest = max(heaviest, s.Value)
	}
	for i := range w.in.Fetched[0].Samples {
		s := &w.in.Fetched[0].Samples[i]
		if s.Value < heaviest {
			other, s.Value = s.Value, s.Value*(1+float64(i%3-1)/200)
		}
	}
	w.run(20)
	if !w.in.InForce.SameEnforced(before) || len(w.last.Candidate.Moves) > 0 {
		t.Errorf("loads that changed by half a per cent moved clusters: %s", w.last.Reason)
	}
	w.setLoad("c000", 20*heaviest+other)
	w.run(20)
	if w.in.InForce.SameEnforced(before) {
		t.Error("a cluster twenty times as heavy as the heaviest moved nothing")
	}
}

func TestAFailedRolloutIsNotTriedAgainAtOnce(t *testing.T) {
	w := newWorld(lognormal(4, 24)...)
	w.run(3)
	w.in.Pins = plan.Pins{"c003": 5}
	w.run(1)
	for w.in.InForce.Rollout != nil { // no pod ever gets ready
		w.in.Workload.ReadyReplicas = min(w.in.Workload.ReadyReplicas, 3)
		w.run(1)
	}
	if w.in.InForce.Replicas != 3 || w.in.Workload.Replicas != 3 {
		t.Fatalf("after the failure the plan has %d replicas and %d stand, want the 3 there were", w.in.InForce.Replicas, w.in.Workload.Replicas)
	}
	w.run(29)
	if w.in.InForce.Rollout != nil {
		t.Error("it was tried again within half an hour")
	}
	if !slices.Contains(problems(w.last), "rollout/HeldOff/") {
		t.Errorf("nobody was told: %v", problems(w.last))
	}
	w.run(2)
	if w.in.InForce.Rollout == nil {
		t.Error("the pin is forgotten after half an hour")
	}
}

func TestALargerEnvIsKept(t *testing.T) {
	w := newWorld(lognormal(4, 24)...)
	env := "16"
	w.in.Workload.EnvReplicas = &env
	for i, s := range w.in.Discovered.Secrets {
		w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: len(s.Name+s.UID) % 3}
	}
	w.run(30)
	if got := *w.in.Workload.EnvReplicas; got != "16" || w.writes < 2 {
		t.Errorf("after %d plans the env is %s, want the 16 it was: changing it restarts every pod", w.writes, got)
	}
}

func TestNothingScalesWhileTheWebhookIsAway(t *testing.T) {
	w := newWorld(lognormal(4, 24)...)
	w.run(3)
	away := false
	w.in.Enforcement = &away
	w.in.Pins = plan.Pins{"c003": 5}
	w.run(20)
	if w.in.InForce.Rollout != nil || w.in.InForce.Replicas != 3 {
		t.Errorf("it scales to %+v", w.in.InForce.Rollout)
	}
	if !slices.Contains(problems(w.last), "rollout/EnforcementDown/") {
		t.Errorf("nobody was told: %v", problems(w.last))
	}
	for _, p := range w.last.Problems {
		if p.Kind == "EnforcementDown" && !strings.HasSuffix(p.Message, "the caBundle of MutatingWebhookConfiguration ballast.argocd") {
			t.Errorf("it names another installation's webhooks: %s", p.Message)
		}
	}
	back := true
	w.in.Enforcement = &back
	w.run(1)
	if r := w.in.InForce.Rollout; r == nil || r.Replicas != 6 {
		t.Errorf("with the webhook back the rollout is %+v, want one to 6", r)
	}
}

func TestWithoutEvidenceNothingMoves(t *testing.T) {
	for name, spoil := range map[string]func(*world){
		"Prometheus is away":            func(w *world) { w.in.Fetched = []poll.Fetched{{Metric: "apps", Err: "connection refused"}} },
		"Prometheus answers nothing":    func(w *world) { w.in.Fetched = []poll.Fetched{{Metric: "apps"}} },
		"half the clusters are missing": func(w *world) { w.in.Fetched[0].Samples = w.in.Fetched[0].Samples[:12] },
		"the total fell by 90 %": func(w *world) {
			for i := range w.in.Fetched[0].Samples {
				w.in.Fetched[0].Samples[i].Value /= 10
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(lognormal(5, 24)...)
			w.run(5)
			before := w.in.InForce.Clone()
			spoil(w)
			w.run(20)
			if !w.in.InForce.SameEnforced(before) {
				t.Errorf("the plan changed: %s", w.last.Reason)
			}
			if !slices.ContainsFunc(w.last.Problems, func(p problem.Problem) bool { return p.Phase == problem.PhasePoll && p.Keeps }) {
				t.Errorf("nobody was told: %v", problems(w.last))
			}
		})
	}
}

// One cluster without data never freezes the rest (hazard 12 of the peer, which stopped its whole pipeline).
func TestOneClusterWithoutDataStopsNobody(t *testing.T) {
	w := newWorld(lognormal(6, 24)...)
	w.in.Fetched[0].Samples = w.in.Fetched[0].Samples[:23]
	w.cycle()
	before := outcome.Imbalance(w.last.Now)
	w.run(30)
	if after := outcome.Imbalance(w.last.Now); after >= before || len(w.last.Candidate.Moves) > 0 || w.in.InForce.Rollout != nil {
		t.Errorf("makespan over mean %.3f after %.3f, still %d moves to make; want the other 23 clusters at the partition's plan", after, before, len(w.last.Candidate.Moves))
	}
}

// An empty or suddenly smaller discovery keeps the plan (hazard 1 of the peer, which scaled to 0).
func TestAShrunkenDiscoveryKeepsThePlan(t *testing.T) {
	for name, left := range map[string]int{"no Secret is found": 0, "a third is found": 8} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(lognormal(7, 24)...)
			w.run(40)
			before, secrets := w.in.InForce.Clone(), w.in.Discovered.Secrets
			w.in.Discovered.Secrets = secrets[:left]
			w.run(29)
			if !w.in.InForce.SameEnforced(before) || w.in.Workload.Replicas != before.Replicas {
				t.Fatalf("the plan changed: %s", w.last.Reason)
			}
			if diff := cmp.Diff([]string{"discover/Shrunk/"}, problems(w.last)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			w.in.Discovered.Secrets = secrets
			w.run(1)
			if !w.in.InForce.SameEnforced(before) {
				t.Errorf("the plan changed when the Secrets were back: %s", w.last.Reason)
			}
		})
	}
}

func TestAPinHoldsAtOnce(t *testing.T) {
	w := newWorld(lognormal(8, 12)...)
	w.in.Config.Mode = plan.Hold
	w.cycle()
	before := w.in.InForce.Clone()
	to := (w.row(t, "c003") + 1) % 3
	w.in.Pins = plan.Pins{"c003": to}
	w.run(1)
	if got := w.in.InForce.Clusters["c003"]; got.Replica != to || !got.Pinned {
		t.Errorf("the pinned cluster's row is %+v, want replica %d, pinned", got, to)
	}
	if got := w.secret("c003").Shard.N; got != to {
		t.Errorf("the pinned cluster's Secret has shard %d, want %d", got, to)
	}
	w.in.Pins = nil
	w.run(1)
	if got := w.in.InForce.Clusters["c003"]; got.Replica != to || got.Pinned {
		t.Errorf("after the pin was taken away the row is %+v, want replica %d still, not pinned", got, to)
	}
	for name, row := range before.Clusters {
		if name != "c003" && w.row(t, name) != row.Replica {
			t.Errorf("%s moved with somebody else's pin", name)
		}
	}
}

func TestAPinBeyondTheReplicasStartsARollout(t *testing.T) {
	w := newWorld(lognormal(9, 12)...)
	w.cycle()
	w.in.Pins = plan.Pins{"c003": 4}
	w.run(1)
	if r := w.in.InForce.Rollout; r == nil || r.Replicas != 5 || r.Stage != plan.Scaling {
		t.Fatalf("the rollout is %+v, want Scaling to 5", r)
	}
	w.run(4)
	if got := w.in.InForce.Clusters["c003"]; got.Replica != 4 || !got.Pinned || w.in.InForce.Replicas != 5 || w.secret("c003").Shard.N != 4 {
		t.Errorf("row %+v of %d replicas, shard %d; want replica 4, pinned, of 5", got, w.in.InForce.Replicas, w.secret("c003").Shard.N)
	}
}

func TestPinsThatDoNotHoldAreReported(t *testing.T) {
	w := newWorld(1, 1, 1)
	w.in.Config.Mode = plan.Hold
	w.in.Pins = plan.Pins{"c000": 99, "c001": 5, "c02": 1}
	w.cycle()
	want := []string{"partition/PinRefused/c000", "partition/PinWaits/c001", "partition/PinUnknown/c02"}
	if diff := cmp.Diff(want, problems(w.last)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestNewClustersMoveNobody(t *testing.T) {
	w := newWorld(lognormal(10, 24)...)
	w.run(40)
	before := w.in.InForce.Clone()
	w.in.Config.Mode = plan.Hold
	w.add("new", 5)
	w.secret("new").Shard = discover.ShardValue{State: discover.ShardValid, N: 1} // the webhook's answer
	w.add("other", 5)                                                             // written while the webhook was away
	w.run(1)
	if got := w.row(t, "new"); got != 1 {
		t.Errorf("the new cluster went to %d, want the shard 1 it has", got)
	}
	view := plan.NewView(before, nil)
	if got, want := w.row(t, "other"), placement.NewArrivals(view).Place(server("other"), -1, nil); got != want {
		t.Errorf("a cluster without a shard went to %d, the webhook would say %d", got, want)
	}
	for name, row := range before.Clusters {
		if w.row(t, name) != row.Replica {
			t.Errorf("%s moved with a new cluster", name)
		}
	}
}

func TestARecreatedOrRenamedSecretKeepsItsReplica(t *testing.T) {
	w := newWorld(lognormal(11, 12)...)
	w.in.Config.Mode = plan.Hold
	w.run(2)
	replica := w.row(t, "c005")
	w.remove("c005")
	w.run(59)
	w.add("c005-renamed", 3)
	s := w.secret("c005-renamed")
	s.Server = server("c005")
	w.run(1)
	if got := w.row(t, "c005-renamed"); got != replica {
		t.Errorf("the renamed Secret of the same server went to %d, want %d", got, replica)
	}
	w.run(60)
	if _, ok := w.in.InForce.Clusters["c005"]; ok {
		t.Error("the row outlived its Secret by more than an hour")
	}
}

func TestABrokenPlanIsMendedFromTheHistory(t *testing.T) {
	w := newWorld(lognormal(12, 24)...)
	w.run(40)
	last := w.in.InForce.Clone()
	w.in.InForce, w.in.Last = nil, &last
	out := Run(w.in)
	if !out.Changed || !out.Next.SameEnforced(last) {
		t.Errorf("the mended plan differs from the last one (changed %v)", out.Changed)
	}
	w.in.Discovered.Secrets = nil // and cannot see the fleet either
	out = Run(w.in)
	if !out.Changed || !out.Next.SameEnforced(last) {
		t.Errorf("the plan mended without a fleet differs from the last one (changed %v)", out.Changed)
	}
}

func TestPausedAndBreakGlassDecideNothing(t *testing.T) {
	for name, set := range map[string]func(*input.Inputs){
		"paused":      func(in *input.Inputs) { in.Paused = true },
		"break-glass": func(in *input.Inputs) { in.BreakGlass = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(lognormal(13, 24)...)
			set(&w.in)
			w.run(40)
			if w.writes != 1 || w.in.InForce.Rollout != nil {
				t.Errorf("the plan was written %d times", w.writes)
			}
		})
	}
}

func TestAWorkloadFoundAtZeroIsBroughtBack(t *testing.T) {
	w := newWorld(lognormal(14, 12)...)
	w.in.Config.Mode = plan.Hold
	w.run(2)
	w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.CurrentReplicas = 0, 0, 0
	w.run(1)
	if w.in.Workload.Replicas != 3 {
		t.Errorf("the workload is at %d replicas, want the plan's 3", w.in.Workload.Replicas)
	}
	fresh := newWorld(1, 1, 1) // and with no plan to go by
	fresh.in.Config.Mode, fresh.in.Workload.Replicas = plan.Hold, 0
	fresh.run(1)
	if fresh.in.InForce.Replicas != 3 || fresh.in.Workload.Replicas != 3 {
		t.Errorf("a workload first seen at 0 is planned at %d and stands at %d, want its env's 3", fresh.in.InForce.Replicas, fresh.in.Workload.Replicas)
	}
}

func TestReplicasOfTheWorkloadAreFollowed(t *testing.T) {
	w := newWorld(lognormal(15, 24)...)
	w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
	w.run(5)
	w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.UpdatedReplicas, w.in.Workload.CurrentReplicas = 2, 2, 2, 2
	w.run(6)
	if !w.in.InForce.FreeReplicas || w.in.InForce.Replicas != 2 || w.in.InForce.Rollout != nil {
		t.Fatalf("the plan has %d replicas (free: %v, rollout %v), want the workload's 2", w.in.InForce.Replicas, w.in.InForce.FreeReplicas, w.in.InForce.Rollout)
	}
	for name, row := range w.in.InForce.Clusters {
		if row.Replica > 1 || w.secret(name).Shard.N != row.Replica {
			t.Errorf("%s is planned on %d, has shard %d", name, row.Replica, w.secret(name).Shard.N)
		}
	}
}

func TestSecretsOfOneServerShareAReplica(t *testing.T) {
	w := newWorld(lognormal(16, 12)...)
	w.in.Config.Mode = plan.Hold
	w.run(1)
	w.add("twin", 0)
	w.secret("twin").Server = server("c004") + "/"
	w.secret("twin").Shard = discover.ShardValue{State: discover.ShardValid, N: (w.row(t, "c004") + 1) % 3}
	w.run(2)
	if a, b := w.row(t, "c004"), w.row(t, "twin"); a != b {
		t.Errorf("two Secrets of one server are on %d and %d", a, b)
	}
	to := (w.row(t, "c004") + 1) % 3
	w.in.Pins = plan.Pins{"twin": to}
	w.run(1)
	if a, b := w.row(t, "c004"), w.row(t, "twin"); a != to || b != to {
		t.Errorf("with one of them pinned to %d they are on %d and %d", to, a, b)
	}
}

// A Secret whose shard is odd halts the peer (hazard 8); here it is reported and written over.
func TestOddShardsAreMended(t *testing.T) {
	w := newWorld(lognormal(17, 12)...)
	w.in.Config.Mode = plan.Hold
	w.secret("c001").Shard = discover.ShardValue{State: discover.ShardInvalid}
	w.secret("c002").Shard = discover.ShardValue{State: discover.ShardNegative}
	w.secret("c003").Shard = discover.ShardValue{State: discover.ShardTooLarge}
	w.run(2)
	for _, name := range []string{"c001", "c002", "c003"} {
		if got := w.secret(name).Shard; got.State != discover.ShardValid || got.N != w.row(t, name) {
			t.Errorf("%s has shard %+v, the plan says %d", name, got, w.row(t, name))
		}
	}
}

// Whatever happens in whatever order, no plan goes below one replica or beyond maxReplicas, no row lies outside the
// replicas while no rollout is under way, and the same inputs give the same plan, also after a journey through JSON.
func TestEveryPlanIsSafeAndReplays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(lognormal(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 30).Draw(rt, "clusters"))...)
		w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
		for range rapid.IntRange(1, 25).Draw(rt, "cycles") {
			disturb(rt, w)
			w.in.Now = w.in.Now.Add(time.Duration(rapid.IntRange(0, 900).Draw(rt, "seconds")) * time.Second)
			replay := Run(clone(t, w.in))
			out := w.cycle()
			if diff := cmp.Diff(text(rt, out.Next), text(rt, replay.Next)); diff != "" || out.Reason != replay.Reason {
				rt.Fatalf("the replay differs (-first +replay): %q, %q\n%s", out.Reason, replay.Reason, diff)
			}
			checkSafe(rt, w)
		}
	})
}

// text is the plan as it would be written, at a revision that the store would give.
func text(rt *rapid.T, p plan.Plan) string {
	p.Revision = max(p.Revision, 1)
	s, err := codec.Encode(p)
	if err != nil {
		rt.Fatal(err)
	}
	return s
}

func disturb(rt *rapid.T, w *world) {
	names := slices.Sorted(maps.Keys(rowsInForce(w.in)))
	switch rapid.IntRange(0, 9).Draw(rt, "disturbance") {
	case 0:
		w.in.Config.Mode = rapid.SampledFrom([]plan.Mode{plan.Observe, plan.Hold, plan.Enforce}).Draw(rt, "mode")
	case 1:
		if len(names) > 0 {
			w.in.Pins = plan.Pins{rapid.SampledFrom(names).Draw(rt, "pin"): rapid.IntRange(0, 20).Draw(rt, "replica")}
		}
	case 2:
		w.add(fmt.Sprintf("n%06d", rapid.IntRange(0, 999_999).Draw(rt, "new")), float64(rapid.IntRange(0, 500).Draw(rt, "load")))
	case 3:
		if len(w.in.Discovered.Secrets) > 1 {
			w.remove(w.in.Discovered.Secrets[rapid.IntRange(0, len(w.in.Discovered.Secrets)-1).Draw(rt, "gone")].Name)
		}
	case 4:
		w.in.Workload.Replicas = rapid.IntRange(0, 5).Draw(rt, "scaled")
		w.in.Workload.ReadyReplicas = min(w.in.Workload.ReadyReplicas, w.in.Workload.Replicas)
	case 5:
		w.in.Workload.ReadyReplicas = rapid.IntRange(0, w.in.Workload.Replicas).Draw(rt, "ready")
	case 6:
		w.in.Fetched[0].Err = rapid.SampledFrom([]string{"", "timeout"}).Draw(rt, "err")
	case 7:
		for _, s := range w.in.Discovered.Secrets {
			w.setLoad(s.Name, float64(rapid.IntRange(0, 300).Draw(rt, "load")))
		}
	}
}

// rowsInForce are the plan's rows, if there is a plan.
func rowsInForce(in input.Inputs) map[string]plan.Row {
	if in.InForce == nil {
		return nil
	}
	return in.InForce.Clusters
}

func checkSafe(rt *rapid.T, w *world) {
	p := w.in.InForce
	if p == nil {
		return
	}
	if p.Replicas < 1 || p.Replicas > p.MaxReplicas {
		rt.Fatalf("the plan has %d replicas of 1 to %d", p.Replicas, p.MaxReplicas)
	}
	if err := p.Validate(); err != nil {
		rt.Fatal(err)
	}
	for name, row := range p.Clusters {
		if p.Mode.Enforced() && p.Rollout == nil && row.Replica >= max(p.Replicas, 1) {
			rt.Fatalf("%s is on replica %d of %d", name, row.Replica, p.Replicas)
		}
	}
}

// TestWhatPodsSayComesFirst: c000 to c003 are asked for by Prometheus and of the pods themselves.
func TestWhatPodsSayComesFirst(t *testing.T) {
	w := newWorld(1, 1, 1, 1)
	w.in.Owners = poll.Fetched{Samples: []poll.Sample{
		{Key: "argocd-application-controller-0|" + server("c000")}, {Key: "argocd-application-controller-0|" + server("c001")},
		{Key: "argocd-application-controller-0|" + server("c002")}, {Key: "argocd-application-controller-0|" + server("c003")},
	}}
	w.in.Observed.Reported.Clusters = map[string]ownership.ClusterObservation{
		"c000": {Owners: []int{2}}, "c001": {Owners: []int{1, 2}}, "c002": {Owners: []int{plan.NoReplica}},
	}
	fleet := fleetOf(t, w)
	got := map[string]int{}
	for i, owner := range standing.Owners(w.in, fleet) {
		got[fleet.Clusters[i].Shard.ID] = owner
	}
	if diff := cmp.Diff(map[string]int{"c000": 2, "c001": 0, "c002": 0, "c003": 0}, got, cmpopts.IgnoreMapEntries(func(name string, _ int) bool { return name[0] != 'c' })); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

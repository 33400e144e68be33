package cycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/sizing"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// crampedWorld is a fleet at rest of which replica 1, with four clusters, is to have 9Gi since c002 has five applications; its node has no
// room beside the 5Gi of its pod.
func crampedWorld(t *testing.T) (*liveWorld, *nodes) {
	t.Helper()
	w, n := sizedLive(t, 0, 0, 1, 1, 1, 1, 2, 2)
	w.in.Pins = nil
	n.resize[1] = observed.ResizeInfeasible
	w.setLoad("c002", 5)
	w.in.Config.Size.MoveAway = &config.MoveAway{After: config.Duration(time.Hour)}
	w.step(30 * time.Second)
	w.step(30 * time.Second)
	if size, _ := w.in.InForce.SizeOf(1); size.Requests["memory"] != "9Gi" || n.memory(1) != "5Gi" {
		t.Fatalf("the plan has %v, the pod %s", size, n.memory(1))
	}
	return w, n
}

// at is which replica each cluster has by its Secret.
func (w *liveWorld) at() map[string]int {
	on := map[string]int{}
	for _, s := range w.in.Discovered.Secrets {
		on[s.Name] = s.Shard.N
	}
	return on
}

// steps lets so much time pass.
func (w *liveWorld) steps(d time.Duration) {
	for end := w.in.Now.Add(d); w.in.Now.Before(end); {
		w.step(30 * time.Second)
	}
}

// After an hour the cluster leaves that makes the difference, with a receiver that grew for it; for a day nothing comes back.
func TestClustersLeaveAReplicaWhoseNodeHasNoRoom(t *testing.T) {
	w, n := crampedWorld(t)
	want := w.at()
	w.steps(55 * time.Minute)
	if diff := cmp.Diff(want, w.at()); diff != "" {
		t.Errorf("within the hour (-want +got):\n%s", diff)
	}
	out := w.until(t, "clusters leave it", 10*time.Minute, func(outcome.Outcome) bool { return w.in.InForce.Rollout != nil })
	const why = "moves 1 cluster off replica 1: the node has had no room for its size for 1h0m0s (size.moveAway)"
	if !strings.HasPrefix(out.Reason, why) || out.Memory.Changes.Cause != change.Balance {
		t.Errorf("the plan says %q, for %s; want %q", out.Reason, out.Memory.Changes.Cause, why)
	}
	w.steps(10 * time.Minute)
	want["c002"] = 0
	if diff := cmp.Diff(want, w.at()); diff != "" || w.in.InForce.Rollout != nil {
		t.Errorf("afterwards (-want +got):\n%s\nunder way: %+v", diff, w.in.InForce.Rollout)
	}
	if n.memory(0) != "8Gi" {
		t.Errorf("its new owner has %s", n.memory(0))
	}
	w.steps(3 * time.Hour)
	if full := sizing.Cramped(w.in); !full[1] {
		t.Error("what levels may come back to it")
	}
	w.in.Now = w.in.Now.Add(24 * time.Hour)
	w.step(30 * time.Second)
	w.step(30 * time.Second)
	if full := sizing.Cramped(w.in); full[1] {
		t.Error("a day later nothing is levelled to it")
	}
	if diff := cmp.Diff(want, w.at()); diff != "" {
		t.Errorf("a day later (-want +got):\n%s", diff)
	}
}

// Where nobody asks for it, moves may not be made, or none would help, clusters stay; what cannot be is told.
func TestClustersStayOnAReplicaWhoseNodeHasNoRoom(t *testing.T) {
	const none = "the node of replica 1 has had no room for its size for 1h0m0s, and no cluster can leave it: it has one alone, " +
		"those that it has are fixed, or no other replica has room"
	for name, test := range map[string]struct {
		change func(*liveWorld, *nodes)
		told   string
	}{
		"nobody asks for it": {func(w *liveWorld, _ *nodes) { w.in.Config.Size.MoveAway = nil }, ""},
		"moves are off":      {func(w *liveWorld, _ *nodes) { w.in.Config.Change.Moves.Mode = change.Off }, ""},
		"it is frozen":       {func(w *liveWorld, _ *nodes) { w.in.Paused = true }, ""},
		"a person went back to an earlier plan lately": {func(w *liveWorld, _ *nodes) {
			w.in.Config.Evaluate = config.Evaluate{CostBenefit: &config.CostBenefit{Horizon: config.Duration(24 * time.Hour)}}
			w.in.Config.Partition.Capacity = ptr.To(config.Decimal("5")) // nothing is levelled
			w.in.Memory.Savings.Back = w.in.Now
		}, ""},
		"clusters left it lately": {func(w *liveWorld, _ *nodes) {
			w.in.Memory.Sizes.Cramped = map[int]memory.Cramped{1: {Since: w.in.Now.Add(-2 * time.Hour), Left: w.in.Now.Add(-time.Hour), Has: 55}}
		}, ""},
		"all are pinned": {func(w *liveWorld, _ *nodes) {
			w.in.Pins = plan.Pins{"c002": 1, "c003": 1, "c004": 1, "c005": 1}
		}, none},
		"no node has room": {func(w *liveWorld, n *nodes) {
			n.resize[0], n.resize[2] = observed.ResizeInfeasible, observed.ResizeDeferred
			w.setLoad("c000", 3)
			w.setLoad("c006", 3)
		}, none},
		"the others may not grow": {func(w *liveWorld, _ *nodes) {
			w.in.Config.Change.Up = off
		}, strings.Replace(none, "it has one alone, those that it has are fixed, or no other replica has room",
			"replica 0 may not grow now for what would come to it (change.up: UpdatePolicy)", 1)},
		"beyond what a person says that one carries": {func(w *liveWorld, _ *nodes) {
			w.in.Config.Partition.Capacity = ptr.To(config.Decimal("0.8")) // a replica has 0.25, and 0.625 is to leave
		}, none},
		"the others would carry more": {func(w *liveWorld, _ *nodes) {
			w.in.Pins = plan.Pins{"c003": 1, "c004": 1, "c005": 1}
			w.setLoad("c000", 3)
			w.setLoad("c006", 3)
		}, none},
	} {
		t.Run(name, func(t *testing.T) {
			w, n := crampedWorld(t)
			test.change(w, n)
			w.step(30 * time.Second)
			before, told := w.at(), ""
			w.steps(3 * time.Hour)
			for _, p := range w.last.Problems {
				if p.Subject == "size.moveAway" && strings.Contains(p.Message, "replica 1 ") {
					told = p.Message
				}
			}
			if diff := cmp.Diff(before, w.at()); diff != "" || told != test.told {
				t.Errorf("told %q, want %q; clusters (-before +after):\n%s", told, test.told, diff)
			}
		})
	}
}

// Up to a written capacity clusters go to other replicas.
func TestClustersLeaveACrampedReplicaWithinTheCapacity(t *testing.T) {
	w, _ := crampedWorld(t)
	w.in.Config.Partition.Capacity = ptr.To(config.Decimal("0.9")) // a replica has 0.25, and 0.625 is to leave
	want := w.at()
	want["c002"] = 0
	w.steps(90 * time.Minute)
	if diff := cmp.Diff(want, w.at()); diff != "" {
		t.Errorf("after an hour and a half (-want +got):\n%s", diff)
	}
}

// A rollout that ends before anything left, since its receiver's node has no room, either, is tried again after two hours.
func TestATryThatEndsAtOnceIsMadeAgain(t *testing.T) {
	w, n := crampedWorld(t)
	n.resize[0], n.resize[2] = observed.ResizeInfeasible, observed.ResizeInfeasible // both have what they need by now
	want := w.at()
	underWay := func(outcome.Outcome) bool { return w.in.InForce.Rollout != nil }
	w.until(t, "a rollout for it begins", 70*time.Minute, underWay)
	w.until(t, "it ends", 5*time.Minute, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil })
	ended := w.in.Now
	if diff := cmp.Diff(want, w.at()); diff != "" {
		t.Fatalf("of a node without room (-want +got):\n%s", diff)
	}
	delete(n.resize, 0)
	w.until(t, "it is tried again", 3*time.Hour, underWay)
	if waited := w.in.Now.Sub(ended).Round(time.Minute); waited != 2*time.Hour {
		t.Errorf("it was tried again after %s, want 2h", waited)
	}
	w.steps(10 * time.Minute)
	want["c002"] = 0
	if diff := cmp.Diff(want, w.at()); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	if full := sizing.Cramped(w.in); !full[1] {
		t.Error("what levels may come back to it")
	}
}

// What is pinned stays, the lighter ones leave in its place, and the last one stays, too.
func TestWhatIsPinnedDoesNotLeaveACrampedReplica(t *testing.T) {
	w, _ := crampedWorld(t)
	w.in.Pins = plan.Pins{"c002": 1}
	w.steps(90 * time.Minute)
	left := map[string]bool{}
	for name, at := range w.at() {
		if at == 1 {
			left[name] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"c002": true}, left); diff != "" {
		t.Errorf("on replica 1 (-want +got):\n%s", diff)
	}
}

// Whatever stands on a replica whose node has no room: only clusters of it leave, no pinned one, one stays at least, no receiver carries as
// much as it did, and together they are no more than what makes the difference but for the last one.
func TestWhatLeavesACrampedReplicaKeepsToTheRules(t *testing.T) {
	const rounding = 0.001
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(3, 9).Draw(rt, "clusters")
		loads, at := make([]float64, n), make([]int, n)
		for i := range n {
			loads[i], at[i] = float64(rapid.IntRange(1, 9).Draw(rt, "load")), rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(rt, "at")
		}
		w, _ := sizedLive(t, at...)
		w.in.Pins = plan.Pins{}
		for i := range n {
			name := w.in.Discovered.Secrets[i].Name
			if w.setLoad(name, loads[i]); rapid.IntRange(0, 4).Draw(rt, "pinned") == 0 {
				w.in.Pins[name] = at[i]
			}
		}
		w.steps(2 * time.Minute)
		has := rapid.IntRange(0, 99).Draw(rt, "has")
		w.in.Config.Size.MoveAway = &config.MoveAway{After: config.Duration(time.Hour)}
		w.in.Memory.Sizes.Cramped = map[int]memory.Cramped{1: {Since: w.in.Now.Add(-2 * time.Hour), Has: has}}
		carries, lightest := map[int]float64{}, 0.0
		before := w.at()
		for i := range n {
			carries[before[w.in.Discovered.Secrets[i].Name]] += loads[i]
		}
		most, left, on := carries[1], 0.0, 0
		out := w.step(30 * time.Second)
		for i := range n {
			name := w.in.Discovered.Secrets[i].Name
			to, goes := out.Memory.Changes.Target[name]
			if goes = goes && out.Next.Rollout != nil && to != before[name]; !goes {
				if before[name] == 1 {
					on++
				}
				continue
			}
			if _, pinned := w.in.Pins[name]; pinned || before[name] != 1 {
				rt.Errorf("%s goes from %d to %d, pinned %t", name, before[name], to, pinned)
			}
			if carries[to] += loads[i]; carries[to] > most+rounding {
				rt.Errorf("replica %d carries %.0f then, and replica 1 carried %.0f", to, carries[to], most)
			}
			if left += loads[i]; lightest == 0 || loads[i] < lightest {
				lightest = loads[i]
			}
		}
		goal := most * float64(100-has) / 100
		if left > 0 && (on == 0 || left-lightest > goal+rounding) {
			rt.Errorf("%.0f of %.0f leave, the lightest %.0f of it, where %.1f are enough; %d clusters stay", left, most, lightest, goal, on)
		}
	})
}

package diff

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/observed/fixture"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

// grows is a wave that moves b from replica 1 to 2, which is to have 4Gi of memory and one core; its pod asks for that and has 1Gi.
func grows(change func(*plan.Plan, *observed.State)) (plan.Plan, observed.State) {
	p := fixture.Growing(plan.Moving, fixture.Moved)
	p.Sizes = &plan.Sizes{Replicas: map[int]plan.Resources{2: {Requests: amounts{"cpu": "1", "memory": "4Gi"}, Limits: amounts{"memory": "8Gi"}}}}
	seen := fixture.Fit(3, 16, fixture.Old)
	asks := plan.Resources{Requests: amounts{"cpu": "1", "memory": "4Gi"}, Limits: amounts{"memory": "8Gi"}}
	has := plan.Resources{Requests: amounts{"cpu": "1", "memory": "1Gi"}, Limits: amounts{"memory": "2Gi"}}
	seen.Pods[2].Name, seen.Pods[2].Size = "c-2", &observed.Size{Asks: podspec.Size{Controller: asks}, Has: has}
	if change != nil {
		change(&p, &seen)
	}
	return p, seen
}

var grown = plan.Resources{Requests: amounts{"cpu": "1", "memory": "4Gi"}, Limits: amounts{"memory": "8Gi"}}

func TestAClusterWaitsUntilItsReplicaIsLarger(t *testing.T) {
	moves := Result{Steps: []Step{PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Moved}}}
	waits := func(words string) Result {
		return Result{Held: []Held{{Secret: "b", Reason: HeldUnsized, Shard: 2, Words: `pod "c-2" has not got its size: ` + words}}}
	}
	for name, test := range map[string]struct {
		change func(*plan.Plan, *observed.State)
		after  time.Duration
		o      Options
		want   Result
	}{
		"the node has not said":      {want: waits("Asked")},
		"the node is at it":          {change: func(_ *plan.Plan, s *observed.State) { s.Pods[2].Size.Resize = observed.ResizeInProgress }, want: waits("InProgress")},
		"the node has no room":       {change: func(_ *plan.Plan, s *observed.State) { s.Pods[2].Size.Resize = observed.ResizeDeferred }, want: waits("Deferred")},
		"just before the bound":      {after: GrowsWithin - time.Second, want: waits("Asked")},
		"after the bound":            {after: GrowsWithin, want: moves},
		"it is larger":               {change: func(_ *plan.Plan, s *observed.State) { s.Pods[2].Size.Has = grown }, want: moves},
		"a node that says nothing":   {change: func(_ *plan.Plan, s *observed.State) { s.Pods[2].Size.Has = plan.Resources{} }, want: moves},
		"a node that rounds cpu":     {change: func(_ *plan.Plan, s *observed.State) { s.Pods[2].Size.Has = withCPU(grown, "999m") }, want: moves},
		"no pod":                     {change: func(_ *plan.Plan, s *observed.State) { s.Pods = s.Pods[:2] }, want: moves},
		"the old owner does not run": {change: func(_ *plan.Plan, s *observed.State) { s.Pods[1].Ready = false }, want: moves},
		"a way back":                 {change: func(p *plan.Plan, _ *observed.State) { p.Rollout.Stage = plan.Reverting }, want: moves},
		"another cluster drifted": {change: func(p *plan.Plan, s *observed.State) {
			p.Rollout.Moves, p.Rollout.Was = nil, nil
		}, want: Result{Steps: []Step{PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Drifted}}}},
		"a pod that restarts for it": {change: func(_ *plan.Plan, s *observed.State) {
			s.Pods[2].Size = &observed.Size{Asks: podspec.Size{Controller: s.Pods[2].Size.Has}, Restarts: []string{"memory"}}
		}, want: Result{Steps: moves.Steps, Held: []Held{{Reason: HeldRestarts, Pod: "c-2",
			Words: "its resizePolicy restarts the container for memory: take that out of the pod template; it gets its size when it is made anew"}}}},
		"a pod that the API server refuses to size": {change: func(_ *plan.Plan, s *observed.State) {
			s.Pods[2].Size = &observed.Size{Asks: podspec.Size{Controller: s.Pods[2].Size.Has}}
		}, o: Options{Refused: map[string]string{"c-2": "quota"}}, want: Result{Steps: append([]Step{PatchPod{Pod: "c-2", Replica: 2,
			Size: plan.Resources{Requests: amounts{"memory": "4Gi"}, Limits: amounts{"memory": "8Gi"}},
			Was:  plan.Resources{Requests: amounts{"memory": "1Gi"}, Limits: amounts{"memory": "2Gi"}}, Why: Sized}}, moves.Steps...)}},
	} {
		t.Run(name, func(t *testing.T) {
			p, seen := grows(test.change)
			test.o.Now = fixture.Start.Add(test.after)
			if diff := cmp.Diff(test.want, Between(plan.NewView(p, nil), seen, test.o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// withCPU is a size with another request of cpu.
func withCPU(r plan.Resources, cpu string) plan.Resources {
	return plan.Resources{Requests: amounts{"cpu": cpu, "memory": r.Requests["memory"]}, Limits: r.Limits}
}

// One resource that waits for a new pod keeps no other from changing, and is said to be left.
func TestWhatARunningPodCannotBeGivenIsLeft(t *testing.T) {
	shards := fixture.Shards{"a": 0, "b": 1, "c": 1}
	p := fixture.Plan(2, 16, shards)
	p.Sizes = &plan.Sizes{Replicas: map[int]plan.Resources{1: {Requests: amounts{"cpu": "2", "memory": "2Gi"}, Limits: amounts{"cpu": "2", "memory": "2Gi"}}}}
	for name, test := range map[string]struct {
		has   observed.Size
		o     Options
		steps []string
		held  []HeldReason
		left  plan.Resources
	}{
		"a lower memory limit": {has: asking("1", "4Gi", "4", "8Gi"), o: Options{KeepsLimits: true},
			steps: []string{"size of c-1: limits.cpu=2 requests.cpu=2 requests.memory=2Gi (Sized)"}, held: []HeldReason{HeldKeepsLimit},
			left: plan.Resources{Limits: amounts{"memory": "2Gi"}}},
		"of a pod whose requests are its limits": {has: asking("1", "8Gi", "1", "8Gi"), o: Options{KeepsLimits: true},
			steps: []string{"size of c-1: limits.cpu=2 requests.cpu=2 (Sized)"}, held: []HeldReason{HeldKeepsLimit},
			left: plan.Resources{Requests: amounts{"memory": "2Gi"}, Limits: amounts{"memory": "2Gi"}}},
		"a higher one": {has: beside(asking("1", "1Gi", "4", "1536Mi")), o: Options{KeepsLimits: true},
			steps: []string{"size of c-1: limits.cpu=2 limits.memory=2Gi requests.cpu=2 requests.memory=2Gi (Sized)"}},
		"an API server that lowers it": {has: beside(asking("1", "4Gi", "4", "8Gi")),
			steps: []string{"size of c-1: limits.cpu=2 limits.memory=2Gi requests.cpu=2 requests.memory=2Gi (Sized)"}},
		"memory restarts the container": {has: restarting(asking("1", "4Gi", "4", "8Gi"), "memory"),
			steps: []string{"size of c-1: limits.cpu=2 requests.cpu=2 (Sized)"}, held: []HeldReason{HeldRestarts},
			left: plan.Resources{Requests: amounts{"memory": "2Gi"}, Limits: amounts{"memory": "2Gi"}}},
		"both do": {has: restarting(asking("1", "4Gi", "4", "8Gi"), "memory", "cpu"), held: []HeldReason{HeldRestarts, HeldRestarts},
			left: plan.Resources{Requests: amounts{"cpu": "2", "memory": "2Gi"}, Limits: amounts{"cpu": "2", "memory": "2Gi"}}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := fixture.Fit(2, 16, shards)
			seen.Pods[1].Name, seen.Pods[1].Size = "c-1", &test.has
			got := Between(plan.NewView(p, nil), seen, test.o)
			var steps []string
			for _, s := range got.Steps {
				steps = append(steps, s.String())
			}
			var held []HeldReason
			for _, h := range got.Held {
				held = append(held, h.Reason)
			}
			if diff := cmp.Diff(test.steps, steps) + cmp.Diff(test.held, held); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var left plan.Resources
			for _, u := range Unmets(p, seen.Pods, false, test.o) {
				left = u.Left
			}
			if diff := cmp.Diff(test.left, left); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

// asking is what a pod of one container asks for.
func asking(cpu, memory, cpuLimit, memoryLimit string) observed.Size {
	return observed.Size{Asks: podspec.Size{Controller: plan.Resources{Requests: amounts{"cpu": cpu, "memory": memory}, Limits: amounts{"cpu": cpuLimit, "memory": memoryLimit}}}}
}

// beside is with a container that has no limits: the pod is never Guaranteed.
func beside(s observed.Size) observed.Size {
	s.Asks.Others = []plan.Resources{{}}
	return s
}

func restarting(s observed.Size, resources ...string) observed.Size {
	s.Restarts = resources
	return s
}

// Where a pod is to grow it comes first, and what is done for it in one look is done before any Secret is written.
func TestPodsComeBeforeSecrets(t *testing.T) {
	p, seen := grows(func(_ *plan.Plan, s *observed.State) { s.Pods[2].Size.Asks.Controller = s.Pods[2].Size.Has })
	var steps []string
	for _, s := range Between(plan.NewView(p, nil), seen, Options{Now: fixture.Start.Add(GrowsWithin)}).Steps {
		steps = append(steps, s.String())
	}
	want := []string{"size of c-2: limits.memory=8Gi requests.memory=4Gi (Sized)", "shard of b: 1 -> 2 (Moved)"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A pod whose size is refused since its node has less to give is as one whose node says so; any other refusal is nobody's to wait for.
func TestARefusalForTheNodesRoomIsNoRoom(t *testing.T) {
	p, seen := grows(func(_ *plan.Plan, s *observed.State) { s.Pods[2].Size.Asks.Controller = s.Pods[2].Size.Has })
	refused := map[string]string{"c-2": "Forbidden"}
	for name, test := range map[string]struct {
		o      Options
		state  PodState
		noRoom bool
	}{
		"for its node's room": {Options{Refused: refused, Roomless: map[string]bool{"c-2": true}}, PodInfeasible, true},
		"by a quota":          {Options{Refused: refused}, PodRefused, false},
		"not any more":        {Options{Roomless: map[string]bool{"c-2": true}}, PodAsked, false},
	} {
		all := Unmets(p, seen.Pods, false, test.o)
		if len(all) != 1 || all[0].State != test.state || all[0].NoRoom() != test.noRoom {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// A resize that the node refused, since the memory in use is above the new limit, is shown in its words. What is to grow is waited for;
// what is to shrink has enough, and keeps no cluster waiting.
func TestAResizeThatFailedIsWaitedForWhereThePodIsToGrow(t *testing.T) {
	const words = "memory limit is below current usage"
	small := plan.Resources{Requests: amounts{"cpu": "1", "memory": "1Gi"}, Limits: amounts{"memory": "2Gi"}}
	larger := plan.Resources{Requests: amounts{"cpu": "1", "memory": "8Gi"}, Limits: amounts{"memory": "16Gi"}}
	for name, test := range map[string]struct {
		has   plan.Resources
		short bool
	}{"to grow": {small, true}, "to shrink": {larger, false}} {
		p, seen := grows(func(_ *plan.Plan, s *observed.State) {
			s.Pods[2].Size.Has, s.Pods[2].Size.Resize, s.Pods[2].Size.Message = test.has, observed.ResizeFailed, words
		})
		want := []Unmet{{Replica: 2, Pod: "c-2", State: PodFailed, Short: test.short, Words: words}}
		got := Unmets(p, seen.Pods, false, Options{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
			continue
		}
		if got[0].Coming() != test.short || got[0].NoRoom() {
			t.Errorf("%s: coming %t, no room %t", name, got[0].Coming(), got[0].NoRoom())
		}
	}
}

package resize

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/cycle/resize/wish"
	"ballast/planner/cycle/track"
	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

var epoch = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// fleet is sizes over time: each run is a cycle, a minute after the last one.
type fleet struct {
	question.Question
	last Answer
}

// newFleet has so many replicas that request 1Gi and 100Mi of memory for each application. The template has 1Gi, and a limit of twice
// that.
func newFleet(replicas int) *fleet {
	return &fleet{Question: question.Question{Now: epoch, Replicas: replicas,
		Size: config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
			{List: config.Requests, Resource: "memory", Base: "1Gi"},
			{Name: "apps", List: config.Requests, Resource: "memory", Slope: "100Mi", Input: "apps"},
		}}}},
		Plan: plan.Plan{Revision: 1, Mode: plan.Enforce, Replicas: replicas, ControllerReplicas: 16, MaxReplicas: 16,
			Target: plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "controller", Container: "controller"}},
		Template: &plan.Resources{Requests: map[string]string{"memory": "1Gi"}, Limits: map[string]string{"memory": "2Gi"}},
		Readings: map[string]size.Reading{"apps": {Replica: map[int]float64{}}},
		Memory:   memory.Sizes{Peaks: seenInUse(replicas)},
	}}
}

// seenInUse are peaks of next to nothing: limits shrink where something was seen in use.
func seenInUse(replicas int) map[int]track.Peak {
	peaks := map[int]track.Peak{}
	for r := range replicas {
		peaks[r] = track.Peak{Bytes: 64 << 20, At: epoch}
	}
	return peaks
}

// run is one cycle with so many applications on each replica.
func (f *fleet) run(apps ...float64) Answer {
	for replica, n := range apps {
		f.Readings["apps"].Replica[replica] = n
	}
	f.Now = f.Now.Add(time.Minute)
	f.last = Decide(f.Question)
	f.Plan.Sizes, f.Plan.Resources, f.Memory = f.last.Sizes, f.last.Resources, f.last.Memory
	return f.last
}

// runs is that many cycles.
func (f *fleet) runs(n int, apps ...float64) {
	for range n {
		f.run(apps...)
	}
}

// memory is what each replica is held at: request and limit.
func (f *fleet) memory() (all [][2]string) {
	for r := range f.Replicas {
		held, _ := f.Plan.SizeOf(r)
		all = append(all, [2]string{held.Requests["memory"], held.Limits["memory"]})
	}
	return all
}

func (f *fleet) blocks() (all []string) {
	for _, b := range f.last.Sizing.Blocked {
		all = append(all, fmt.Sprintf("%d %s %s %s->%s", b.Replica, b.Direction, b.Reason, b.From, b.To))
	}
	return all
}

func wants(t *testing.T, f *fleet, when string, want ...[2]string) {
	t.Helper()
	if diff := cmp.Diff(want, f.memory()); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nblocked %v, problems %v", when, diff, f.blocks(), f.last.Problems)
	}
}

// The window up holds the whole growth back, whether or not the container has a limit: the wishes at rest are its request's, too.
func TestTheWindowUpHoldsARequestThatHasALimit(t *testing.T) {
	f := newFleet(1)
	f.Change.Up.StabilizationWindow = config.Duration(10 * time.Minute)
	f.runs(30, 10)
	wants(t, f, "at rest", [2]string{"2024Mi", "4048Mi"})
	f.runs(9, 40)
	wants(t, f, "within the window", [2]string{"2024Mi", "4048Mi"})
	if diff := cmp.Diff([]string{"0 up StabilizationWindow 2024Mi->5Gi"}, f.blocks()); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	f.runs(3, 40)
	wants(t, f, "after it", [2]string{"5024Mi", "10048Mi"})
}

// What grew step by step is let through as far as all wishes of the window went, the limit no further than its own.
func TestTheLimitGrowsNoFurtherThanItsWishes(t *testing.T) {
	f := newFleet(1)
	f.Change.Up.StabilizationWindow = config.Duration(10 * time.Minute)
	f.runs(30, 10)
	f.runs(6, 30)
	f.runs(6, 60)
	wants(t, f, "10 minutes after the first step", [2]string{"4024Mi", "8048Mi"})
	f.runs(6, 60)
	wants(t, f, "10 minutes after the second one", [2]string{"7024Mi", "14048Mi"})
}

// A receiver that grew at once does not shrink while delayScaleUp keeps its rule from growing.
func TestAReceiverDoesNotShrinkBeforeItsDelayIsOver(t *testing.T) {
	f := newFleet(2)
	f.Size.Policies[0].Rules[1].DelayScaleUp = &config.SizeDelay{DelaySeconds: 900}
	f.runs(20, 10, 10)
	wants(t, f, "at rest", [2]string{"2024Mi", "4048Mi"}, [2]string{"2024Mi", "4048Mi"})
	f.Receivers = map[int]bool{1: true}
	f.run(10, 40)
	wants(t, f, "as a receiver", [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"})
	f.Receivers = nil
	for range 40 {
		f.run(10, 40)
		wants(t, f, "afterwards", [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"})
	}
	f.runs(1, 10, 10)
	wants(t, f, "once it is no more", [2]string{"2024Mi", "4048Mi"}, [2]string{"2024Mi", "4048Mi"})
}

// From in place to the template: pods are held until it takes over, and nothing is held twice.
func TestTheTemplateTakesOverWithoutAGap(t *testing.T) {
	f := newFleet(2)
	f.runs(5, 10, 40)
	held := f.Plan.Sizes
	f.Size.Apply, f.Shut.RestartAgain = config.Template, epoch.Add(24*time.Hour)
	f.runs(5, 10, 40)
	if !f.Plan.Sizes.Same(held) || f.Plan.Resources != nil {
		t.Fatalf("while it may not restart the plan has %v and %v, want %v", f.Plan.Sizes, f.Plan.Resources, held)
	}
	f.Shut.RestartAgain = time.Time{}
	f.run(10, 40)
	want := &plan.Resources{Requests: map[string]string{"memory": "5024Mi"}, Limits: map[string]string{"memory": "10048Mi"}}
	if diff := cmp.Diff(want, f.Plan.Resources); diff != "" || f.Plan.Sizes != nil || !f.last.Restarts() {
		t.Errorf("the template has (-want +got):\n%s\nand the pods %v", diff, f.Plan.Sizes)
	}
}

// Of two resources one that may not change yet keeps the other from taking over alone: it would be held by nobody.
func TestTheTemplateTakesOverAllOrNothing(t *testing.T) {
	f := newFleet(1)
	f.Template = &plan.Resources{Requests: map[string]string{"memory": "1Gi", "cpu": "4"}}
	f.Size.Policies[0].Rules = append(f.Size.Policies[0].Rules, config.SizeRule{List: config.Requests, Resource: "cpu", Base: "1"})
	f.runs(5, 10)
	held := f.Plan.Sizes
	f.Size.Apply = config.Template
	f.Change.Down.StabilizationWindow = config.Duration(30 * time.Minute)
	f.runs(20, 10)
	if !f.Plan.Sizes.Same(held) || f.Plan.Resources != nil {
		t.Fatalf("while cpu waits the plan has %v and %v, want %v", f.Plan.Sizes, f.Plan.Resources, held)
	}
	f.runs(20, 10)
	want := &plan.Resources{Requests: map[string]string{"memory": "2024Mi", "cpu": "1"}}
	if diff := cmp.Diff(want, f.Plan.Resources); diff != "" || f.Plan.Sizes != nil {
		t.Errorf("the template has (-want +got):\n%s\nand the pods %v; blocked %v", diff, f.Plan.Sizes, f.blocks())
	}
}

// From the template to in place: pods are held as large as the template has them, at once; and what the template had before
// ballast wrote it is what limits follow from.
func TestInPlaceTakesOverWithoutAGap(t *testing.T) {
	f := newFleet(2)
	f.Size.Apply = config.Template
	f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Memory: 10 << 30, MemoryLimit: 16 << 30}}
	f.runs(5, 10, 40)
	written := plan.Resources{Requests: map[string]string{"memory": "5024Mi"}, Limits: map[string]string{"memory": "12Gi"}}
	if diff := cmp.Diff(&written, f.Plan.Resources); diff != "" {
		t.Fatalf("the template (-want +got):\n%s", diff)
	}
	f.Template, f.Size.Apply, f.Pods = &written, config.InPlace, nil
	f.Shut = question.Shut{Up: "the mode is Hold", Down: "the mode is Hold"}
	f.run(10, 40)
	wants(t, f, "at once", [2]string{"5024Mi", "12Gi"}, [2]string{"5024Mi", "12Gi"})
	f.Shut, f.Memory.Peaks = question.Shut{}, seenInUse(2)
	f.run(10, 60)
	wants(t, f, "each by its own rules, limits as people's template had them", [2]string{"2024Mi", "4048Mi"}, [2]string{"7024Mi", "14048Mi"})
}

// Of the template the plan holds what it names alone: a limit that people give it later counts as if it had always been there.
func TestALimitThatPeopleGiveTheTemplateLaterCounts(t *testing.T) {
	type m = map[string]string
	f := newFleet(1)
	f.Size.Apply, f.Template = config.Template, &plan.Resources{Requests: m{"memory": "1Gi"}}
	f.runs(5, 30)
	ours := &plan.Resources{Requests: m{"memory": "4024Mi"}}
	if diff := cmp.Diff(ours, f.Plan.Resources); diff != "" {
		t.Fatalf("without a limit (-want +got):\n%s", diff)
	}
	holds := func(when string, found, want *plan.Resources) {
		t.Helper()
		f.run(30)
		if diff := cmp.Diff([]*plan.Resources{found, want}, []*plan.Resources{f.Memory.Found, f.Plan.Resources}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	f.Template = ours
	holds("the template as ballast wrote it", &plan.Resources{Requests: m{"memory": "1Gi"}}, ours)
	f.Shut.Restart = "it may not restart now"
	f.Template = &plan.Resources{Requests: m{"memory": "1Gi"}, Limits: m{"memory": "2Gi"}}
	holds("with a limit below the request, which the webhook leaves out", f.Template, ours)
	f.Template = ours
	holds("and without it again", &plan.Resources{Requests: m{"memory": "1Gi"}}, ours)
	f.Shut.Restart = ""
	f.Template = &plan.Resources{Requests: m{"memory": "1Gi"}, Limits: m{"memory": "2Gi"}}
	both := &plan.Resources{Requests: m{"memory": "4024Mi"}, Limits: m{"memory": "8048Mi"}}
	people := f.Template
	holds("once it may restart", people, both)
	f.Template = both
	holds("what is held now is as it was before", people, both)
}

// What a rule made that is gone stays in the template, where nobody takes it out, and is no limit that people gave it.
func TestWhatARuleLeavesInTheTemplateIsNotPeoples(t *testing.T) {
	type m = map[string]string
	f := newFleet(1)
	f.Size.Apply, f.Template = config.Template, &plan.Resources{Requests: m{"cpu": "1", "memory": "1Gi"}}
	rules := &f.Size.Policies[0].Rules
	*rules = append(*rules, config.SizeRule{List: config.Limits, Resource: "cpu", Base: "2"}, config.SizeRule{List: config.Limits, Resource: "memory", Base: "8Gi"})
	f.run(30)
	both := &plan.Resources{Requests: m{"memory": "4024Mi"}, Limits: m{"cpu": "2", "memory": "8Gi"}}
	if diff := cmp.Diff(both, f.Plan.Resources); diff != "" {
		t.Fatalf("with both rules (-want +got):\n%s", diff)
	}
	f.Template = &plan.Resources{Requests: m{"cpu": "1", "memory": "4024Mi"}, Limits: m{"cpu": "2", "memory": "8Gi"}}
	f.run(30)
	*rules = (*rules)[:len(*rules)-1]
	f.runs(3, 30)
	want := []*plan.Resources{{Requests: m{"cpu": "1", "memory": "1Gi"}}, {Requests: m{"memory": "4024Mi"}, Limits: m{"cpu": "2"}}}
	if diff := cmp.Diff(want, []*plan.Resources{f.Memory.Found, f.Plan.Resources}); diff != "" {
		t.Errorf("without that of memory, people's and held (-want +got):\n%s", diff)
	}
}

// What replicas were seen to use outlasts policies that are taken away and come back.
func TestPeaksOutlastPolicies(t *testing.T) {
	f := newFleet(1)
	f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Memory: 6 << 30, MemoryLimit: 8 << 30}}
	f.runs(3, 10)
	wants(t, f, "at its peak", [2]string{"2024Mi", "7424Mi"})
	f.Pods, f.Plan.Sizes = nil, nil
	f.Memory = question.Released(f.Memory, f.Now)
	if f.Memory.Rules != nil || f.Memory.Changes != nil || f.Memory.Held != nil {
		t.Errorf("it remembers rules that are gone: %+v", f.Memory)
	}
	f.run(10)
	wants(t, f, "policies are back", [2]string{"2024Mi", "7424Mi"})
	f.Memory = question.Released(f.Memory, f.Now.Add(8*24*time.Hour))
	if f.Memory.Peaks != nil {
		t.Errorf("a peak of last week counts: %v", f.Memory.Peaks)
	}
}

// A leader whose memory is older than the sizes in force does not undo them, nor answer a kill twice.
func TestANewLeaderKeepsWhatItDoesNotRemember(t *testing.T) {
	f := newFleet(1)
	f.Change.Down.Cooldown = config.Duration(20 * time.Minute)
	f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", MemoryLimit: 4048 << 20}}
	f.runs(10, 10)
	old := f.Memory
	f.Pods[0].OOMKilled, f.Pods[0].KilledAt = true, f.Now
	f.run(40)
	wants(t, f, "after the kill", [2]string{"5024Mi", "10048Mi"})
	f.Memory = old
	f.Pods[0].MemoryLimit = 10048 << 20
	f.runs(19, 10)
	wants(t, f, "by a leader that does not know of it", [2]string{"5024Mi", "10048Mi"})
	if diff := cmp.Diff([]string{"0 down StabilizationWindow 5024Mi->2Gi"}, f.blocks()); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	f.runs(3, 10)
	wants(t, f, "after the cooldown", [2]string{"2024Mi", "4048Mi"})
}

// By default a size follows what is a tenth of it or more.
func TestTheLeastChangeIsATenth(t *testing.T) {
	f := newFleet(1)
	f.runs(3, 30)
	wants(t, f, "at rest", [2]string{"4024Mi", "8048Mi"})
	f.run(34)
	wants(t, f, "a little more", [2]string{"4024Mi", "8048Mi"})
	want := Blocked{Replica: 0, Resource: "memory", Direction: change.Up, Reason: change.TooSmall, From: "4024Mi", To: "4608Mi", Since: f.Now,
		Why: "it is less than a change of 416Mi"}
	if diff := cmp.Diff([]Blocked{want}, f.last.Sizing.Blocked); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	f.run(35)
	wants(t, f, "a tenth more", [2]string{"4524Mi", "9048Mi"})
	f.Change.Up.MinChange = &config.SizeSteps{Memory: &config.SizeStep{Value: "0"}}
	f.run(36)
	wants(t, f, "without one", [2]string{"4624Mi", "9248Mi"})
}

// What people are told of a wish stays the same while the input trembles.
func TestWhatIsBlockedIsToldInRoundNumbers(t *testing.T) {
	f := newFleet(1)
	f.Change.Up.Mode = change.Off
	f.run(32)
	for _, apps := range []float64{33, 31.5, 32.7} {
		before := f.last.Sizing.Blocked[0].String()
		f.run(apps)
		if diff := cmp.Diff(before, f.last.Sizing.Blocked[0].String()); diff != "" {
			t.Errorf("with %v applications (-before +now):\n%s", apps, diff)
		}
	}
}

// A pod that cannot get its size while it runs is shown with what it lacks, and why.
func TestWhatARunningPodIsNotAskedForIsShown(t *testing.T) {
	f := newFleet(2)
	f.runs(3, 10, 10)
	f.Unmet = []diff.Unmet{{Replica: 1, Pod: "c-1", State: diff.PodState(diff.HeldKeepsLimit), Words: "it is 1.33",
		Stands: plan.Resources{Limits: map[string]string{"memory": "6Gi"}}, Left: plan.Resources{Limits: map[string]string{"memory": "4048Mi"}}}}
	f.run(10, 10)
	want := []Blocked{{Replica: 1, Resource: "memory", Direction: change.Down, Reason: change.UpdatePolicy, From: "6Gi", To: "4048Mi", Since: f.Now,
		Why: `pod "c-1", KeepsLimit: it is 1.33`}}
	if diff := cmp.Diff(want, f.last.Sizing.Blocked); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
}

// A replica whose node had no room for its size is remembered for an hour, and people are told.
func TestANodeWithoutRoomIsRemembered(t *testing.T) {
	f := newFleet(2)
	f.Unmet = []diff.Unmet{{Replica: 1, Pod: "c-1", State: diff.PodInfeasible, Short: true}, {Replica: 0, Pod: "c-0", State: diff.PodDeferred}}
	f.run(10, 10)
	seen := f.Now
	if diff := cmp.Diff(map[int]time.Time{1: seen}, f.Memory.NoRoom); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	want := `the node of pod "c-1" has no room for the size of replica 1 (Infeasible): delete the pod once a larger node has room for it; ` +
		`no cluster is levelled to it for an hour`
	if p := f.last.Problems; len(p) != 1 || p[0].Kind != "NodeFull" || p[0].Message != want {
		t.Errorf("told: %v", p)
	}
	f.Unmet = nil
	f.runs(59, 10, 10)
	if len(f.Memory.NoRoom) != 1 {
		t.Errorf("forgotten within the hour")
	}
	f.run(10, 10)
	if len(f.Memory.NoRoom) != 0 {
		t.Errorf("remembered after it: %v", f.Memory.NoRoom)
	}
}

// newlyRuled is a fleet that was at rest, and then gets a rule of memory whose input nobody has seen, beside one of cpu.
func newlyRuled() *fleet {
	f := newFleet(1)
	f.Template = &plan.Resources{Requests: map[string]string{"memory": "1Gi"}, Limits: map[string]string{"memory": "2Gi"}}
	rules := &f.Size.Policies[0].Rules
	*rules = append(*rules, config.SizeRule{List: config.Requests, Resource: "cpu", Slope: "1", Input: "clusters"})
	f.Readings["clusters"] = size.Reading{Replica: map[int]float64{0: 3}}
	f.runs(5, 70)
	*rules = append(*rules, config.SizeRule{Name: "set", List: config.Requests, Resource: "memory", Slope: "1", Input: "workingSet"})
	return f
}

// A rule whose input nobody has seen yet leaves the replica as large as it is held, whatever other resources want.
func TestAnUnseenInputDropsNothingThatIsHeld(t *testing.T) {
	f := newlyRuled()
	wants(t, f, "before the rule", [2]string{"8024Mi", "16048Mi"})
	f.runs(5, 70)
	wants(t, f, "with it", [2]string{"8024Mi", "16048Mi"})
	if held, _ := f.Plan.SizeOf(0); held.Requests["cpu"] != "3" {
		t.Errorf("cpu is %q", held.Requests["cpu"])
	}
	f.Readings["workingSet"] = size.Reading{Replica: map[int]float64{0: 1 << 30}}
	f.runs(5, 70)
	wants(t, f, "once it is seen", [2]string{"9048Mi", "18096Mi"})
}

// A resource whose rule reads an input that went away waits for it, as it stands, since that was known last; once that is back nothing is
// said. What people read does not change meanwhile.
func TestAnInputThatWentAwayIsABlockedChange(t *testing.T) {
	f := newFleet(2)
	f.runs(3, 10, 40)
	known, away := f.Now, f.Readings["apps"]
	waits := func(replica int, held string) Blocked {
		return Blocked{Replica: replica, Resource: "memory", Direction: change.Up, Reason: change.StaleInput, From: held, To: held,
			Since: known, Why: "nothing is known of apps"}
	}
	says := func(when string, want ...Blocked) {
		t.Helper()
		if diff := cmp.Diff(want, f.last.Sizing.Blocked); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	says("known")
	f.Readings["apps"] = size.Reading{Missing: true}
	for range 3 {
		f.run()
		says("away", waits(0, "2024Mi"), waits(1, "5024Mi"))
		const words = "replica 1: memory stays at 5024Mi and waits since 2026-11-20T09:03:00Z: StaleInput"
		if got := f.last.Sizing.Blocked[1].Steady().String(); got != words {
			t.Errorf("in words: %s", got)
		}
	}
	wants(t, f, "away", [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"})
	f.Readings["apps"] = size.Reading{Replica: map[int]float64{1: 40}}
	f.run()
	says("one is back", waits(0, "2024Mi"))
	f.Readings["apps"] = away
	f.run()
	says("back")
	known = f.Now
	f.Readings["apps"] = size.Reading{Missing: true}
	f.run()
	says("away again", waits(0, "2024Mi"), waits(1, "5024Mi"))
}

// What no rule has seen yet waits since that was noticed, with what is held, or what the template has.
func TestAnUnseenInputIsABlockedChange(t *testing.T) {
	f := newlyRuled()
	f.run(70)
	noticed := f.Now
	f.runs(2, 70)
	want := []Blocked{{Replica: 0, Resource: "memory", Direction: change.Up, Reason: change.StaleInput, From: "8024Mi", To: "8024Mi",
		Since: noticed, Why: "nothing is known of workingSet"}}
	if diff := cmp.Diff(want, f.last.Sizing.Blocked); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	f.Readings["apps"] = size.Reading{Missing: true}
	f.run()
	want[0].Why = "nothing is known of apps, workingSet"
	if diff := cmp.Diff(want, f.last.Sizing.Blocked); diff != "" {
		t.Errorf("beside one that went away (-want +got):\n%s", diff)
	}
	f = newFleet(1)
	f.Readings["apps"] = size.Reading{Missing: true}
	f.run()
	want[0].From, want[0].To, want[0].Since, want[0].Why = "1Gi", "1Gi", f.Now, "nothing is known of apps"
	if diff := cmp.Diff(want, f.last.Sizing.Blocked); diff != "" {
		t.Errorf("by the template (-want +got):\n%s", diff)
	}
}

// An OOM kill is answered while a rule has not seen its input.
func TestAKillIsAnsweredWhereAnInputIsUnseen(t *testing.T) {
	f := newlyRuled()
	f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Memory: 1 << 30, MemoryLimit: 16048 << 20, OOMKilled: true, KilledAt: f.Now}}
	f.run(70)
	wants(t, f, "after the kill", [2]string{"8024Mi", "19328Mi"})
	f.Pods[0].MemoryLimit = 19328 << 20
	f.runs(5, 70)
	wants(t, f, "it counts once", [2]string{"8024Mi", "19328Mi"})
}

// What is guaranteed stays so where a kill is answered without its rules.
func TestAKillOfAGuaranteedReplicaGrowsBoth(t *testing.T) {
	held := quantity.Of(&plan.Resources{Requests: map[string]string{"memory": "4Gi"}, Limits: map[string]string{"memory": "4Gi"}})
	got := quantity.Resources(wish.Grown(held, *resource.NewQuantity(5<<30, resource.BinarySI)))
	want := plan.Resources{Requests: map[string]string{"memory": "5Gi"}, Limits: map[string]string{"memory": "5Gi"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A memory limit does not shrink while nobody saw what the replica uses, and what is equal stays equal.
func TestALimitDoesNotShrinkUnseen(t *testing.T) {
	f := newFleet(2)
	f.Memory.Peaks = nil
	f.runs(3, 40, 40)
	f.Pods = []observed.Pod{{Replica: 1, Name: "c-1", Memory: 1 << 30, MemoryLimit: 10048 << 20}}
	f.runs(3, 10, 10)
	wants(t, f, "seen is replica 1", [2]string{"2024Mi", "10048Mi"}, [2]string{"2024Mi", "4048Mi"})
	f = newFleet(1)
	f.Memory.Peaks, f.Template = nil, &plan.Resources{Requests: map[string]string{"memory": "1Gi"}, Limits: map[string]string{"memory": "1Gi"}}
	f.runs(3, 40)
	f.runs(3, 10)
	wants(t, f, "guaranteed", [2]string{"5024Mi", "5024Mi"})
}

// killedAt is a replica's pod that was killed now, at that limit.
func (f *fleet) killedAt(limit int64) {
	f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", MemoryLimit: limit, OOMKilled: true, KilledAt: f.Now}}
}

// A pod whose node has no room crashes on at what it had: the plan has the answer already.
func TestAKillIsAnsweredOnceWhileThePodHasNotGotIt(t *testing.T) {
	f := newFleet(1)
	f.runs(3, 10)
	for range 5 {
		f.killedAt(4048 << 20)
		f.run(10)
		wants(t, f, "killed at what it had", [2]string{"2024Mi", "4928Mi"})
	}
	f.killedAt(4928 << 20)
	f.run(10)
	wants(t, f, "killed at what it got", [2]string{"2024Mi", "5952Mi"})
}

// Who writes pods' status raises a limit to some four times what people and policies give, or to the cap.
func TestForgedKillsEnd(t *testing.T) {
	for _, test := range []struct {
		most string
		want [2]string
	}{{"", [2]string{"2024Mi", "17984Mi"}}, {"6Gi", [2]string{"2024Mi", "6Gi"}}} {
		f := newFleet(1)
		if test.most != "" {
			f.NodeCap = map[string]resource.Quantity{"memory": resource.MustParse(test.most)}
		}
		f.runs(3, 10)
		for range 50 {
			limit := resource.MustParse(f.memory()[0][1])
			f.killedAt(limit.Value())
			f.run(10)
		}
		wants(t, f, "cap "+test.most, test.want)
	}
}

// A change of memory that is no growth answers no kill.
func TestOnlyAGrowthAnswersAKill(t *testing.T) {
	now := quantity.Of(&plan.Resources{Requests: map[string]string{"memory": "5024Mi"}, Limits: map[string]string{"memory": "4Gi"}})
	next := &plan.Resources{}
	for _, test := range []struct {
		request, limit string
		want           bool
	}{{"1Gi", "4Gi", false}, {"1Gi", "5Gi", true}, {"6Gi", "", true}, {"1Gi", "", false}} {
		next.Requests, next.Limits = map[string]string{"memory": test.request}, map[string]string{"memory": test.limit}
		if got := grew(now, quantity.Of(next)); got != test.want {
			t.Errorf("request %s, limit %s: it grew %t, want %t", test.request, test.limit, got, test.want)
		}
	}
}

// goneBack is a fleet of two that a person brought back to the sizes of ten applications each, half an hour ago, with forty on each now.
func goneBack() *fleet {
	f := newFleet(2)
	f.runs(3, 10, 10)
	then := f.Plan
	f.runs(3, 40, 40)
	f.Back = question.Back{To: &then, For: 24 * time.Hour}
	f.run(40, 40)
	f.Back.To = nil
	f.runs(30, 40, 40)
	return f
}

// A replica that clusters come to after a rollback has what they take, and keeps it; the others stay as the person has them.
func TestAReceiverAfterARollbackKeepsWhatItGrewTo(t *testing.T) {
	f := goneBack()
	back := [2]string{"2024Mi", "4048Mi"}
	wants(t, f, "gone back", back, back)
	f.Receivers = map[int]bool{1: true}
	f.run(40, 60)
	wants(t, f, "as a receiver", back, [2]string{"7024Mi", "14048Mi"})
	f.Receivers = nil
	f.runs(10, 40, 60)
	wants(t, f, "afterwards", back, [2]string{"7024Mi", "14048Mi"})
}

// A replica that has more clusters than when a person went back to its size has what they take; one whose input grew alone has not.
func TestAReplicaThatGetsClustersAfterARollbackGrows(t *testing.T) {
	for name, uniform := range map[string]bool{"each its own": false, "one size for all": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(2)
			if uniform {
				f.Plan.Target.Kind = plan.Deployment
			}
			f.Clusters = map[int]int{0: 3, 1: 2}
			f.runs(3, 10, 10)
			then := f.Plan
			f.runs(3, 40, 40)
			f.Back = question.Back{To: &then, For: 24 * time.Hour}
			f.run(40, 40)
			f.Back.To = nil
			back, grown := [2]string{"2024Mi", "4048Mi"}, [2]string{"7024Mi", "14048Mi"}
			f.runs(30, 60, 60)
			wants(t, f, "as a person has it", back, back)
			f.Clusters = map[int]int{0: 4, 1: 2}
			f.run(60, 60)
			if uniform {
				back = grown
			}
			wants(t, f, "with another cluster", grown, back)
			f.Clusters = map[int]int{0: 3, 1: 2}
			f.run(60, 60)
			wants(t, f, "which went again", grown, back)
		})
	}
}

// With another size.apply the sizes that a person went back to are of other replicas.
func TestAnotherApplyEndsARollback(t *testing.T) {
	f := goneBack()
	f.Size.Apply = config.Template
	f.run(40, 60)
	want := &plan.Resources{Requests: map[string]string{"memory": "7024Mi"}, Limits: map[string]string{"memory": "14048Mi"}}
	if diff := cmp.Diff(want, f.Plan.Resources); diff != "" || f.Memory.Back != nil {
		t.Errorf("the template (-want +got):\n%s\nremembered %v", diff, f.Memory.Back)
	}
}

// A receiver that grew at once does not shrink while a percentile of yesterday is below what came.
func TestAReceiverDoesNotShrinkForSmoothing(t *testing.T) {
	f := newFleet(1)
	f.Size.Policies[0].Rules[1].Smooth = &config.Smooth{Samples: 30}
	f.runs(60, 10)
	f.Receivers = map[int]bool{0: true}
	f.run(40)
	wants(t, f, "as a receiver", [2]string{"5024Mi", "10048Mi"})
	f.Receivers = nil
	f.runs(10, 40)
	wants(t, f, "afterwards", [2]string{"5024Mi", "10048Mi"})
	f.runs(60, 10)
	wants(t, f, "once it is no more", [2]string{"2024Mi", "4048Mi"})
}

// A limit that must grow does not wait for a request whose change is too small.
func TestARequestThatChangesLittleStarvesNoLimit(t *testing.T) {
	for name, apps := range map[string]float64{"a little more": 11, "a little less": 9} {
		f := newFleet(1)
		f.runs(3, 10)
		f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Memory: 5 << 30, MemoryLimit: 8 << 30}}
		f.runs(2, apps)
		wants(t, f, name, [2]string{"2024Mi", "6Gi"})
	}
}

// TestAReplicaOverCapacityIsNeverStarvedByMinChange: what is less than the least change grows all the same while it carries more than it
// may, and only there; whatever the least change is.
func TestAReplicaOverCapacityIsNeverStarvedByMinChange(t *testing.T) {
	f := newFleet(2)
	f.runs(2, 10, 10)
	f.Change.Up.MinChange = &config.SizeSteps{Memory: &config.SizeStep{Value: "1Gi"}}
	wants(t, f, "at rest", [2]string{"2024Mi", "4048Mi"}, [2]string{"2024Mi", "4048Mi"})
	f.Over = map[int]bool{1: true}
	f.run(15, 15)
	wants(t, f, "over capacity", [2]string{"2024Mi", "4048Mi"}, [2]string{"2524Mi", "5048Mi"})
	if diff := cmp.Diff([]string{"0 up MinChange 2024Mi->2560Mi"}, f.blocks()); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	f.Over = nil
	f.run(14, 19)
	wants(t, f, "no more over it", [2]string{"2024Mi", "4048Mi"}, [2]string{"2524Mi", "5048Mi"})
}

// TestNoLeastChangeHoldsAReplicaOverCapacity, of any size, by any way of applying it.
func TestNoLeastChangeHoldsAReplicaOverCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(2)
		f.Size.Apply = rapid.SampledFrom([]config.SizeApply{config.InPlace, config.Template}).Draw(t, "apply")
		f.run(10, 10)
		f.Change.Up.MinChange = &config.SizeSteps{Memory: &config.SizeStep{
			Value:      config.Quantity(fmt.Sprintf("%dMi", rapid.IntRange(1, 100_000).Draw(t, "value"))),
			Percentage: config.Percent(rapid.IntRange(1, 100).Draw(t, "percentage"))}}
		over := rapid.IntRange(0, 1).Draw(t, "over")
		f.Over = map[int]bool{over: true}
		apps := [2]float64{10, 10}
		apps[over] += float64(rapid.IntRange(1, 400).Draw(t, "more"))
		f.run(apps[0], apps[1])
		for _, b := range f.last.Sizing.Blocked {
			if b.Reason == change.TooSmall && b.Direction == change.Up {
				t.Errorf("%s", b)
			}
		}
	})
}

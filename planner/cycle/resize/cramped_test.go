package resize

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize/wish"
	"ballast/planner/diff"
	"ballast/planner/plan"
)

// Where clusters are to leave a replica whose node has no room it is remembered since when, and what of it the pod has; from anew while
// a rollout is under way, and for a day once clusters have left. Without that option nothing is remembered.
func TestACrampedReplicaIsRememberedUntilClustersHaveLeft(t *testing.T) {
	f := infeasible(t)
	f.runs(3, 10, 40)
	if f.Memory.Cramped != nil {
		t.Errorf("nobody asked for it: %v", f.Memory.Cramped)
	}
	is := func(when string, want map[int]memory.Cramped) {
		t.Helper()
		if d := cmp.Diff(want, f.Memory.Cramped); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	f.Size.MoveAway = &config.MoveAway{After: config.Duration(time.Hour)}
	f.run(10, 40)
	since := f.Now
	is("at first", map[int]memory.Cramped{1: {Since: since, Has: 40}})
	f.runs(20, 10, 40)
	is("later", map[int]memory.Cramped{1: {Since: since, Has: 40}})
	f.runs(50, 10, 40)
	f.Unmet = nil // the plan's size is what the pod has by now
	f.run(10, 40)
	wants(t, f, "as large as it is", [2]string{"2024Mi", "4048Mi"}, [2]string{"2024Mi", "10048Mi"})
	is("while it stays as large as it is", map[int]memory.Cramped{1: {Since: since, Has: 40}})
	f.Plan.Rollout, f.Givers = &plan.Rollout{Stage: plan.Moving}, map[int]bool{0: true, 1: true}
	f.runs(7, 10, 40)
	is("while clusters are to leave it", map[int]memory.Cramped{1: {Since: f.Now, Has: 40, Tries: 1}})
	f.Leavers = map[int]bool{1: true}
	f.run(10, 40)
	left := f.Now
	is("while clusters leave it", map[int]memory.Cramped{1: {Since: left, Has: 40, Left: left}})
	f.Plan.Rollout, f.Givers, f.Leavers = nil, nil, nil
	f.run(10, 10)
	is("once they have left", map[int]memory.Cramped{1: {Left: left}})
	f.Now = left.Add(wish.LeftFor - 2*time.Minute)
	f.run(10, 10)
	is("for a day", map[int]memory.Cramped{1: {Left: left}})
	f.run(10, 10)
	is("after it", map[int]memory.Cramped{})
}

// TestALookThatSaysNothingKeepsTheTime: no pod is seen, or the node has not answered what it was asked for last.
func TestALookThatSaysNothingKeepsTheTime(t *testing.T) {
	f := infeasible(t)
	f.Size.MoveAway = &config.MoveAway{After: config.Duration(time.Hour)}
	f.run(10, 40)
	want := map[int]memory.Cramped{1: {Since: f.Now, Has: 40}}
	pods, unmet := f.Pods, f.Unmet
	f.Pods, f.Unmet = nil, nil
	f.run(10, 40)
	if d := cmp.Diff(want, f.Memory.Cramped); d != "" {
		t.Errorf("no pod was seen (-want +got):\n%s", d)
	}
	f.Pods, f.Unmet = pods, []diff.Unmet{{Replica: 1, Pod: "c-1", State: diff.PodAsked, Short: true}}
	f.run(10, 40)
	if d := cmp.Diff(want, f.Memory.Cramped); d != "" {
		t.Errorf("its node was asked anew (-want +got):\n%s", d)
	}
	f.Unmet = unmet
	f.run(10, 40)
	if d := cmp.Diff(want, f.Memory.Cramped); d != "" {
		t.Errorf("and has no room (-want +got):\n%s", d)
	}
}

// TestWhatRulesLetFallLateLeavesOnce: for as long as a rule holds what is wanted after load has left, no more leaves.
func TestWhatRulesLetFallLateLeavesOnce(t *testing.T) {
	f := infeasible(t)
	f.Size.MoveAway = &config.MoveAway{After: config.Duration(time.Hour)}
	if got := wish.LeavesFor(f.Question); got != 24*time.Hour {
		t.Errorf("without a delay %s", got)
	}
	f.Size.Policies[0].Rules[0].DelayScaleDown = &config.SizeDelay{DelaySeconds: 36 * 3600}
	if got := wish.LeavesFor(f.Question); got != 37*time.Hour {
		t.Errorf("with a delay of 36 hours %s, want 37", got)
	}
}

// TestATryByWhichNothingLeftIsCounted: a rollout for it that ended before anything left, also where looks said nothing meanwhile; once its
// node has room none counts.
func TestATryByWhichNothingLeftIsCounted(t *testing.T) {
	f := infeasible(t)
	f.Size.MoveAway = &config.MoveAway{After: config.Duration(time.Hour)}
	f.run(10, 40)
	pods, unmet := f.Pods, f.Unmet
	try := func(minutes int, seen bool) time.Time {
		f.Plan.Rollout, f.Givers = &plan.Rollout{Stage: plan.Moving}, map[int]bool{1: true}
		if !seen {
			f.Pods, f.Unmet = nil, nil
		}
		f.runs(minutes, 10, 40)
		f.Plan.Rollout, f.Givers, f.Pods, f.Unmet = nil, nil, pods, unmet
		return f.Now
	}
	is := func(want memory.Cramped) {
		t.Helper()
		f.run(10, 40)
		if d := cmp.Diff(map[int]memory.Cramped{1: want}, f.Memory.Cramped); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
	f.Now = f.Now.Add(59 * time.Minute)
	is(memory.Cramped{Since: try(10, false), Has: 40, Tries: 1})
	f.Now = f.Now.Add(100 * time.Minute)
	is(memory.Cramped{Since: try(10, true), Has: 40, Tries: 1}) // what levels took some from it, too early for a try
	f.Now = f.Now.Add(2 * time.Hour)
	is(memory.Cramped{Since: try(1, false), Has: 40, Tries: 2})
	f.Unmet = nil
	f.Pods[0].Size.Has.Requests = map[string]string{"memory": "5024Mi"}
	f.run(10, 40)
	if len(f.Memory.Cramped) > 0 {
		t.Errorf("its node has room: %v", f.Memory.Cramped)
	}
}

// TestWhatAPodLacksIsOfWhatThePlanHolds, and neither of less, which change.down holds back, nor of more, which change.up does.
func TestWhatAPodLacksIsOfWhatThePlanHolds(t *testing.T) {
	for name, apps := range map[string]float64{"less is wanted, and does not come yet": 10, "more is wanted, and may not come": 70} {
		f := infeasible(t)
		f.Size.MoveAway = &config.MoveAway{After: config.Duration(time.Hour)}
		f.Change.Up.Mode = change.Off
		f.runs(2, 10, apps)
		wants(t, f, name, [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"})
		if d := cmp.Diff(map[int]memory.Cramped{1: {Since: f.Now.Add(-time.Minute), Has: 40}}, f.Memory.Cramped); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestTriesKeepTheirDistance: whatever looks say meanwhile, a try by which nothing left is followed by the next one after twice as long, and
// one by which clusters left by none for a day; but for a replica that is held at what its node has room for meanwhile.
func TestTriesKeepTheirDistance(t *testing.T) {
	tried := 0
	rapid.Check(t, func(rt *rapid.T) {
		f := infeasible(t)
		f.Size.MoveAway = &config.MoveAway{After: config.Duration(time.Hour)}
		f.run(10, 40)
		pods, unmet := f.Pods, f.Unmet
		look := func() {
			if f.Pods, f.Unmet = pods, unmet; rapid.IntRange(0, 2).Draw(rt, "seen") == 0 {
				f.Pods, f.Unmet = nil, nil
			}
			f.run(10, 40)
		}
		ended, wait, tries := f.Now, time.Hour, 0
		for range rapid.IntRange(5, 40).Draw(rt, "looks") {
			f.Now = f.Now.Add(time.Duration(rapid.IntRange(0, 200).Draw(rt, "minutes")) * time.Minute)
			look()
			c, cramped := f.Memory.Cramped[1]
			if !cramped { // it is held at what its node has room for: what follows begins anew
				ended, wait, tries = f.Now, time.Hour, 0
			}
			if !c.Left.IsZero() || !c.Due(time.Hour, f.Now) {
				continue
			}
			if f.Now.Sub(ended) < wait {
				rt.Fatalf("try %d comes after %s, want %s", tries+1, f.Now.Sub(ended), wait)
			}
			f.Plan.Rollout, f.Givers = &plan.Rollout{Stage: plan.Moving}, map[int]bool{1: true}
			for range rapid.IntRange(1, 12).Draw(rt, "lasts") {
				look()
			}
			tries, wait = tries+1, min(2*wait, 24*time.Hour)
			if rapid.Bool().Draw(rt, "clusters leave") {
				f.Leavers, tries, wait = map[int]bool{1: true}, 0, 24*time.Hour
				look()
			}
			f.Plan.Rollout, f.Givers, f.Leavers = nil, nil, nil
			if ended, tried = f.Now, tried+1; f.Memory.Cramped[1].Tries != tries {
				rt.Fatalf("%d tries count, want %d", f.Memory.Cramped[1].Tries, tries)
			}
			if tries == 0 { // after that day the next try doubles an hour
				f.Now, wait = f.Now.Add(25*time.Hour), time.Hour
				look()
			}
		}
	})
	if tried == 0 {
		t.Error("nothing was tried")
	}
}

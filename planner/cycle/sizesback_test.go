package cycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// backWorld is a fleet whose replica 1 has grown; the plan of before is the one to go back to.
func backWorld(t *testing.T) (*world, *input.Rollback) {
	t.Helper()
	w := sizedWorld(2, 2, 2)
	w.in.Config.Change.Down.StabilizationWindow = config.Duration(30 * time.Minute)
	w.in.Config.Change.Down.Cooldown = config.Duration(time.Hour)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(5)
	before := *w.in.InForce
	w.setLoad("c001", 10)
	w.run(5)
	if got := w.memoryOf(1); got != [2]string{"2Gi", "4Gi"} {
		t.Fatalf("replica 1 has %v", got)
	}
	return w, &input.Rollback{Revision: before.Revision, Plan: &before}
}

// goesBack lets the leader hear what a person asks for, and take the annotation away.
func (w *world) goesBack(to *input.Rollback) {
	w.in.Rollback = to
	w.run(1)
	w.in.Rollback = nil
}

// A rollback brings the sizes of the earlier plan back at once, and holds them for as long as the balance is left alone.
func TestARollbackBringsSizesBack(t *testing.T) {
	w, back := backWorld(t)
	w.goesBack(back)
	want := [2]string{"1280Mi", "2560Mi"}
	if got := w.memoryOf(1); got != want || !w.last.Done {
		t.Fatalf("replica 1 has %v, want %v; done %t, blocked %v", got, want, w.last.Done, w.last.Sizing.Blocked)
	}
	parts, _ := w.in.Memory.Parts(nil)
	if len(parts) == 0 || w.in.Memory.Sizes.Back == nil {
		t.Error("nothing is remembered of it")
	}
	w.run(29)
	if got := w.memoryOf(1); got != want {
		t.Errorf("half an hour later replica 1 has %v, want %v", got, want)
	}
	w.in.Now = w.in.Now.Add(24 * time.Hour)
	w.run(2)
	if got := w.memoryOf(1); got != [2]string{"2Gi", "4Gi"} {
		t.Errorf("a day later it has %v, want what its clusters need", got)
	}
}

// What is in use, a mode and a window stand before what a person asks for.
func TestARollbackOfSizesKeepsToTheRules(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		want   [2]string
	}{
		"a limit stays above what is in use": {func(w *world) {
			w.in.Observed.Known = true
			for r := range 3 {
				w.in.Observed.Pods = append(w.in.Observed.Pods, observed.Pod{Replica: r, Name: "p", Ready: true, Claimed: true, Answered: true, Memory: 3 << 30})
			}
		}, [2]string{"1280Mi", "3712Mi"}},
		"not where shrinking is off": {func(w *world) { w.in.Config.Change.Down.Mode = "Off" }, [2]string{"2Gi", "4Gi"}},
		"not above the cap":          {func(w *world) { w.in.Config.Size.NodeCap.Memory = "1152Mi" }, [2]string{"1152Mi", "2560Mi"}},
		"not without policies' word": {func(w *world) {
			rules := w.in.Config.Size.Policies[0].Rules
			for i := range rules {
				rules[i].Resource = size.CPU
			}
		}, [2]string{}},
	} {
		w, back := backWorld(t)
		test.change(w)
		w.goesBack(back)
		if diff := cmp.Diff(test.want, w.memoryOf(1)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nblocked %v", name, diff, w.last.Sizing.Blocked)
		}
	}
}

// Of a plan that sized nothing there is nothing to go back to: the policies decide.
func TestAPlanWithoutSizesBringsNoneBack(t *testing.T) {
	w, back := backWorld(t)
	back.Plan.Sizes = nil
	w.goesBack(back)
	if got := w.memoryOf(1); got != [2]string{"2Gi", "4Gi"} {
		t.Errorf("replica 1 has %v", got)
	}
}

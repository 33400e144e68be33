package cycle

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/plan"
)

// Sizes stay as they are under each of people's switches, in place and by the template, and what would be is said.
func TestSizesStayUnderPeoplesSwitches(t *testing.T) {
	for name, switched := range map[string]func(*world, bool){
		"a freeze":                func(w *world, on bool) { w.in.Paused = on },
		"break-glass":             func(w *world, on bool) { w.in.BreakGlass = on },
		"a workload left to them": func(w *world, on bool) { w.in.Workload.Unmanaged = on },
	} {
		t.Run(name, func(t *testing.T) {
			w := sizedWorld(2, 2, 2)
			w.in.Config.Change.Down.StabilizationWindow = 0
			w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
			w.setLoad("c002", 10)
			w.run(5)
			before := w.memories()
			switched(w, true)
			w.setLoad("c001", 10)
			w.setLoad("c002", 2)
			w.run(3)
			if diff := cmp.Diff(before, w.memories()); diff != "" {
				t.Errorf("sizes changed (-before +after):\n%s", diff)
			}
			var waits []string
			for _, b := range w.last.Sizing.Blocked {
				waits = append(waits, string(b.Reason)+" "+b.From+" "+b.To)
			}
			slices.Sort(waits)
			if diff := cmp.Diff([]string{string(change.UpdatePolicy) + " 1280Mi 2Gi", string(change.UpdatePolicy) + " 2Gi 1280Mi"}, waits); diff != "" {
				t.Errorf("what waits (-want +got):\n%s", diff)
			}
			switched(w, false)
			w.run(3)
			if diff := cmp.Diff([][2]string{{"1280Mi", "2560Mi"}, {"2Gi", "4Gi"}, {"1280Mi", "2560Mi"}}, w.memories()); diff != "" {
				t.Errorf("afterwards (-want +got):\n%s", diff)
			}
		})
	}
}

// Where running pods cannot be resized people are told, whether or not one is to be.
func TestWithoutPodsResizePeopleAreTold(t *testing.T) {
	for name, test := range map[string]struct {
		has   *bool
		apply config.SizeApply
		told  bool
	}{
		"the API server has not":         {new(bool), config.InPlace, true},
		"it has not, and apply is unset": {new(bool), "", true},
		"nobody knows":                   {nil, config.InPlace, false},
		"it has":                         {func() *bool { b := true; return &b }(), config.InPlace, false},
		"the template has sizes":         {new(bool), config.Template, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := sizedWorld(1, 1, 1)
			w.in.Resizes, w.in.Config.Size.Apply = test.has, test.apply
			w.run(2)
			if told := findProblem(w.last, "NoResize").Kind != ""; told != test.told {
				t.Errorf("told: %v, want %v: %v", told, test.told, problems(w.last))
			}
		})
	}
}

// Under a freeze sizes are held as they are, also where a person takes the policies away or has them applied in another way.
func TestAFreezeHoldsSizesWhateverIsConfigured(t *testing.T) {
	for name, test := range map[string]struct {
		before, after config.SizeApply
		gone          bool
	}{
		"policies are gone":     {config.InPlace, config.InPlace, true},
		"of a template":         {config.Template, config.Template, true},
		"from template":         {config.Template, config.InPlace, false},
		"from template to none": {config.Template, config.InPlace, true},
		"to template":           {config.InPlace, config.Template, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := sizedWorld(10, 1, 1)
			w.in.Config.Size.Apply = test.before
			w.run(5)
			was := w.in.InForce.Clone()
			if was.Sizes == nil && was.Resources == nil {
				t.Fatalf("nothing is sized: %v", problems(w.last))
			}
			policies := w.in.Config.Size.Policies
			w.in.Paused, w.in.Config.Size.Apply = true, test.after
			if test.gone {
				w.in.Config.Size.Policies = nil
			}
			w.run(30)
			if diff := cmp.Diff(was.Sizes, w.in.InForce.Sizes) + cmp.Diff(was.Resources, w.in.InForce.Resources); diff != "" {
				t.Errorf("under a freeze (-before +after):\n%s", diff)
			}
			said := ""
			if test.gone || test.after != config.Template { // else the size itself is what is blocked
				said = "size.apply and size.policies are others than the plan's sizes were made by, which are held while ballast is frozen: they change once it is not"
			}
			if got := findProblem(w.last, "SizeApplyWaits").Message; got != said {
				t.Errorf("people are told %q, want %q", got, said)
			}
			w.in.Paused = false
			w.run(2)
			if test.gone && (w.in.InForce.Sizes != nil || w.in.InForce.Resources != nil) {
				t.Errorf("after it sizes are held without policies")
			}
			if test.before == config.Template && !test.gone && w.in.InForce.Sizes == nil {
				t.Errorf("after it nothing is held in place: %v", w.in.InForce.Resources)
			}
			w.in.Config.Size.Policies = policies
		})
	}
}

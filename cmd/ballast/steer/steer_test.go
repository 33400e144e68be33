package steer_test

import (
	"testing"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/steer"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

func TestWhatPeopleAskForWaitsForNothingButEnforcement(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"nothing":                 {nil, ""},
		"neither freeze nor trip": {map[string]string{plan.AnnotationPaused: "true", plan.AnnotationTripped: `cluster "dev" has no owner`}, ""},
		"enforcement":             {map[string]string{plan.AnnotationEnforcement: "off"}, "enforcement is off (annotation ballast.argoproj.io/enforcement), and the planner moves nothing until that is removed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fixture.StateWith(t, fixture.Steered(nil), "", test.annotations).Waits(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatNeedsAPlanSaysWhatIsMissing(t *testing.T) {
	broken := fixture.StateWith(t, fixture.Steered(nil), "", nil)
	broken.Plan, broken.PlanErr = nil, configmap.ErrDigest
	for want, s := range map[string]steer.State{
		"": fixture.StateWith(t, fixture.Steered(nil), "", nil),
		"the mode is Observe, in which nothing moves: set mode: Enforce in the planner's configuration":                                     fixture.StateWith(t, fixture.Steered(func(p *plan.Plan) { p.Mode = plan.Observe }), "", nil),
		"the mode is Hold, in which nothing moves: set mode: Enforce in the planner's configuration":                                        fixture.StateWith(t, fixture.Steered(func(p *plan.Plan) { p.Mode = plan.Hold }), "", nil),
		"there is no plan yet: the planner makes the first one when it leads, see `ballast status`":                                         {},
		"the plan cannot be read: the plan does not match its digest annotation; the planner mends it within a cycle, see `ballast status`": broken,
	} {
		got := ""
		if _, err := s.NeedEnforce(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

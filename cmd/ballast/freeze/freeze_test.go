package freeze

import (
	"strings"
	"testing"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

func TestFreezeGolden(t *testing.T) {
	under := func(mode string) plan.Plan {
		return fixture.Steered(func(p *plan.Plan) {
			p.Rollout = &plan.Rollout{Mode: mode, Stage: plan.Moving, Since: fixture.Noon, From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 4, ControllerReplicas: 16,
				Wave: 2, Waves: 5, Moves: map[string]int{"dev": 3, "lab": 3}}
			p.Replicas = 4
		})
	}
	alice := map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "alice", plan.AnnotationPausedReason: "a sale\nuntil Monday"}
	with := func(more ...string) map[string]string {
		m := map[string]string{}
		for k, v := range alice {
			m[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	none := steer.State{Document: configmap.Document{Paused: true}}
	for name, f := range map[string]frozen{
		"frozen":                    frozenAs(fixture.StateWith(t, fixture.Steered(nil), "", alice), true),
		"frozen-before":             frozenAs(fixture.StateWith(t, fixture.Steered(nil), "", map[string]string{plan.AnnotationPaused: "true"}), false),
		"frozen-in-a-live-rollout":  frozenAs(fixture.StateWith(t, under(plan.ModeLive), "", alice), true),
		"frozen-in-a-rollback":      frozenAs(fixture.StateWith(t, under(plan.ModeLive), "", with(plan.AnnotationRollback, "14")), true),
		"frozen-in-an-x0y-rollout":  frozenAs(fixture.StateWith(t, under(plan.ModeX0Y), "", alice), true),
		"frozen-after-a-trip":       frozenAs(fixture.StateWith(t, fixture.Steered(nil), "", with(plan.AnnotationTripped, `cluster "dev" has no owner`)), true),
		"frozen-without-a-plan":     frozenAs(none, true),
		"not-frozen":                frozenAs(fixture.StateWith(t, under(plan.ModeLive), "", nil), true),
		"not-frozen-before":         frozenAs(fixture.StateWith(t, fixture.Steered(func(p *plan.Plan) { p.Mode = plan.Observe }), "", nil), false),
		"not-frozen-but-tripped":    frozenAs(fixture.StateWith(t, fixture.Steered(nil), "", map[string]string{plan.AnnotationTripped: `cluster "dev" has no owner`}), true),
		"not-frozen-nor-enforcing":  frozenAs(fixture.StateWith(t, fixture.Steered(nil), "", map[string]string{plan.AnnotationEnforcement: "off"}), true),
		"a-reason-without-a-freeze": frozenAs(fixture.StateWith(t, fixture.Steered(nil), "", map[string]string{plan.AnnotationPausedReason: "a sale"}), false),
	} {
		t.Run(name, func(t *testing.T) {
			table, json := fixture.Printed(t, f)
			fixture.Golden(t, name, table+"--- json\n"+json)
		})
	}
}

func TestFreezeRefusesWhatItCannotDo(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a reason for its end": {[]string{"freeze", "--off", "--reason", "why"}, "--reason: it goes with a freeze, and --off ends one"},
		"a reason of lines":    {[]string{"freeze", "--reason", "a\nb"}, "--reason: it has a line break; one line is what people see"},
		"a reason of bytes":    {[]string{"freeze", "--reason", "a\xffb"}, "--reason: it is not UTF-8"},
		"a novel":              {[]string{"freeze", "--reason", strings.Repeat("ö", 251)}, "--reason: it has 251 characters, and at most 250 are shown"},
		"an unknown output":    {[]string{"resume", "-o", "wide"}, `--output: "wide" is none of table, json and yaml`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, failure := run(t, "", "", test.args...); failure != test.want {
				t.Errorf("it fails with %q, want %q", failure, test.want)
			}
		})
	}
}

func TestWhateverFreezePrintsIsHarmless(t *testing.T) {
	fixture.Harmless(t, map[string]func() say.Result{
		"freeze": func() say.Result { return &frozen{} },
		"frozen": func() say.Result { return &frozen{Frozen: true} },
	})
}

// TestFreezingOnARealAPIServer: what the commands write is in the plan ConfigMap as it should be and nothing beside, and the
// shipped webhook's rule for the plan lets it pass.
func TestFreezingOnARealAPIServer(t *testing.T) {
	s := fixture.StartSite(t)
	for name, run := range map[string]func(*testing.T, *fixture.Site){
		"freeze says why and who, and ends without a trace":      freezes,
		"freeze leaves another one's freeze as it is":            leavesAFreeze,
		"resume shows a trip, asks, and clears it with a freeze": resumes,
		"resume clears no trip that nobody saw":                  clearsNoNewTrip,
		"resume lifts no freeze that nobody saw":                 liftsNoNewFreeze,
	} {
		t.Run(name, func(t *testing.T) { run(t, s) })
	}
}

package planner

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
	"ballast/planner/rollout"
)

func TestEventsSayWhatHappenedAndWhatToDo(t *testing.T) {
	turned := func(o rollout.Outcome) Event {
		e, _ := rolloutTurned(rollout.Progress{Outcome: o, Why: "of 5 replicas 5 are updated and 3 ready"})
		return e
	}
	const why = "of 5 replicas 5 are updated and 3 ready"
	for name, test := range map[string]struct{ got, want Event }{
		"a plan": {planWritten(plan.Plan{Revision: 7}, "c003 is pinned to replica 4"),
			Event{"Normal", "PlanWritten", "revision 7: c003 is pinned to replica 4", false}},
		"a plan that rolls out is the workload's too": {planWritten(plan.Plan{Revision: 7, Rollout: &plan.Rollout{}}, "moves"),
			Event{"Normal", "PlanWritten", "revision 7: moves", true}},
		"a leader without a plan": {leaderElected("planner-1", nil),
			Event{"Normal", "LeaderElected", "planner-1 plans from here on; there is no plan yet", false}},
		"a leader": {leaderElected("planner-1", &plan.Plan{Revision: 7}),
			Event{"Normal", "LeaderElected", "planner-1 plans from here on, from revision 7", false}},
		"a rollout that ended":       {turned(rollout.Finished), Event{"Normal", "RolloutFinished", why, true}},
		"a rollout that turned back": {turned(rollout.TurnedBack), Event{"Warning", "RolloutTurnedBack", why, true}},
		"a rollout that is undone":   {turned(rollout.Reverted), Event{"Warning", "RolloutReverted", why, true}},
		"a rollout that gave up":     {turned(rollout.GaveUp), Event{"Warning", "RolloutGaveUp", why, true}},
		"a rollout that goes on":     {turned(rollout.Waiting), Event{}},
		"break-glass": {breakGlassSeen("kubectl-annotate", time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)), Event{"Warning", "EnforcementOff",
			`field manager "kubectl-annotate", at 2026-11-20T17:00:00Z, wrote the annotation ballast.argoproj.io/enforcement: "off": every write passes, and ballast writes nothing but the plan; ` +
				"`ballast audit` names the user; remove it to enforce again", true}},
		"break-glass by nobody knows whom": {breakGlassSeen("", time.Time{}), Event{"Warning", "EnforcementOff",
			`somebody whose field manager is unknown wrote the annotation ballast.argoproj.io/enforcement: "off": every write passes, and ballast writes nothing but the plan; ` +
				"`ballast audit` names the user; remove it to enforce again", true}},
		"a second writer of a Secret": {contested(rollout.Contested{Secret: "prod-eu", Reverted: 3, Manager: "helm"}), Event{"Warning", "Contested",
			`helm writes data.shard of Secret "prod-eu" back again and again (3 times): stop it, pin the cluster, or annotate the object with ballast.argoproj.io/unmanaged: "true"`, false}},
		"an unknown writer of the workload": {contested(rollout.Contested{Reverted: 4}), Event{"Warning", "Contested",
			`somebody whose field manager is unknown writes the workload back again and again (4 times): stop it, or annotate the object with ballast.argoproj.io/unmanaged: "true"`, true}},
		"a configuration": {configRefused(errors.New("mode: unknown")),
			Event{"Warning", "ConfigRefused", "the new configuration is refused and the last good one stays in force: mode: unknown", false}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProblemIsToldWhenItAppears(t *testing.T) {
	var n news
	orphan := func(message string) Problem {
		return Problem{Phase: PhaseDiscover, Subject: "c000", Kind: "Orphaned", Message: message}
	}
	other := Problem{Phase: PhasePoll, Subject: "apps", Kind: "LowCoverage", Message: "only 3 of 9"}
	for _, step := range []struct {
		name     string
		problems []Problem
		want     []Event
	}{
		{"a first problem", []Problem{orphan("of 3")}, []Event{{"Warning", "Orphaned", "of 3", false}}},
		{"the same in other words", []Problem{orphan("of 4")}, nil},
		{"another beside it", []Problem{orphan("of 4"), other}, []Event{{"Warning", "LowCoverage", "only 3 of 9", false}}},
		{"both over", nil, nil},
		{"the first again, reported twice", []Problem{orphan("of 5"), orphan("of 6")}, []Event{{"Warning", "Orphaned", "of 5", false}}},
	} {
		if diff := cmp.Diff(step.want, n.of(step.problems)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestManyProblemsAreToldInFew(t *testing.T) {
	var n news
	var many []Problem
	for i := range 500 {
		many = append(many, Problem{Phase: PhaseDiscover, Subject: fmt.Sprintf("c%03d", i), Kind: "Orphaned", Message: fmt.Sprint(i)})
	}
	got := n.of(many)
	want := make([]Event, 0, 21)
	for i := range 20 {
		want = append(want, Event{"Warning", "Orphaned", fmt.Sprint(i), false})
	}
	want = append(want, Event{"Warning", "MoreProblems", "and 480 more; `ballast status` lists them", false})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := n.of(many); len(again) != 0 {
		t.Errorf("the next cycle tells %d of them again", len(again))
	}
}

// TestBreakGlassIsToldWhenItIsOpened, by the watch or by a cycle, whichever is first, and once: a cycle that had read the
// plan before the watch told does not close it.
func TestBreakGlassIsToldWhenItIsOpened(t *testing.T) {
	var l Loop
	for i, step := range []struct{ watched, read, want bool }{
		{false, false, false}, {false, true, true}, {true, true, false}, {false, false, false}, {true, true, true}, {true, false, false}, {true, true, false},
	} {
		l.enforced.BreakGlass = step.watched
		if got := l.opened(step.read); got != step.want {
			t.Errorf("step %d, %+v: told is %v", i, step, got)
		}
	}
}

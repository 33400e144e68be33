package rollout

import (
	"fmt"
	"slices"

	"ballast/planner/plan"
)

// stage is one stage of one mode: run waits for what ends it, and enters the next one or ends the rollout.
type stage struct {
	mode  string
	stage plan.Stage
	run   func(*transition)
}

// stages are those of all modes, in the order in which a rollout has them. The doc of the package says for readers what
// each holds and waits for; TestTheDocHasEveryStage holds it to this table, TestTheDocSaysWhatStagesDo its columns to
// rollouts.
func stages() []stage {
	return []stage{
		{plan.ModeDefault, plan.Scaling, of(restarts.replacing)},
		{plan.ModeDefault, plan.Assigning, of(restarts.assigning)},
		{plan.ModeDefault, plan.Restarting, of(restarts.replacing)},
		{plan.ModeDefault, plan.Reverting, of(restarts.replacing)},

		{plan.ModeLive, plan.Scaling, of(live.scaling)},
		{plan.ModeLive, plan.Moving, of(live.moving)},
		{plan.ModeLive, plan.Verifying, of(live.verifying)},
		{plan.ModeLive, plan.Shrinking, of(live.shrinking)},
		{plan.ModeLive, plan.Reverting, of(live.reverting)},

		{plan.ModeX0Y, plan.Draining, of(x0y.draining)},
		{plan.ModeX0Y, plan.Assigning, of(x0y.rewriting)},
		{plan.ModeX0Y, plan.Restoring, of(x0y.restoring)},
		{plan.ModeX0Y, plan.Reverting, of(x0y.returning)},
	}
}

// of is a stage's work on a transition.
func of[M ~struct{ *transition }](run func(M)) func(*transition) {
	return func(t *transition) { run(M{t}) }
}

// run lets the stage that is under way look at what stands. A stop of all replicas that is not wanted any more turns
// back first, and a rollout that another version began ends: what the plan holds is what stands, but for a workload at
// 0.
func (t *transition) run() {
	r := t.Plan.Rollout
	if why := (x0y{t}).stopEnds(); why != "" {
		x0y{t}.revert(why)
		return
	}
	all := stages()
	i := slices.IndexFunc(all, func(s stage) bool { return s.mode == r.Mode && s.stage == r.Stage })
	if i < 0 {
		t.Plan = Abandon(t.Plan)
		t.progress.Outcome = GaveUp
		t.progress.Why = fmt.Sprintf("this version knows no rollout in mode %q with stage %q", r.Mode, r.Stage)
		return
	}
	all[i].run(t)
}

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
// each holds and waits for; TestTheDocHasEveryStage holds it to this table.
func stages() []stage {
	return []stage{
		{plan.ModeDefault, plan.Scaling, (*transition).replacing},
		{plan.ModeDefault, plan.Assigning, (*transition).assigning},
		{plan.ModeDefault, plan.Restarting, (*transition).replacing},
		{plan.ModeDefault, plan.Reverting, (*transition).replacing},

		{plan.ModeLive, plan.Scaling, (*transition).scaling},
		{plan.ModeLive, plan.Moving, (*transition).moving},
		{plan.ModeLive, plan.Verifying, (*transition).verifying},
		{plan.ModeLive, plan.Shrinking, (*transition).shrinking},
		{plan.ModeLive, plan.Reverting, (*transition).reverting},

		{plan.ModeX0Y, plan.Draining, (*transition).draining},
		{plan.ModeX0Y, plan.Assigning, (*transition).rewriting},
		{plan.ModeX0Y, plan.Restoring, (*transition).restoring},
		{plan.ModeX0Y, plan.Reverting, (*transition).returning},
	}
}

// run lets the stage that is under way look at what stands. A stop of all replicas that is not wanted any more turns
// back first, and a rollout that another version began ends: what the plan holds is what stands, but for a workload at
// 0.
func (t *transition) run() {
	r := t.p.Rollout
	if why := t.stopEnds(); why != "" {
		t.revert(why)
		return
	}
	all := stages()
	i := slices.IndexFunc(all, func(s stage) bool { return s.mode == r.Mode && s.stage == r.Stage })
	if i < 0 {
		t.p = Abandon(t.p)
		t.progress.Outcome = GaveUp
		t.progress.Why = fmt.Sprintf("this version knows no rollout in mode %q with stage %q", r.Mode, r.Stage)
		return
	}
	all[i].run(t)
}

package rollout

import (
	"fmt"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// Advance answers the plan that holds next. It is a function of the plan and of what stands: called again, or by
// another leader after a crash, it answers the same. The doc of the package has its table. target is where a rollout in
// mode live goes, a replica for each cluster; nil = nobody knows any more: then what is under way ends safely.
func Advance(v *plan.View, seen observed.State, target map[string]int, o basis.Options, at time.Time) (plan.Plan, Progress) {
	p := v.Plan.Clone()
	if p.Rollout == nil {
		return p, Progress{Outcome: Idle}
	}
	progress := Progress{Outcome: Waiting, Stage: p.Rollout.Stage}
	if frozen(p) {
		progress.Why = fmt.Sprintf("the mode is %s, so the rollout stays where it is", p.Mode)
		return p, progress
	}
	elapsed, most := max(at.Sub(p.Rollout.Since), 0), deadline(*p.Rollout, o)
	progress.Left = max(most-elapsed, 0)
	progress.Late = elapsed >= most
	t := newTransition(basis.Basis{View: v, Plan: p, Seen: seen, Target: target, Options: o, At: at})
	t.progress = progress
	t.run()
	return t.Plan, t.progress
}

// frozen reports whether the mode stops a rollout where it is: Hold lets x0y go on, which may have stopped the
// workload.
func frozen(p plan.Plan) bool {
	return !p.Mode.Enforced() || p.Mode == plan.Hold && p.Rollout.Mode != plan.ModeX0Y
}

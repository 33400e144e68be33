package rollout

import (
	"cmp"
	"fmt"

	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
	"ballast/planner/rollout/layout"
)

// restarts are the stages of mode default: pods read their new env and shards as they restart.
type restarts struct{ *transition }

// assigning waits until every managed Secret carries its replica and, before the workload shrinks, until no Secret at
// all carries one that goes.
func (t restarts) assigning() {
	behind := basis.Unassigned(t.View, t.Seen)
	var stray []string
	if shrinks(t.Plan) {
		limit := t.Plan.Rollout.To().Reach(t.Plan.Target.Kind)
		t.rows.SettleBelow(limit)
		stray = basis.Strays(t.Seen, limit, basis.Present(t.Plan, t.Seen, limit,
			t.Plan.Rollout.From.Reach(t.Plan.Target.Kind)))
	}
	unseen := t.Unseen() || t.Options.Partial && shrinks(t.Plan)
	switch {
	case len(behind) == 0 && len(stray) == 0 && !unseen && t.View.Plan.SameEnforced(t.Plan):
		t.next("every cluster Secret carries its replica")
	case !t.progress.Late:
		t.progress.Why = basis.WaitsFor(behind, stray, unseen)
	case shrinks(t.Plan) && (len(stray) > 0 || unseen):
		t.end(GaveUp, fmt.Sprintf("the workload stays at %d replicas after %s: %s", t.Plan.Replicas,
			t.Options.StageTimeout, basis.WaitsFor(behind, stray, unseen)))
	default:
		t.next(fmt.Sprintf("going on after %s, though %s", t.Options.StageTimeout,
			basis.WaitsFor(behind, stray, unseen)))
	}
}

// replacing waits until every pod runs the newest template and is ready.
func (t restarts) replacing() {
	p := t.Held()
	done := t.Seen.Workload.Settled(p) && (!p.Restarts() || t.Seen.Workload.RestartedSince(p.Rollout.Since, t.At))
	why := replicasSeen(p, t.Seen.Workload)
	if !done {
		why = cmp.Or(t.Kept(), why)
		if !t.progress.Late {
			t.wait(why)
			return
		}
		why = t.late(why)
	}
	switch stage := t.Plan.Rollout.Stage; {
	case stage == plan.Reverting:
		t.end(Reverted, why)
	case stage == plan.Scaling && !done && t.Plan.FreeReplicas: // there is no way back to replicas that are people's; the next decision follows them
		t.end(GaveUp, why)
	case stage == plan.Scaling && !done:
		t.enter(plan.Reverting, TurnedBack, why)
	default:
		t.next(why)
	}
}

// next goes on to the stage that follows, or ends the rollout.
func (t restarts) next(why string) {
	following := plan.Restarting
	switch stage := t.Plan.Rollout.Stage; {
	case stage == plan.Assigning && shrinks(t.Plan):
		following = plan.Scaling
	case stage == plan.Scaling && !shrinks(t.Plan):
		following = plan.Assigning
	case stage == plan.Restarting || !t.Options.RolloutRestart:
		t.end(Finished, why)
		return
	}
	t.enter(following, Advanced, why)
}

// enter begins a stage of mode default: its count and its rows hold with it.
func (t restarts) enter(stage plan.Stage, outcome Outcome, why string) {
	r := t.Plan.Rollout
	t.transition.enter(stage, outcome, why)
	switch stage {
	case plan.Scaling:
		t.hold(r.To())
	case plan.Reverting:
		t.hold(r.From)
	case plan.Assigning:
		layout.Layout{Basis: &basis.Basis{View: plan.NewView(t.Plan, nil), Plan: t.Plan, Seen: t.Seen}}.Move(r.Moves)
	}
	if assignsLater := stage == plan.Scaling && !shrinks(t.Plan); stage != plan.Assigning && !assignsLater {
		r.Moves = nil
	}
}

// shrinks reports whether the rollout ends with a smaller reach than it began with: then clusters leave the replicas
// that go before these do.
func shrinks(p plan.Plan) bool {
	return p.Rollout.From.Reach(p.Target.Kind) > p.Rollout.To().Reach(p.Target.Kind)
}

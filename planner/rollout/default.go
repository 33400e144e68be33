package rollout

import (
	"cmp"
	"fmt"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// restarts are the stages of mode default: pods read their new env and shards as they restart.
type restarts struct{ *transition }

// assigning waits until every managed Secret carries its replica and, before the workload shrinks, until no Secret at
// all carries one that goes.
func (t restarts) assigning() {
	behind := laggards(t.v, t.seen)
	var stray []string
	if shrinks(t.p) {
		limit := t.p.Rollout.To().Reach(t.p.Target.Kind)
		t.rows.settleBelow(limit)
		stray = strays(t.seen, limit, present(t.p, t.seen, limit, t.p.Rollout.From.Reach(t.p.Target.Kind)))
	}
	unseen := t.unseen() || t.o.Partial && shrinks(t.p)
	switch {
	case len(behind) == 0 && len(stray) == 0 && !unseen && t.v.Plan.SameEnforced(t.p):
		t.next("every cluster Secret carries its replica")
	case !t.progress.Late:
		t.progress.Why = waitsFor(behind, stray, unseen)
	case shrinks(t.p) && (len(stray) > 0 || unseen):
		t.end(GaveUp, fmt.Sprintf("the workload stays at %d replicas after %s: %s", t.p.Replicas, t.o.StageTimeout, waitsFor(behind, stray, unseen)))
	default:
		t.next(fmt.Sprintf("going on after %s, though %s", t.o.StageTimeout, waitsFor(behind, stray, unseen)))
	}
}

// present is below which shard a replica is there that may have what carries it: one that people took away is gone,
// whoever carries it.
func present(p plan.Plan, seen observed.State, limit, from int) int {
	if !p.FreeReplicas {
		return from
	}
	return min(from, max(limit, seen.Workload.Count().Replicas))
}

// replacing waits until every pod runs the newest template and is ready.
func (t restarts) replacing() {
	p := t.held()
	done := t.seen.Workload.Settled(p) && (!p.Restarts() || t.seen.Workload.RestartedSince(p.Rollout.Since, t.at))
	why := replicasSeen(p, t.seen.Workload)
	if !done {
		why = cmp.Or(t.kept(), why)
		if !t.progress.Late {
			t.wait(why)
			return
		}
		why = t.late(why)
	}
	switch stage := t.p.Rollout.Stage; {
	case stage == plan.Reverting:
		t.end(Reverted, why)
	case stage == plan.Scaling && !done && t.p.FreeReplicas: // there is no way back to replicas that are people's; the next decision follows them
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
	switch stage := t.p.Rollout.Stage; {
	case stage == plan.Assigning && shrinks(t.p):
		following = plan.Scaling
	case stage == plan.Scaling && !shrinks(t.p):
		following = plan.Assigning
	case stage == plan.Restarting || !t.o.RolloutRestart:
		t.end(Finished, why)
		return
	}
	t.enter(following, Advanced, why)
}

// enter begins a stage of mode default: its count and its rows hold with it.
func (t restarts) enter(stage plan.Stage, outcome Outcome, why string) {
	r := t.p.Rollout
	t.transition.enter(stage, outcome, why)
	switch stage {
	case plan.Scaling:
		t.hold(r.To())
	case plan.Reverting:
		t.hold(r.From)
	case plan.Assigning:
		layout{&ground{v: plan.NewView(t.p, nil), p: t.p, seen: t.seen}}.move(r.Moves)
	}
	if assignsLater := stage == plan.Scaling && !shrinks(t.p); stage != plan.Assigning && !assignsLater {
		r.Moves = nil
	}
}

package rollout

import (
	"fmt"
	"maps"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
	"ballast/planner/rollout/layout"
)

// x0y are the stages of mode x0y: no replica runs while the Secrets are rewritten.
type x0y struct{ *transition }

// begin begins with no replica, and with the env and the rows as they are.
func (t x0y) begin() {
	t.enter(plan.Draining, Advanced, "")
	t.Plan.Replicas = 0
}

// stopEnds says why a stop of all replicas is not to go on; empty where there is none, or where it goes on.
func (t x0y) stopEnds() string {
	switch {
	case !t.Plan.Rollout.Stops():
		return ""
	case t.Options.TurnsBack != "":
		return t.Options.TurnsBack + ", and no replica runs"
	case t.Plan.Mode != plan.Enforce:
		return fmt.Sprintf("the mode is %s, and no replica runs", t.Plan.Mode)
	case t.Plan.FreeReplicas:
		return "the replicas are people's now, and none runs"
	case t.Seen.BroughtBack(t.Plan, t.At):
		return fmt.Sprintf("the workload is at %d replicas, after a stop of more than %s", t.Seen.Workload.Replicas,
			plan.StopHeld)
	}
	return ""
}

// draining waits until no pod is left; then the rows are the new ones.
func (t x0y) draining() {
	r := t.Plan.Rollout
	switch {
	case t.Seen.Stopped():
		r.Was = map[string]int{}
		for name := range r.Moves {
			if row, known := t.Plan.Clusters[name]; known {
				r.Was[name] = row.Replica
			}
		}
		t.rows.Move(r.Moves)
		r.Moves = nil
		t.enter(plan.Assigning, Advanced, "no replica runs")
	case t.progress.Late:
		t.revert(t.late(pods(t.Seen)))
	default:
		t.wait(pods(t.Seen))
	}
}

// rewriting waits until every managed Secret carries its replica, while no pod reads them.
func (t x0y) rewriting() {
	behind, unseen, stopped := basis.Unassigned(t.View, t.Seen), t.Seen.Blind(t.Plan), t.Seen.Stopped()
	why := "every cluster Secret carries its replica"
	switch {
	case !stopped:
		why = pods(t.Seen)
	case len(behind) > 0 || unseen:
		why = basis.WaitsFor(behind, nil, unseen)
	}
	switch done := stopped && len(behind) == 0 && !unseen; {
	case !done && !t.progress.Late:
		t.wait(why)
		return
	case !stopped: // pods of the old env run: those that came now would be beside them
		t.revert(t.late(why))
		return
	case !done: // each Secret has one owner among pods of one env, and healing continues
		why = fmt.Sprintf("going on after %s, though %s", t.deadline(), why)
	}
	t.hold(t.Plan.Rollout.To())
	t.enter(plan.Restoring, Advanced, why)
}

// restoring waits until the replicas are back.
func (t x0y) restoring() {
	r := t.Plan.Rollout
	done, why := t.replaced()
	switch behind := t.behind(); {
	case done:
		t.end(Finished, why)
	case len(behind) > 0 && t.At.Sub(r.Since) < 2*t.deadline():
		t.wait(basis.WaitsFor(behind, nil, false))
	case !t.progress.Late || t.down():
		t.wait(why)
	case r.From == r.To(): // there is no other count to come back to
		t.end(GaveUp, t.late(why))
	default:
		t.revert(t.late(why))
	}
}

// behind are the Secrets of ballast's that still carry a shard at or above the smaller count, where the way back is to
// a larger one: to the pods that run it means replica 0, and to those that would come beside them it means another.
// Their rows are new already, and they are written as soon as they can be.
func (t x0y) behind() []string {
	low, high := t.Plan.Rollout.To().Reach(t.Plan.Target.Kind), t.Plan.Rollout.From.Reach(t.Plan.Target.Kind)
	var names []string
	for _, s := range t.Seen.Sorted() {
		if _, planned := t.Plan.Clusters[s.Name]; planned && s.Managed() && s.Valid && s.Shard >= low && s.Shard < high {
			names = append(names, s.Name)
		}
	}
	return names
}

// revert brings back the count, and the rows as far as they are below both counts: pods of both may run. The others
// come back when all are of one count.
func (t x0y) revert(why string) {
	r := t.Plan.Rollout
	safe := min(r.From.Reach(t.Plan.Target.Kind), r.To().Reach(t.Plan.Target.Kind))
	back := maps.Clone(r.Was)
	maps.DeleteFunc(back, func(_ string, was int) bool { return was >= safe })
	r.Moves = nil
	t.hold(r.From)
	t.rows.Reassign(t.Plan.Replicas, back)
	t.enter(plan.Reverting, TurnedBack, why)
}

// returning waits until the count is what it was, and then for the rows that had to wait for it.
func (t x0y) returning() {
	r := t.Plan.Rollout
	if len(r.Moves) > 0 {
		switch rest := t.answers.Unreturned(); {
		case rest == "":
			t.end(Reverted, "every cluster is back where it was")
		case t.progress.Late:
			t.end(Reverted, t.late(rest))
		default:
			t.wait(rest)
		}
		return
	}
	done, why := t.replaced()
	switch {
	case !done && (!t.progress.Late || t.down() || t.mixed()):
		t.wait(why)
		return
	case !done:
		if w := t.Seen.Workload.Count(); t.Plan.FreeReplicas && w.Replicas > t.Plan.ControllerReplicas {
			// Replicas that are people's now stay: a pod whose number is above its env would be a second replica 0.
			t.Plan.ControllerReplicas = max(t.Plan.ControllerReplicas, w.ControllerReplicas)
		}
		t.end(Reverted, t.late(why))
		return
	}
	back := map[string]int{}
	for name, was := range r.Was {
		if row, known := t.Plan.Clusters[name]; known && row.Replica != was && was < r.From.Replicas {
			back[name] = was
		}
	}
	t.rows.Reassign(r.From.Replicas, back)
	r.Moves, r.Was = back, nil
	if len(back) == 0 {
		t.end(Reverted, why)
		return
	}
	t.enter(plan.Reverting, Advanced, why)
}

// down reports whether the workload still stands at 0, and is ballast's to bring back: no deadline ends a rollout
// there, since afterwards its replicas may be people's.
func (t x0y) down() bool {
	w := t.Seen.Workload
	return w != nil && w.Replicas < 1 && !w.Unmanaged
}

// mixed reports whether pods of the smaller count may still run on the way back to a larger one. The rollout under way
// is what keeps pins and new clusters below both; without it they would have two owners, however long the pods take.
func (t x0y) mixed() bool {
	r, w := t.Plan.Rollout, t.Seen.Workload
	larger := r.From.Reach(t.Plan.Target.Kind) > r.To().Reach(t.Plan.Target.Kind)
	if !larger || w == nil {
		return false
	}
	unmarked := t.Plan.Restarts() && !w.RestartedSince(r.Since, t.At) // a Deployment's pods are replaced only then
	return unmarked || !w.ObservedCurrent || w.Updated < w.Current
}

func pods(s observed.State) string {
	if s.Workload == nil {
		return "the workload was not found"
	}
	return fmt.Sprintf("%d pods run", max(s.Workload.Current, len(s.Pods)))
}

// Abandon answers the plan to write where the rollout under way must be dropped: at least one replica, and every row on
// one of them. What the plan holds is what stands, but for a workload that x0y stopped: that one comes back as it was,
// and is ballast's to bring back, whoever's its replicas are. The plan must be enforced until it stands.
func Abandon(p plan.Plan) plan.Plan {
	p = p.Clone()
	r := p.Rollout
	if r == nil {
		return p
	}
	p.Rollout = nil
	var back map[string]int
	if p.Replicas < 1 {
		p.Replicas, p.ControllerReplicas, p.FreeReplicas = max(r.From.Replicas, 1), r.From.ControllerReplicas, false
		back = r.Was
	}
	g := &basis.Basis{View: plan.NewView(p, nil), Plan: p}
	layout.Layout{Basis: g}.Reassign(p.Replicas, back)
	return g.Plan
}

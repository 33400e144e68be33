package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"ballast/planner/apply"
	"ballast/planner/cycle/belief"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
	"ballast/planner/store/seal"
	"ballast/planner/telemetry"
)

// broughtBack is the reason of the one plan that a leader without the key writes.
const broughtBack = "brought the replicas back that rollout.x0y had stopped: the plan's key is missing, and without it no rollout goes on"

// isBack is its reason once the workload has replicas: if people stop it after that, it is their doing.
const isBack = broughtBack + "; it has replicas again"

// withoutKey is what follows an error that keeps a leader from taking over: a key that is not to be had is another matter
// than an API server that does not answer.
func (l *Loop) withoutKey(ctx context.Context, err error) error {
	if !errors.Is(err, seal.ErrNoKey) {
		return err
	}
	return errors.Join(err, l.bringBack(ctx))
}

// bringBack is all that a leader without the key does. It believes no plan, and yet no fleet stays stopped: where the
// plan that stands, whoever wrote it, holds every replica at 0, the count of before the stop holds from now on, and a
// workload that is at 0 goes there, until it does. Of the rows it writes none.
func (l *Loop) bringBack(ctx context.Context) error {
	base, err := l.Store.Read(ctx)
	if err != nil {
		return err
	}
	claimed := base.Claimed()
	if claimed.Plan == nil || !claimed.Plan.Mode.Enforced() {
		return nil
	}
	c := l.Config()
	in := input.Inputs{Now: l.Clock.Now().UTC(), Config: c, PlannerUser: l.PlannerUser}
	if in.Discovered, in.Workload, err = l.looker.Stands(ctx, c, discover.Known{}, claimed.Plan); err != nil {
		return err
	}
	next, stopped := belief.BringBack(*claimed.Plan, in)
	if stopped {
		next.Target = standing.TargetOf(in.Workload)
		written, err := l.Store.WritePlan(ctx, base, next, 0, configmap.Meta{DecidedAt: in.Now, DecidedBy: l.Identity, Reason: broughtBack})
		if err != nil {
			return fmt.Errorf("bringing back what a rollout stopped: %w", err)
		}
		l.bringing, base = true, written
		if p := written.Claimed().Plan; p != nil {
			next.Revision = p.Revision
		}
		l.Tell(in, telemetry.PlanWritten(next, broughtBack))
	}
	begun := base.Meta.Reason == broughtBack // by a leader that may have ended before it wrote to the workload
	if in.Workload.Replicas > 0 {
		l.bringing = false
		return l.endBringing(ctx, base, begun)
	}
	stoppedByX0Y := l.bringing || begun || next.StopsAll()
	held := !claimed.BreakGlass && !next.FreeReplicas
	if !stoppedByX0Y && !held || next.Target != standing.TargetOf(in.Workload) {
		return nil
	}
	seen := observed.State{Workload: standing.Seen(nil, discover.Fleet{}, discover.Known{}, in.Workload).Workload}
	steps := diff.Between(plan.NewView(next, nil), seen, diff.Options{Now: in.Now}).Steps
	steps = slices.DeleteFunc(steps, func(s diff.Step) bool { _, is := s.(diff.PatchWorkload); return !is })
	l.repairs.ReportSteps(in.Workload, l.Applier.Apply(ctx, next.Target, steps))
	return nil
}

// goesBackUnwritten has a fleet that rollout.x0y stopped come back where no plan can say so: somebody deleted the plan ConfigMap
// meanwhile, and the API server refuses to have it made anew (a quota of ConfigMaps), or refuses each write of it until the stop has
// lapsed, from when on the webhook lets the replicas come back. The plan that says so is this leader's alone; the next one comes to the
// same by its history.
func (l *Loop) goesBackUnwritten(in input.Inputs, base store.Snapshot, failed error) {
	stands := cmp.Or(l.plan.Newest().Plan, l.archive.Newest())
	why, denied := apply.Refusal(failed)
	peoples := in.BreakGlass
	if !denied || peoples || stands == nil {
		return
	}
	held := base.Exists() && stands.StopsAll() && !plan.StopLapsed(stands.Rollout.Since, in.Now)
	if held || !stands.StopsAll() {
		return
	}
	next, stopped := belief.BringBack(*stands, in)
	if !stopped {
		return
	}
	next.Revision++
	doc := l.plan.Newest()
	doc.Plan = &next
	l.plan.Learn(doc)
	l.drifted.raise()
	l.Tell(in, telemetry.BroughtBackUnwritten(l.Store.Plan, why))
}

// endBringing says beside the plan that what was stopped is back, for the next leader.
func (l *Loop) endBringing(ctx context.Context, base store.Snapshot, begun bool) error {
	if !begun {
		return nil
	}
	reason := isBack
	if _, err := l.Store.Annotate(ctx, base, map[string]*string{plan.AnnotationReason: &reason}); err != nil {
		return fmt.Errorf("saying that the replicas are back: %w", err)
	}
	return nil
}

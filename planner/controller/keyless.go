package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"ballast/planner/apply"
	"ballast/planner/controller/archive"
	"ballast/planner/controller/gather"
	"ballast/planner/controller/inforce"
	"ballast/planner/controller/repair"
	"ballast/planner/controller/wiring"
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

// keyless is what a leader does about the plan's key: it makes one anew where the old one vouches for nothing, and
// without one it brings back a fleet that was stopped, and does nothing else.
type keyless struct {
	*wiring.Options
	looker    *gather.Looker
	plan      *inforce.Known
	repairs   *repair.Repairs
	archive   *archive.Archive
	drifted   signal
	unrenewed bool // people were told that the plan's key cannot be made anew
	restoring bool // a plan was written that brings back what x0y stopped, and the workload is at 0 still
}

// after is what follows an error that keeps a leader from taking over: a key that is not to be had is another matter
// than an API server that does not answer.
func (k *keyless) after(ctx context.Context, err error) error {
	if !errors.Is(err, seal.ErrNoKey) {
		return err
	}
	return errors.Join(err, k.bringBack(ctx))
}

// renew makes the key anew where the one that was found vouches for nothing that stands: it may be another's.
func (k *keyless) renew(ctx context.Context, history store.History, foreign []string) error {
	if k.Store.MadeKey() || len(history.Parts) > 0 || history.LastPlan() != nil {
		return nil
	}
	stands, err := k.Store.Read(ctx)
	if err != nil {
		return fmt.Errorf("taking over from the last leader: %w", err)
	}
	nothing := len(foreign) == 0 && stands.Document.PlanErr == nil // leaders that end with their first write must get on
	if nothing || stands.Document.Plan != nil {
		return nil
	}
	if err := k.Store.Renew(ctx); err != nil {
		if !k.unrenewed {
			k.Emit(discover.Workload{}, telemetry.KeyMissing(err))
		}
		k.unrenewed = true
		return err
	}
	k.Emit(discover.Workload{}, telemetry.KeyReplaced())
	return nil
}

// bringBack is all that a leader without the key does. It believes no plan, and yet no fleet stays stopped: where the
// plan that stands, whoever wrote it, holds every replica at 0, the count of before the stop holds from now on, and a
// workload that is at 0 goes there, until it does. Of the rows it writes none.
func (k *keyless) bringBack(ctx context.Context) error {
	base, err := k.Store.Read(ctx)
	if err != nil {
		return err
	}
	claimed := base.Claimed()
	if claimed.Plan == nil || !claimed.Plan.Mode.Enforced() {
		return nil
	}
	c := k.Config()
	in := input.Inputs{Now: k.Clock.Now().UTC(), Config: c, PlannerUser: k.PlannerUser}
	if in.Discovered, in.Workload, err = k.looker.Stands(ctx, c, discover.Known{}, claimed.Plan); err != nil {
		return err
	}
	next, stopped := belief.BringBack(*claimed.Plan, in)
	if stopped {
		next.Target = standing.TargetOf(in.Workload)
		written, err := k.Store.WritePlan(ctx, base, next, 0,
			configmap.Meta{DecidedAt: in.Now, DecidedBy: k.Identity, Reason: broughtBack})
		if err != nil {
			return fmt.Errorf("bringing back what a rollout stopped: %w", err)
		}
		k.restoring, base = true, written
		if p := written.Claimed().Plan; p != nil {
			next.Revision = p.Revision
		}
		k.Tell(in, telemetry.PlanWritten(next, broughtBack))
	}
	begun := base.Meta.Reason == broughtBack // by a leader that may have ended before it wrote to the workload
	if in.Workload.Replicas > 0 {
		k.restoring = false
		return k.endBringing(ctx, base, begun)
	}
	stoppedByX0Y := k.restoring || begun || next.StopsAll()
	held := !claimed.BreakGlass && !next.FreeReplicas
	if !stoppedByX0Y && !held || next.Target != standing.TargetOf(in.Workload) {
		return nil
	}
	seen := observed.State{Workload: standing.Seen(nil, discover.Fleet{}, discover.Known{}, in.Workload).Workload}
	steps := diff.Between(plan.NewView(next, nil), seen, diff.Options{Now: in.Now}).Steps
	steps = slices.DeleteFunc(steps, func(s diff.Step) bool { _, is := s.(diff.PatchWorkload); return !is })
	k.repairs.ReportSteps(in.Workload, k.Applier.Apply(ctx, next.Target, steps))
	return nil
}

// goesBackUnwritten has a fleet that rollout.x0y stopped come back where no plan can say so: somebody deleted the plan
// ConfigMap meanwhile, and the API server refuses to have it made anew (a quota of ConfigMaps), or refuses each write
// of it until the stop has lapsed, from when on the webhook lets the replicas come back. The plan that says so is this
// leader's alone; the next one comes to the same by its history.
func (k *keyless) goesBackUnwritten(in input.Inputs, base store.Snapshot, failed error) {
	stands := cmp.Or(k.plan.Newest().Plan, k.archive.Newest())
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
	doc := k.plan.Newest()
	doc.Plan = &next
	k.plan.SetEnforced(doc)
	k.drifted.raise()
	k.Tell(in, telemetry.BroughtBackUnwritten(k.Store.Plan, why))
}

// endBringing says beside the plan that what was stopped is back, for the next leader.
func (k *keyless) endBringing(ctx context.Context, base store.Snapshot, begun bool) error {
	if !begun {
		return nil
	}
	reason := isBack
	if _, err := k.Store.Annotate(ctx, base, map[string]*string{plan.AnnotationReason: &reason}); err != nil {
		return fmt.Errorf("saying that the replicas are back: %w", err)
	}
	return nil
}

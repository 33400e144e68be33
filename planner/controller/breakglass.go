package controller

import (
	"context"
	"time"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/telemetry"
)

// tellIfSwitchedOff tells people of a break-glass as soon as the watch of the plan tells of it: a cycle may be a minute
// away, and wait for a Prometheus that hangs.
func (r *repairs) tellIfSwitchedOff(ctx context.Context) {
	if !r.plan.switchedOff(r.plan.newest().BreakGlass) {
		return
	}
	_, w, err := r.looker.stands(ctx, r.Config(), r.lookedAt().known, r.plan.newest().Plan)
	if err != nil {
		w = discover.Workload{} // then the event is on the plan ConfigMap alone
	}
	r.tellSwitchedOff(ctx, w)
}

// tellSwitchedOff names who it was, as far as the plan ConfigMap tells.
func (o *Options) tellSwitchedOff(ctx context.Context, w discover.Workload) {
	var manager string
	var at time.Time
	if s, err := o.Store.Read(ctx); err == nil {
		manager, at = s.SetBy(plan.AnnotationEnforcement)
	}
	o.tell(input.Inputs{Workload: w}, telemetry.BreakGlassSeen(manager, at))
}

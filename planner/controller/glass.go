package controller

import (
	"context"
	"time"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/telemetry"
)

// seeGlass tells people of a break-glass as soon as the watch of the plan tells of it: a cycle may be a minute away,
// and wait for a Prometheus that hangs.
func (l *Loop) seeGlass(ctx context.Context) {
	if !l.opened(l.known().BreakGlass) {
		return
	}
	_, w, err := l.stands(ctx, l.Config(), l.lookedAt().known, l.known().Plan)
	if err != nil {
		w = discover.Workload{} // then the event is on the plan ConfigMap alone
	}
	l.tellGlass(ctx, w)
}

// opened reports whether the enforcement was switched off since it was asked last. A cycle may have read the plan
// before the watch told: it is closed when both say so.
func (l *Loop) opened(breakGlass bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.glass
	l.glass = breakGlass || was && l.enforced.BreakGlass
	return breakGlass && !was
}

// tellGlass names who it was, as far as the plan ConfigMap tells.
func (l *Loop) tellGlass(ctx context.Context, w discover.Workload) {
	var manager string
	var at time.Time
	if s, err := l.Store.Read(ctx); err == nil {
		manager, at = s.SetBy(plan.AnnotationEnforcement)
	}
	l.tell(input.Inputs{Workload: w}, telemetry.BreakGlassSeen(manager, at))
}

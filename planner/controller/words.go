package controller

import (
	corev1 "k8s.io/api/core/v1"

	"ballast/planner/telemetry"
)

// PlanGone takes the plan ConfigMap as it was when somebody deleted it.
func (l *Loop) PlanGone(cm *corev1.ConfigMap) {
	defer func() {
		_ = l.panics.caught(telemetry.PhaseWatch, recover()) // it is told of there
		l.Changed()
	}()
	l.plan.RecordUserFields(cm)
}

// PlanSeen takes the plan ConfigMap as a watch saw it. The watch may be behind what this leader wrote: a lower revision
// is left to the next cycle, which reads live, and finds out whether somebody restored a backup. So is everything
// before the first cycle: only that knows the history.
func (l *Loop) PlanSeen(cm *corev1.ConfigMap) {
	defer func() {
		if l.panics.caught(telemetry.PhaseWatch, recover()) != nil {
			l.Changed() // the cycle reads it, too
		}
	}()
	l.plan.RecordUserFields(cm)
	d := l.Store.Judge(cm)
	p := l.plan.Newest().Plan
	behind := p != nil && d.Plan != nil && d.Plan.Revision < p.Revision
	if behind || !l.plan.HasJudged() {
		l.Changed()
		return
	}
	if l.plan.SetEnforced(l.plan.Standing(d)) {
		l.Changed()
	}
}

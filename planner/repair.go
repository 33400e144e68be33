package planner

import (
	"context"
	"maps"
	"time"

	"k8s.io/utils/ptr"

	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// How often repairs look without having been told of a change: soon while a step was put off by its backoff or is held
// back until pods are ready, and rarely otherwise, in case a watch said nothing.
const (
	lookSoon  = time.Second
	lookAgain = 30 * time.Second
)

// PlanSeen takes the plan ConfigMap as a watch saw it. The watch may lag behind what this leader wrote, so that a lower
// revision is passed over; a plan that cannot be read leaves the last good one to enforce, with today's pins and
// annotations.
func (l *Loop) PlanSeen(d plan.Document) {
	l.mu.Lock()
	known := l.enforced.Plan
	switch {
	case d.Plan == nil:
		d.Plan = known
	case known != nil && d.Plan.Revision < known.Revision:
		l.mu.Unlock()
		return
	}
	news := !sameDocument(l.enforced, d)
	l.enforced = d
	if d.Plan != nil {
		l.Metrics.observePlan(*d.Plan)
	}
	l.mu.Unlock()
	if news {
		l.Changed()
	}
}

// sameDocument reports whether two readings of the plan ConfigMap enforce the same: every cycle reads it anew, and its own
// reading must not wake the next one.
func sameDocument(a, b plan.Document) bool {
	if (a.Plan == nil) != (b.Plan == nil) || a.Paused != b.Paused || a.BreakGlass != b.BreakGlass || !maps.Equal(a.Pins, b.Pins) ||
		ptr.Deref(a.AcceptDiscovery, -1) != ptr.Deref(b.AcceptDiscovery, -1) {
		return false
	}
	return a.Plan == nil || a.Plan.Revision == b.Plan.Revision && a.Plan.SameEnforced(*b.Plan)
}

// repair makes what stands agree with the plan, as soon as it does not: what was written while the webhook was away, what
// a rollout's stage asks for, what a pin moved.
func (l *Loop) repair(ctx context.Context) {
	for wait := lookSoon; ; {
		timer := l.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.drifted:
		case <-timer.C():
		}
		timer.Stop()
		unfinished, err := l.mend(ctx)
		if err != nil && ctx.Err() == nil {
			l.Log.Error(err, "repairing failed; it is tried again")
		}
		wait = lookAgain
		if unfinished || err != nil {
			wait = lookSoon
		}
	}
}

// mend looks at what stands, by the cache, and writes what differs. unfinished says that some of it is still to be done.
func (l *Loop) mend(ctx context.Context) (unfinished bool, err error) {
	l.mu.Lock()
	doc := l.enforced
	l.mu.Unlock()
	if doc.Plan == nil || doc.BreakGlass || !doc.Plan.Mode.Enforced() {
		return false, nil
	}
	in, w, err := Look(ctx, l.Reader, l.Config())
	if err != nil {
		return false, err
	}
	fleet, _, _ := discover.Discover(in, discover.Known{}, discover.Options{MaxShrink: 1}, l.Clock.Now()) // only what is there is written to
	view := plan.NewView(*doc.Plan, allPins(doc.Pins, fleet.Clusters))
	agenda := rollout.Steps(view, Seen(fleet, w), doc.BreakGlass)
	l.Metrics.held.Set(float64(len(agenda.Held)))
	if len(agenda.Steps) == 0 {
		return len(agenda.Held) > 0, nil
	}
	started := l.Clock.Now()
	report := l.Applier.Apply(ctx, doc.Plan.Target, agenda.Steps)
	l.Metrics.phaseTime.WithLabelValues("apply").Observe(l.Clock.Since(started).Seconds())
	return l.reportSteps(w, report) || len(agenda.Held) > 0, nil
}

// reportSteps counts what was written and tells of a second writer; unfinished says that something failed or waits.
func (l *Loop) reportSteps(w discover.Workload, r rollout.Report) (unfinished bool) {
	for _, result := range r.Results {
		kind := "shard"
		if _, ok := result.Step.(rollout.PatchWorkload); ok {
			kind = "workload"
		}
		l.Metrics.steps.WithLabelValues(kind, string(result.Outcome)).Inc()
		switch result.Outcome {
		case rollout.Applied:
			l.Log.Info("wrote", "step", result.Step.String())
		case rollout.Refused, rollout.Failed:
			l.Log.Error(result.Err, "a step was not written; it is tried again", "step", result.Step.String())
			unfinished = true
		case rollout.Deferred:
			unfinished = true
		}
	}
	for _, c := range r.Contested {
		l.Emit(w, contested(c))
	}
	return unfinished
}

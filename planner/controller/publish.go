package controller

import (
	"context"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// publishEvery is how often the status is written while nothing in it changes, so that people see how old it is.
const publishEvery = time.Minute

// published is the status as it was written last, and whether it was.
type published struct {
	status  status.Status
	written bool
	read    bool // the last leader's was looked at
	failing bool // people find why in the log
}

// publish writes how things are, after a cycle. That it cannot be written keeps nothing from being done.
func (l *Loop) publish(ctx context.Context, in input.Inputs, out cycle.Outcome, inForce *plan.Plan) {
	l.sayStatus(ctx, status.Of(in, out, inForce, l.Identity, l.lastStatus(ctx)))
}

// publishFailure says that a cycle ended early.
func (l *Loop) publishFailure(ctx context.Context, failure error) {
	before := l.lastStatus(ctx)
	l.sayStatus(ctx, status.Failed(before, failure, l.Identity, l.Clock.Now().UTC().Truncate(time.Second)))
}

// lastStatus is what was said last, by the leader before this one, too: conditions last longer than leaders.
func (l *Loop) lastStatus(ctx context.Context) status.Status {
	if l.published.read {
		return l.published.status
	}
	if before, err := l.Store.ReadStatus(ctx); err == nil {
		l.published.read = true
		if before != nil {
			l.published.status = *before
		}
	}
	return l.published.status
}

func (l *Loop) sayStatus(ctx context.Context, now status.Status) {
	said := l.published.status
	if l.published.written && now.Same(said) && now.LookedAt.Sub(said.LookedAt).Abs() < publishEvery {
		return
	}
	err := l.Store.WriteStatus(ctx, now)
	result := "written"
	if err != nil {
		result = "failed"
		if !l.published.failing && ctx.Err() == nil {
			l.Log.Error(err, "the status is not written; ballast status shows an older one")
		}
	}
	l.Metrics.Writes.WithLabelValues("status", result).Inc()
	l.published = published{status: now, written: err == nil, read: true, failing: err != nil}
}

package controller

import (
	"context"
	"time"

	"ballast/planner/controller/wiring"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// publishEvery is how often the status is written while nothing in it changes, so that people see how old it is.
const publishEvery = time.Minute

// publisher writes the status, which is for people: that it cannot be written keeps nothing from being done.
type publisher struct {
	*wiring.Options
	status  status.Status // as it was written last
	written bool          // and whether it was
	read    bool          // the last leader's was looked at
	failing bool          // people find why in the log
}

// publish writes how things are, after a cycle.
func (p *publisher) publish(ctx context.Context, in input.Inputs, out cycle.Outcome, inForce *plan.Plan) {
	p.sayStatus(ctx, status.Of(in, out, inForce, p.Identity, p.lastStatus(ctx)))
}

// publishFailure says that a cycle ended early.
func (p *publisher) publishFailure(ctx context.Context, failure error) {
	before := p.lastStatus(ctx)
	p.sayStatus(ctx, status.Failed(before, failure, p.Identity, p.Clock.Now().UTC().Truncate(time.Second)))
}

// lastStatus is what was said last. Of the leader before this one it is since when its conditions hold: they last
// longer than leaders.
func (p *publisher) lastStatus(ctx context.Context) status.Status {
	if p.read {
		return p.status
	}
	if before, err := p.Store.ReadStatus(ctx); err == nil {
		p.read = true
		if before != nil {
			p.status = status.Heard(*before, p.Clock.Now())
		}
	}
	return p.status
}

func (p *publisher) sayStatus(ctx context.Context, now status.Status) {
	said := p.status
	if p.written && now.Same(said) && now.LookedAt.Sub(said.LookedAt).Abs() < publishEvery {
		return
	}
	err := p.Store.WriteStatus(ctx, now)
	result := "written"
	if err != nil {
		result = "failed"
		if !p.failing && ctx.Err() == nil {
			p.Log.Error(err, "the status is not written; ballast status shows an older one")
		}
	}
	p.Metrics.Writes.WithLabelValues("status", result).Inc()
	p.status, p.written, p.read, p.failing = now, err == nil, true, err != nil
}

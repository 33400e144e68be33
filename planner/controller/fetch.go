package controller

import (
	"context"
	"reflect"
	"slices"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/telemetry"
)

// waveLook is how often a rollout that waits for owners is looked at. A wave of a few clusters takes seconds, and what
// it waits for, no watch tells of.
const waveLook = 5 * time.Second

// Pause is how long the loop waits for the next cycle where nothing changes: until Prometheus is to be asked again,
// whatever changes ran cycles since it was.
func (l *Loop) Pause() time.Duration {
	interval := time.Duration(l.Config().Interval)
	if p := l.plan.newest().Plan; p != nil && underWay(*p) {
		return min(interval, waveLook)
	}
	if left := interval - l.Clock.Since(l.asks.last.at); left > 0 && left < interval {
		return left
	}
	return interval
}

// underWay reports whether a rollout goes on whose stages wait for what pods say of themselves.
func underWay(p plan.Plan) bool {
	return p.Mode == plan.Enforce && p.Rollout != nil && p.Rollout.Mode != plan.ModeDefault
}

// answer is Prometheus's last answer.
type answer struct {
	at      time.Time
	poll    config.Poll
	of      plan.Target // whose pods the queries select
	fetched []poll.Fetched
	owners  poll.Fetched
}

// lasts is how long an answer is planned with: an interval, and never until its samples are older than they may be.
func lasts(c config.PlannerConfig) time.Duration {
	return min(time.Duration(c.Interval), c.Poll.MaxAge()/2)
}

// fetch asks Prometheus once an interval: the cycles in between are those of a rollout that is looked at every few
// seconds, and those of changes, of which whoever may write Secrets makes as many as he likes.
func (a *asker) fetch(ctx context.Context, f Fetcher, in input.Inputs) ([]poll.Fetched, poll.Fetched) {
	return a.once(in, func() ([]poll.Fetched, poll.Fetched) { return Measure(ctx, f, in.Config, in.Discovered, in.Now) })
}

// once asks for loads where the last answer does not last any more.
func (a *asker) once(in input.Inputs, ask func() ([]poll.Fetched, poll.Fetched)) ([]poll.Fetched, poll.Fetched) {
	age, of := in.Now.Sub(a.last.at), standing.TargetOf(in.Workload)
	fresh := age >= 0 && age < lasts(in.Config)
	same := a.last.of == of && reflect.DeepEqual(a.last.poll, in.Config.Poll)
	if fresh && same {
		return a.last.fetched, a.last.owners
	}
	started := a.Clock.Now()
	now := answer{at: in.Now, poll: in.Config.Poll, of: of}
	now.fetched, now.owners = ask()
	a.last = now
	a.Metrics.PhaseTime.WithLabelValues("fetch").Observe(a.Clock.Since(started).Seconds())
	if slices.ContainsFunc(append(slices.Clone(now.fetched), now.owners), func(f poll.Fetched) bool { return f.Err != "" }) {
		a.Metrics.ObservePhaseError(telemetry.PhaseFetch)
	}
	return a.last.fetched, a.last.owners
}

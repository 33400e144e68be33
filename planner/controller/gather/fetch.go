package gather

import (
	"context"
	"reflect"
	"slices"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/poll"
	"ballast/planner/telemetry"
)

// lasts is how long an answer is planned with: an interval, and never until its samples are older than they may be.
func lasts(c config.PlannerConfig) time.Duration {
	return min(time.Duration(c.Interval), c.Poll.MaxAge()/2)
}

// Fetch asks Prometheus once an interval: the cycles in between are those of a rollout that is looked at every few
// seconds, and those of changes, of which whoever may write Secrets makes as many as he likes.
func (a *Asker) Fetch(ctx context.Context, f poll.Fetcher, in input.Inputs) ([]poll.Fetched, poll.Fetched) {
	return a.Once(in, func() ([]poll.Fetched, poll.Fetched) { return Measure(ctx, f, in.Config, in.Discovered, in.Now) })
}

// AskedAt is when it was asked last.
func (a *Asker) AskedAt() time.Time { return a.last.at }

// Once asks for loads where the last answer does not last any more.
func (a *Asker) Once(in input.Inputs, ask func() ([]poll.Fetched, poll.Fetched)) ([]poll.Fetched, poll.Fetched) {
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

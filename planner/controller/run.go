package controller

import (
	"context"
	"sync"
	"time"

	"ballast/planner/plan"
)

// Run plans until the context ends. It is called on the leader only.
func (l *Loop) Run(ctx context.Context) error {
	l.Metrics.Leader.Set(1)
	defer l.Metrics.Leader.Set(0)
	l.alive()
	var repairs sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	repairs.Go(func() { l.repairs.Run(ctx) })
	defer func() { stop(); repairs.Wait() }() // nothing that ends Run may wait for repairs that do not end
	for {
		started := l.Clock.Now()
		result, err := l.Once(ctx)
		l.Metrics.Cycles.WithLabelValues(result).Inc()
		l.Metrics.CycleTime.Observe(l.Clock.Since(started).Seconds())
		if err != nil && ctx.Err() == nil {
			l.Log.Error(err, "cycle failed; the plan in force stays enforced")
			l.Metrics.ObservePhaseError(l.phase)
			l.status.publishFailure(ctx, err)
		}
		l.alive()
		if !await(ctx, l.Clock, l.changed, l.Pause()) {
			return nil
		}
	}
}

// What Run does in its own time, for whoever lets time pass otherwise, as a simulation does: Once, Pause, Repair and
// Woken.

// Once runs one cycle. Whatever it was given, the process goes on: a cycle that panics has failed, the plan in force
// stays, and the next one reads everything anew. Run's goroutine alone calls it, or nobody runs Run.
func (l *Loop) Once(ctx context.Context) (result string, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.repairs.AddRepaired(l.repaired) // nobody counted them
			result, err = "failed", l.panics.caught(l.phase, p)
		}
		l.repaired = nil
	}()
	if result, err = l.cycle(ctx); err == nil {
		l.panics.calm()
	}
	return result, err
}

// Repair looks once whether what stands agrees with the plan, writes what does not, and answers when to look again.
func (l *Loop) Repair(ctx context.Context) (again time.Duration, err error) {
	return l.repairs.Look(ctx)
}

// Woken are what wakes cycles and repairs before their time. A value in one is a change that it has not taken up yet.
func (l *Loop) Woken() (cycles, repairs <-chan struct{}) { return l.changed, l.drifted }

// waveLook is how often a rollout that waits for owners is looked at. A wave of a few clusters takes seconds, and what
// it waits for, no watch tells of.
const waveLook = 5 * time.Second

// Pause is how long the loop waits for the next cycle where nothing changes: until Prometheus is to be asked again,
// whatever changes ran cycles since it was.
func (l *Loop) Pause() time.Duration {
	interval := time.Duration(l.Config().Interval)
	if p := l.plan.Newest().Plan; p != nil && underWay(*p) {
		return min(interval, waveLook)
	}
	if left := interval - l.Clock.Since(l.asker.AskedAt()); left > 0 && left < interval {
		return left
	}
	return interval
}

// underWay reports whether a rollout goes on whose stages wait for what pods say of themselves.
func underWay(p plan.Plan) bool {
	return p.Mode == plan.Enforce && p.Rollout != nil && p.Rollout.Mode != plan.ModeDefault
}

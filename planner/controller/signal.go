package controller

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"ballast/planner/controller/wiring"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/telemetry"
)

// Quiet time after a change, and the longest a stream of changes may put a cycle off.
const (
	quiet    = time.Second
	mostWait = 5 * time.Second
)

// signal wakes somebody up; any number of changes before he looks are one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// await returns when interval has passed, or when changes came and there was a second of quiet, or five of them without
// any. It returns false when the context ends.
func await(ctx context.Context, c clock.Clock, changes signal, interval time.Duration) bool {
	due := c.NewTimer(interval)
	defer due.Stop()
	var settle clock.Timer
	var settled <-chan time.Time
	var deadline time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C():
			return true
		case <-settled:
			return true
		case <-changes:
			now := c.Now()
			if settle == nil {
				deadline = now.Add(mostWait)
				settle = c.NewTimer(quiet)
				settled = settle.C()
				defer settle.Stop()
				continue
			}
			left := deadline.Sub(now)
			if left <= 0 {
				return true
			}
			settle.Reset(min(quiet, left))
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
			l.repairs.AddRepaired(l.taken) // nobody counted them
			result, err = "failed", l.panics.caught(l.phase, p)
		}
		l.taken = nil
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
	if left := interval - l.Clock.Since(l.asks.AskedAt()); left > 0 && left < interval {
		return left
	}
	return interval
}

// underWay reports whether a rollout goes on whose stages wait for what pods say of themselves.
func underWay(p plan.Plan) bool {
	return p.Mode == plan.Enforce && p.Rollout != nil && p.Rollout.Mode != plan.ModeDefault
}

// panics are the phases that ended in one when they ran last.
type panics struct {
	*wiring.Options
	mu     sync.Mutex
	phases map[string]bool
}

// caught makes a panic an error, which names its type alone: its value may have been read from a Secret. People hear
// of it once, until the phase ends well. It is called with what recover answers, nil where nothing panicked.
func (p *panics) caught(phase string, panicked any) error {
	p.mu.Lock()
	news := panicked != nil && !p.phases[phase]
	if p.phases == nil {
		p.phases = map[string]bool{}
	}
	p.phases[phase] = panicked != nil
	p.mu.Unlock()
	if panicked == nil {
		return nil
	}
	err := fmt.Errorf("a panic of type %T in phase %q", panicked, phase)
	p.Metrics.Panics.WithLabelValues(phase).Inc()
	p.Log.V(1).Info("stack of the panic", "phase", phase, "stack", string(debug.Stack()))
	if news {
		p.Emit(discover.Workload{}, telemetry.PanickedEvent(err))
	}
	return err
}

// calm says that a cycle ended well: what panics next is news again.
func (p *panics) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for phase := range p.phases {
		p.phases[phase] = p.phases[phase] && (phase == telemetry.PhaseRepair || phase == telemetry.PhaseWatch)
	}
}

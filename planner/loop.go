package planner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/store"
)

// Options are what a Loop works with.
type Options struct {
	Config      func() config.PlannerConfig // the newest good one
	Reader      client.Reader               // the cache of Secrets and workloads
	Store       *store.Store
	Applier     *rollout.Applier
	NewFetcher  func(config.PlannerConfig, plan.Target) (Fetcher, error)
	Emit        func(discover.Workload, ...Event)
	Metrics     *Metrics
	Log         logr.Logger
	Clock       clock.Clock
	Identity    string
	PlannerUser string
}

// Loop is the leader's work: a cycle at each interval and after changes, and, beside it, repairs as soon as something
// drifts. Neither waits for the other: a slow Prometheus must not put off a repair.
type Loop struct {
	Options
	changed, drifted signal

	mu       sync.Mutex
	enforced plan.Document // the newest plan known, written or seen, with people's pins and annotations
	memory   Memory
	history  store.History
	news     problemNews
	lastLive time.Time // when the last cycle ended, for the health check
}

// NewLoop makes a loop; Run starts it.
func NewLoop(o Options) *Loop {
	return &Loop{Options: o, changed: newSignal(), drifted: newSignal()}
}

// Changed says that Secrets, the workload or the plan changed: repairs look at once, a cycle after a second of quiet.
func (l *Loop) Changed() {
	l.drifted.raise()
	l.changed.raise()
}

// ConfigChanged says that the configuration file has a new text: taken over, or refused with an error.
func (l *Loop) ConfigChanged(refused error) {
	l.Metrics.configError.Set(boolGauge(refused != nil))
	if refused != nil {
		l.Emit(discover.Workload{}, configRefused(refused))
		return
	}
	l.changed.raise()
}

// Run plans until the context ends. It is called on the leader only.
func (l *Loop) Run(ctx context.Context) error {
	l.Metrics.leader.Set(1)
	defer l.Metrics.leader.Set(0)
	l.begin(ctx)
	var repairs sync.WaitGroup
	repairs.Go(func() { l.repair(ctx) })
	defer repairs.Wait()
	for {
		started := l.Clock.Now()
		result, err := l.cycle(ctx)
		l.Metrics.cycles.WithLabelValues(result).Inc()
		l.Metrics.cycleTime.Observe(l.Clock.Since(started).Seconds())
		if err != nil && ctx.Err() == nil {
			l.Log.Error(err, "cycle failed; the plan in force stays enforced")
		}
		l.alive()
		if !await(ctx, l.Clock, l.changed, time.Duration(l.Config().Interval)) {
			return nil
		}
	}
}

// begin takes over from the last leader: its plan and its memory.
func (l *Loop) begin(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	history, problems, err := l.Store.ReadHistory(ctx)
	if err != nil {
		l.Log.Error(err, "reading the history failed; votes and last good values begin anew")
	}
	for _, p := range problems {
		l.Log.Info("a part of the history was dropped", "problem", p)
	}
	l.history = history
	var dropped []error
	if l.memory, dropped = memoryOf(history); len(dropped) > 0 {
		l.Log.Error(errors.Join(dropped...), "a part of the history was dropped")
	}
	l.Log.Info("leading", "identity", l.Identity)
	l.Emit(discover.Workload{}, leaderElected(l.Identity, l.enforced.Plan))
}

// cycle gathers, decides and writes, once.
func (l *Loop) cycle(ctx context.Context) (result string, err error) {
	c := l.Config()
	in, base, err := l.gather(ctx, c)
	if err != nil {
		return "failed", err
	}
	started := l.Clock.Now()
	out := Cycle(in)
	l.Metrics.phaseTime.WithLabelValues("decide").Observe(l.Clock.Since(started).Seconds())
	l.Metrics.observeOutcome(in, out, l.Clock.Now())
	l.report(in, out)
	result, written, err := l.write(ctx, in, out, base)
	if err != nil || result == "conflict" {
		return result, err
	}
	l.mu.Lock()
	l.memory = out.Memory
	l.mu.Unlock()
	l.drifted.raise()
	return result, l.remember(ctx, out, written)
}

// gather is the I/O before a decision.
func (l *Loop) gather(ctx context.Context, c config.PlannerConfig) (Inputs, store.Snapshot, error) {
	started := l.Clock.Now()
	snapshot, err := l.Store.Read(ctx)
	if err != nil {
		return Inputs{}, snapshot, err
	}
	l.PlanSeen(snapshot.Document)
	l.mu.Lock()
	in := Inputs{Now: l.Clock.Now().UTC().Truncate(time.Second), Config: c, PlannerUser: l.PlannerUser, Memory: l.memory,
		InForce: snapshot.Document.Plan, Pins: snapshot.Document.Pins, Paused: snapshot.Document.Paused, BreakGlass: snapshot.Document.BreakGlass}
	in.InForce, in.Last = l.inForce(in.InForce)
	l.mu.Unlock()
	if in.Discovered, in.Workload, err = Look(ctx, l.Reader, c); err != nil {
		return Inputs{}, snapshot, err
	}
	in.Discovered.AcceptDiscovery = snapshot.Document.AcceptDiscovery
	l.Metrics.phaseTime.WithLabelValues("gather").Observe(l.Clock.Since(started).Seconds())
	fetcher, err := l.NewFetcher(c, targetOf(in.Workload))
	if err != nil {
		return Inputs{}, snapshot, err
	}
	started = l.Clock.Now()
	in.Fetched, in.Owners = Measure(ctx, fetcher, c, in.Discovered, in.Now)
	l.Metrics.phaseTime.WithLabelValues("fetch").Observe(l.Clock.Since(started).Seconds())
	return in, snapshot, nil
}

// inForce judges the plan that was read: one below the highest revision known is a backup that somebody restored, and one
// that cannot be read is none; then the newest that is known is put back. It is called with the lock held.
func (l *Loop) inForce(read *plan.Plan) (inForce, last *plan.Plan) {
	newest := l.history.LastPlan()
	if p := l.enforced.Plan; p != nil && (newest == nil || p.Revision > newest.Revision) {
		newest = p
	}
	if read != nil && (newest == nil || read.Revision >= newest.Revision) {
		return read, nil
	}
	return nil, newest
}

// floor is the highest revision known: the next one is above it.
func (l *Loop) floor() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	floor := l.history.Floor()
	if p := l.enforced.Plan; p != nil {
		floor = max(floor, p.Revision)
	}
	return floor
}

// write stores a plan that changed. A lost race is no error: the winner's ConfigMap starts the next cycle.
func (l *Loop) write(ctx context.Context, in Inputs, out Outcome, base store.Snapshot) (string, store.Snapshot, error) {
	if !out.Changed {
		for _, p := range out.Problems {
			if p.Keeps {
				return "kept", base, nil
			}
		}
		return "quiet", base, nil
	}
	written, err := l.Store.WritePlan(ctx, base, out.Next, l.floor(), store.Meta{DecidedAt: in.Now, DecidedBy: l.Identity, Reason: out.Reason})
	if errors.Is(err, store.ErrConflict) {
		l.Metrics.writes.WithLabelValues("plan", "conflict").Inc()
		l.changed.raise()
		return "conflict", base, nil
	}
	if err != nil {
		l.Metrics.writes.WithLabelValues("plan", "failed").Inc()
		return "failed", base, err
	}
	l.Metrics.writes.WithLabelValues("plan", "written").Inc()
	l.PlanSeen(written.Document)
	p := written.Document.Plan
	if before := base.Document.Plan; before != nil && before.Revision == p.Revision {
		return "quiet", written, nil // it enforces the same, so the store left it alone
	}
	l.Log.Info("wrote the plan", "revision", p.Revision, "mode", p.Mode, "replicas", p.Replicas, "clusters", len(p.Clusters), "reason", out.Reason)
	l.Emit(in.Workload, planWritten(*p, out.Reason))
	return "changed", written, nil
}

// report tells people what is new: problems once, turns of a rollout, an open break-glass.
func (l *Loop) report(in Inputs, out Outcome) {
	var events []Event
	l.mu.Lock()
	events = append(events, l.news.of(out.Problems)...)
	l.mu.Unlock()
	if e, ok := rolloutTurned(out.Progress); ok {
		events = append(events, e)
	}
	if in.BreakGlass {
		events = append(events, breakGlassSeen())
	}
	for _, e := range events {
		l.Log.Info("noticed", "reason", e.Reason, "message", e.Message)
	}
	l.Emit(in.Workload, events...)
	l.Log.V(1).Info("cycle", "clusters", len(out.Fleet.Clusters), "changed", out.Changed, "problems", len(out.Problems), "rollout", out.Progress.Outcome)
}

// remember writes the history when it is due.
func (l *Loop) remember(ctx context.Context, out Outcome, written store.Snapshot) error {
	l.mu.Lock()
	history := l.history
	l.mu.Unlock()
	next, err := historyOf(history, out.Memory)
	if err != nil {
		return fmt.Errorf("packing the history: %w", err)
	}
	if out.Changed {
		next = next.WithPlan(written)
	}
	if !store.Due(history.SavedAt, l.Clock.Now(), out.Changed || out.Decided) {
		return nil
	}
	result := "written"
	saved, err := l.Store.WriteHistory(ctx, next, l.Clock.Now())
	if errors.Is(err, store.ErrConflict) {
		// A leader before this one, or a restore, wrote it: go on from there, with the next cycle's memory.
		result = "conflict"
		saved, _, err = l.Store.ReadHistory(ctx)
	}
	if err != nil {
		result = "failed"
	}
	l.Metrics.writes.WithLabelValues("history", result).Inc()
	if err != nil {
		return err
	}
	if d := saved.Dropped; len(d.Plans)+len(d.Parts) > 0 {
		l.Log.Info("the history is full; its oldest parts were dropped", "plans", d.Plans, "parts", d.Parts)
	}
	l.mu.Lock()
	l.history = saved
	l.mu.Unlock()
	return nil
}

func (l *Loop) alive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastLive = l.Clock.Now()
}

// Alive is the health check of a leader: cycles end. A cycle may take several timeouts of a Prometheus that hangs.
func (l *Loop) Alive() error {
	c := l.Config()
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := 3*time.Duration(c.Interval) + 10*time.Duration(c.Poll.Prometheus.Timeout)
	if since := l.Clock.Since(l.lastLive); !l.lastLive.IsZero() && since > limit {
		return fmt.Errorf("the last cycle ended %s ago, more than %s", since.Round(time.Second), limit)
	}
	return nil
}

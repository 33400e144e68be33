// Package controller is the loop around the decision: it gathers what a cycle needs, writes what it decided, repairs
// what drifts from the plan, and tells people. The leader alone runs it.
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ballast/planner/config"
	"ballast/planner/controller/archive"
	"ballast/planner/controller/gather"
	"ballast/planner/controller/inforce"
	"ballast/planner/controller/repair"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/poll"
	"ballast/planner/poll/pods"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// Loop is the leader's work: a cycle at each interval and after changes, and, beside it, repairs as soon as something
// drifts. Neither waits for the other: a slow Prometheus must not put off a repair. What both know has locks of its
// own.
type Loop struct {
	wiring.Options
	changed, drifted signal

	looker  *gather.Looker
	plan    *inforce.Known
	panics  *panics
	repairs *repair.Repairs
	*health

	// What only the goroutine of Run touches.
	asks      *gather.Asker
	status    *publisher
	leading   bool
	phase     string   // of the cycle under way
	taken     []string // clusters that repairs brought back, which this cycle counts
	memory    memory.Memory
	archive   *archive.Archive
	writes    *writer
	keyless   *keyless
	news      telemetry.News
	blocked   telemetry.BlockedNews
	onSecrets telemetry.SecretNews
}

// NewLoop makes a loop; Run starts it.
func NewLoop(options wiring.Options) *Loop {
	options.Emit = telemetry.PrintableEvents(options.Emit)
	l := &Loop{Options: options, changed: newSignal(), drifted: newSignal()}
	o := &l.Options
	l.looker, l.plan, l.panics = &gather.Looker{Options: o}, &inforce.Known{Options: o}, &panics{Options: o}
	l.repairs = repair.New(o, l.looker, l.plan, &l.onSecrets, l.drifted, l.panics.caught)
	l.archive = &archive.Archive{Options: o, Known: l.plan}
	l.asks, l.status, l.health = &gather.Asker{Options: o}, &publisher{Options: o}, &health{Options: o}
	l.keyless = &keyless{Options: o, looker: l.looker, plan: l.plan, repairs: l.repairs, archive: l.archive,
		drifted: l.drifted}
	l.writes = &writer{Options: o, plan: l.plan, archive: l.archive, keyless: l.keyless, changed: l.changed}
	return l
}

// Changed says that Secrets, the workload or the plan changed: repairs look at once, a cycle after a second of quiet.
func (l *Loop) Changed() {
	l.drifted.raise()
	l.changed.raise()
}

// ConfigChanged says that the configuration file has a new text: taken over, or refused with an error.
func (l *Loop) ConfigChanged(refused error) {
	l.Metrics.ConfigError.Set(telemetry.BoolGauge(refused != nil))
	if refused != nil {
		l.Emit(discover.Workload{}, telemetry.ConfigRefused(refused))
		return
	}
	l.changed.raise()
}

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

// takeOver takes the last leader's memory, once. Without it nothing is planned: a vote would begin anew, and a lost
// plan would be made from scratch.
func (l *Loop) takeOver(ctx context.Context) error {
	if l.leading {
		return nil
	}
	if err := l.archive.Unseal(ctx); err != nil {
		return l.keyless.after(ctx, err)
	}
	history, problems, err := l.Store.ReadHistory(ctx)
	if err != nil {
		return fmt.Errorf("taking over from the last leader: %w", err)
	}
	if err := l.keyless.renew(ctx, history, problems); err != nil {
		return l.keyless.after(ctx, err)
	}
	for _, p := range problems {
		l.Log.Info("a part of the history was dropped", "problem", p)
	}
	if len(problems) > 0 {
		l.Emit(discover.Workload{}, telemetry.HistoryDropped(problems))
	}
	memory, dropped := memory.Of(history.Parts)
	if len(dropped) > 0 {
		l.Log.Error(errors.Join(dropped...), "a part of the history was dropped")
	}
	l.archive.TakeOver(history)
	l.memory, l.leading = memory, true
	newest := l.archive.Newest()
	l.Log.Info("leading", "identity", l.Identity)
	l.Emit(discover.Workload{}, telemetry.LeaderElected(l.Identity, newest))
	return nil
}

// cycle gathers, decides and writes, once.
func (l *Loop) cycle(ctx context.Context) (result string, err error) {
	l.phase = telemetry.PhaseTakeOver
	if err := l.takeOver(ctx); err != nil {
		return "failed", err
	}
	if err := l.archive.HoldHistory(ctx); err != nil {
		l.Log.Error(err, "whether the history stands is not known; it is written when it is due")
	}
	l.phase = telemetry.PhaseGather
	in, base, err := l.gather(ctx, l.Config())
	if err != nil {
		return "failed", err
	}
	for tries := 1; ; tries++ {
		if result, err = l.decide(ctx, in, base); result != "conflict" || err != nil || tries == mostTries {
			return result, err
		}
		if base, err = l.read(ctx); err != nil {
			return "failed", err
		}
		in.Memory.Changes.Pending = l.memory.Changes.Pending // the write that met another's may be what stands now
		l.takeIn(&in, base)
		l.taken = l.repairs.TakeRepaired()
		in.Healed = l.taken
	}
}

// mostTries is how often a cycle decides anew where somebody else wrote the plan ConfigMap meanwhile. What was gathered
// took seconds, to decide and write takes a fraction of one: who writes an annotation a second must keep no plan from
// being written.
const mostTries = 10

// decide decides on what was gathered, and writes what follows.
func (l *Loop) decide(ctx context.Context, in input.Inputs, base store.Snapshot) (result string, err error) {
	started := l.Clock.Now()
	l.phase = telemetry.PhaseDecide
	out := cycle.Run(in)
	if out.Scales() { // before each change of replicas the webhook is asked once more
		in.Enforcement, in.Unheld = l.asks.Enforcement(ctx, in, gather.ProbeFresh)
		out = cycle.Run(in)
	}
	l.Metrics.PhaseTime.WithLabelValues("decide").Observe(l.Clock.Since(started).Seconds())
	out.Problems = append(out.Problems, problem.Printable(l.archive.Locked(base))...)
	l.Metrics.ObserveOutcome(in, out, l.Clock.Now())
	l.archive.KeepTrend(in, out)
	l.phase = telemetry.PhaseStore
	l.report(ctx, in, out)
	l.repairs.Show(in, out)
	if !l.archive.SaveHoldOff(ctx, in, out) {
		out.Done = false // what a person asked for stands until its peace outlives this leader
	}
	if err := l.archive.SaveMoves(ctx, in, out); err != nil {
		l.memory = in.Memory
		l.repairs.AddRepaired(in.Healed)
		return "failed", err
	}
	storing := l.Clock.Now()
	result, written, err := l.writes.write(ctx, in, out, base)
	l.Metrics.PhaseTime.WithLabelValues("store").Observe(l.Clock.Since(storing).Seconds())
	l.memory = out.Memory
	if err != nil || result == "conflict" {
		// What was decided was not written, or only the answer was lost: the vote stands as it was, and nothing moved,
		// until that plan is seen.
		l.memory = l.memory.Unwritten(in.Memory, archive.Undated(out.Next))
		l.repairs.AddRepaired(in.Healed)
		return result, err
	}
	if result == "changed" {
		l.memory.Changes.Pending = nil // any other that is on its way yet meets a plan that it does not know
	}
	l.Metrics.ObserveMoves(out)
	if written, err = l.answer(ctx, in, out, written); err != nil {
		return "failed", err
	}
	l.Metrics.ObserveDecided(written.Meta.DecidedAt)
	l.drifted.raise()
	out.Memory = l.memory // with what was told
	if err := l.archive.Remember(ctx, out, written); err != nil {
		return result, err
	}
	l.status.publish(ctx, in, out, cmp.Or(written.Document.Plan, in.InForce)) // last: a leader that dies soon did something first
	return result, nil
}

// takeIn takes over what the plan ConfigMap says.
func (l *Loop) takeIn(in *input.Inputs, snapshot store.Snapshot) {
	l.archive.KeepPlan(snapshot)
	l.archive.TakeIn(in, snapshot)
	l.judge(snapshot.Document, in.InForce)
	l.Metrics.ObservePlanFault(in.PlanFault)
}

// gather is the I/O before a decision.
func (l *Loop) gather(ctx context.Context, c config.PlannerConfig) (input.Inputs, store.Snapshot, error) {
	started := l.Clock.Now()
	in := input.Inputs{Now: l.Clock.Now().UTC().Truncate(time.Second), Config: c, PlannerUser: l.PlannerUser,
		Memory: l.memory}
	before := l.Store.KeySecret()
	if err := l.archive.Unseal(ctx); err != nil { // before the plan is read, which is judged by it
		in.Keyless = err.Error()
	}
	l.archive.Unsaved = l.archive.Unsaved || before != "" && before != l.Store.KeySecret() // the history is signed anew
	snapshot, err := l.read(ctx)
	if err != nil {
		return input.Inputs{}, snapshot, err
	}
	if in.Discovered, in.Workload, err = l.looker.Stands(ctx, c, l.memory.Known, cmp.Or(l.archive.Newest(), snapshot.Document.Plan)); err != nil {
		return input.Inputs{}, snapshot, err
	}
	l.takeIn(&in, snapshot)
	in.Enforcement, in.Unheld = l.asks.Enforcement(ctx, in, gather.ProbeEvery)
	in.PutBack = l.asks.PutBacks()
	l.Metrics.PhaseTime.WithLabelValues("gather").Observe(l.Clock.Since(started).Seconds())
	if c.Poll.Pods != nil {
		l.askPods(ctx, &in)
	} else if err := l.askPrometheus(ctx, c, &in); err != nil {
		return input.Inputs{}, snapshot, err
	}
	l.phase = telemetry.PhaseGather
	l.taken = l.repairs.TakeRepaired()
	in.Healed, in.Barred, in.Unsized = l.taken, l.repairs.Refused.Now(), l.repairs.Refused.Pods()
	in.Roomless = l.repairs.Refused.Roomless()
	in.Resizes, in.KeepsLimits = l.asks.CanResize(ctx), l.Applier.KeepsLimits()
	in.Surroundings = l.asks.Surroundings(ctx, in)
	in.Conflicts = l.asks.FindConflicts(ctx, in)
	in.Installation = l.asks.Installation(ctx, in)
	return in, snapshot, nil
}

// askPrometheus asks Prometheus for loads, and then the pods for who owns what.
func (l *Loop) askPrometheus(ctx context.Context, c config.PlannerConfig, in *input.Inputs) error {
	fetcher, err := l.NewFetcher(c, standing.TargetOf(in.Workload))
	if err != nil {
		return err
	}
	l.phase = telemetry.PhaseFetch
	in.Fetched, in.Owners = l.asks.Fetch(ctx, fetcher, *in)
	l.phase = telemetry.PhaseObserve
	in.Observed, _ = l.asks.ObservePods(ctx, fetcher, *in)
	return nil
}

// askPods looks at the pods once: for who owns what, and for what each cluster makes. Loads are made of that look and
// those before it.
func (l *Loop) askPods(ctx context.Context, in *input.Inputs) {
	l.phase = telemetry.PhaseObserve
	observed, reports := l.asks.ObservePods(ctx, nil, *in)
	in.Observed = observed
	l.phase = telemetry.PhaseFetch
	fleet := discover.All(in.Discovered, in.Now)
	if !observed.Known && len(observed.Trouble) > 0 {
		reports = []scrape.PodReport{{Err: observed.Trouble[0]}}
	}
	now := l.Clock.Now()
	window := &l.archive.Window
	window.Take(reports, pods.Servers(fleet), now)
	if window.Empty(now) {
		window.Seed(in.Memory.LastGood, fleet, now)
	}
	in.Fetched, in.Owners = l.asks.Once(*in, func() ([]poll.Fetched, poll.Fetched) {
		return window.Fetched(now), gather.OwnersOf(reports)
	})
}

// judge takes over what is enforced: the plan in force, or the last good one where that is none, with people's pins and
// annotations in any case.
func (l *Loop) judge(doc configmap.Document, inForce *plan.Plan) {
	if doc.Plan = inForce; inForce == nil {
		doc.Plan = l.plan.Newest().Plan
	}
	if l.plan.Learn(doc) {
		l.drifted.raise()
	}
	l.plan.MarkJudged()
}

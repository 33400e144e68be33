package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ballast/planner/config"
	"ballast/planner/controller/archive"
	"ballast/planner/controller/gather"
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
		l.repaired = l.repairs.TakeRepaired()
		in.Repaired = l.repaired
	}
}

// mostTries is how often a cycle decides anew where somebody else wrote the plan ConfigMap meanwhile. What was gathered
// took seconds, to decide and write takes a fraction of one: who writes an annotation a second must keep no plan from
// being written.
const mostTries = 10

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
	in.Enforcement, in.Unheld = l.asker.Enforcement(ctx, in, gather.ProbeEvery)
	in.PutBack = l.asker.PutBacks()
	l.Metrics.PhaseTime.WithLabelValues("gather").Observe(l.Clock.Since(started).Seconds())
	if c.Poll.Pods != nil {
		l.askPods(ctx, &in)
	} else if err := l.askPrometheus(ctx, c, &in); err != nil {
		return input.Inputs{}, snapshot, err
	}
	l.phase = telemetry.PhaseGather
	l.repaired = l.repairs.TakeRepaired()
	in.Repaired, in.Barred, in.Unsized = l.repaired, l.repairs.Refused.Now(), l.repairs.Refused.Pods()
	in.Roomless = l.repairs.Refused.Roomless()
	in.Resizes, in.KeepsLimits = l.asker.CanResize(ctx), l.Applier.KeepsLimits()
	in.Surroundings = l.asker.Surroundings(ctx, in)
	in.Conflicts = l.asker.FindConflicts(ctx, in)
	in.Installation = l.asker.Installation(ctx, in)
	return in, snapshot, nil
}

// read reads the plan ConfigMap. What people wrote there is kept in the history, and where somebody deleted it that
// counts as if it stood there still, until it is made anew with it.
func (l *Loop) read(ctx context.Context) (store.Snapshot, error) {
	last := l.plan.LastHeard()
	s, err := l.Store.Read(ctx)
	if err != nil {
		return s, err
	}
	if !s.Exists() {
		restored, err := s.WithWords(l.archive.LastWords())
		if err != nil {
			l.Log.Error(err, "what people wrote into the plan ConfigMap cannot be put back")
		}
		return restored, nil
	}
	l.plan.HearAfter(s.ConfigMap(), last)
	l.archive.KeepWords()
	return s, nil
}

// takeIn takes over what the plan ConfigMap says.
func (l *Loop) takeIn(in *input.Inputs, snapshot store.Snapshot) {
	l.archive.KeepPlan(snapshot)
	l.archive.TakeIn(in, snapshot)
	l.judge(snapshot.Document, in.InForce)
	l.Metrics.ObservePlanFault(in.PlanFault)
}

// judge takes over what is enforced: the plan in force, or the last good one where that is none, with people's pins and
// annotations in any case.
func (l *Loop) judge(doc configmap.Document, inForce *plan.Plan) {
	if doc.Plan = inForce; inForce == nil {
		doc.Plan = l.plan.Newest().Plan
	}
	if l.plan.SetEnforced(doc) {
		l.drifted.raise()
	}
	l.plan.MarkJudged()
}

// askPrometheus asks Prometheus for loads, and then the pods for who owns what.
func (l *Loop) askPrometheus(ctx context.Context, c config.PlannerConfig, in *input.Inputs) error {
	fetcher, err := l.NewFetcher(c, standing.TargetOf(in.Workload))
	if err != nil {
		return err
	}
	l.phase = telemetry.PhaseFetch
	in.Fetched, in.Owners = l.asker.Fetch(ctx, fetcher, *in)
	l.phase = telemetry.PhaseObserve
	in.Observed, _ = l.asker.ObservePods(ctx, fetcher, *in)
	return nil
}

// askPods looks at the pods once: for who owns what, and for what each cluster makes. Loads are made of that look and
// those before it.
func (l *Loop) askPods(ctx context.Context, in *input.Inputs) {
	l.phase = telemetry.PhaseObserve
	observed, reports := l.asker.ObservePods(ctx, nil, *in)
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
	in.Fetched, in.Owners = l.asker.Once(*in, func() ([]poll.Fetched, poll.Fetched) {
		return window.Fetched(now), gather.OwnersOf(reports)
	})
}

// decide decides on what was gathered, and writes what follows.
func (l *Loop) decide(ctx context.Context, in input.Inputs, base store.Snapshot) (result string, err error) {
	started := l.Clock.Now()
	l.phase = telemetry.PhaseDecide
	out := cycle.Run(in)
	if out.Scales() { // before each change of replicas the webhook is asked once more
		in.Enforcement, in.Unheld = l.asker.Enforcement(ctx, in, gather.ProbeFresh)
		out = cycle.Run(in)
	}
	l.Metrics.PhaseTime.WithLabelValues("decide").Observe(l.Clock.Since(started).Seconds())
	out.Problems = append(out.Problems, problem.Printable(l.archive.Locked(base))...)
	l.Metrics.ObserveOutcome(in, out, l.Clock.Now())
	l.archive.KeepTrend(in, out)
	l.phase = telemetry.PhaseStore
	l.report(ctx, in, out)
	l.repairs.Show(in, out)
	if err := ctx.Err(); err != nil {
		return "failed", err
	}
	ctx, end := finishing(ctx)
	defer end()
	if !l.archive.SaveHoldOff(ctx, in, out) {
		out.Done = false // what a person asked for stands until its peace outlives this leader
	}
	if err := l.archive.SaveMoves(ctx, in, out); err != nil {
		l.memory = in.Memory
		l.repairs.AddRepaired(in.Repaired)
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
		l.repairs.AddRepaired(in.Repaired)
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

// finishFor is how long a leader that is told to stop takes to finish the cycle whose plan it writes. The process waits
// for it, and ends after twice as long in any case.
const finishFor = 5 * time.Second

// finishing is the context of what a cycle writes from its first write on: a leader that is told to stop in between
// finishes, as far as that time suffices, so that what limits changes, the plan and the history say the same. A plan
// that is deleted right then would otherwise come back under a revision that somebody has seen already.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	ended, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finishFor, end) })
	return ended, func() { stop(); end() }
}

// report tells people what is new: problems once, and an enforcement that was turned off.
func (l *Loop) report(ctx context.Context, in input.Inputs, out cycle.Outcome) {
	problems := telemetry.OldestFirst(out.Problems, out.Fleet)
	l.Tell(in, append(l.news.Of(problems), l.blocked.Of(out.Waiting(), in.Now)...)...)
	l.Emit(in.Workload, l.onSecrets.Of(telemetry.OnSecrets(problems, out.Fleet), in.Now)...)
	if l.plan.SwitchedOff(in.BreakGlass) {
		l.TellSwitchedOff(ctx, in.Workload)
	}
	l.Log.V(1).Info("cycle", "clusters", len(out.Fleet.Clusters), "changed", out.Changed, "problems", len(out.Problems),
		"rollout", out.Progress.Outcome)
}

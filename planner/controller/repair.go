package controller

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/apply"
	"ballast/planner/change"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/telemetry"
)

// How often repairs look without having been told of a change: soon after a failure, and rarely otherwise, in case a
// watch said nothing. What waits for its backoff is looked at when that ends, and what waits for pods is told of by a
// watch.
const (
	lookSoon  = time.Second
	lookAgain = 30 * time.Second
)

// PlanSeen takes the plan ConfigMap as a watch saw it. The watch may be behind what this leader wrote: a lower revision
// is left to the next cycle, which reads live, and finds out whether somebody restored a backup. So is everything
// before the first cycle: only that knows the history.
func (l *Loop) PlanSeen(cm *corev1.ConfigMap) {
	defer func() {
		if l.caught(telemetry.PhaseWatch, recover()) != nil {
			l.Changed() // the cycle reads it, too
		}
	}()
	l.hear(cm)
	d := l.Store.Judge(cm)
	p := l.known().Plan
	behind := p != nil && d.Plan != nil && d.Plan.Revision < p.Revision
	if behind || !l.hasJudged() {
		l.Changed()
		return
	}
	if l.learn(l.standing(d)) {
		l.Changed()
	}
}

// standing is what a document asks to be enforced: its plan or, where that is missing, cannot be read or was turned
// back, the last good one, with the document's pins and annotations in any case.
func (l *Loop) standing(d plan.Document) plan.Document {
	if p := l.known().Plan; p != nil && (d.Plan == nil || d.Plan.Revision < p.Revision) {
		d.Plan = p
	}
	return d
}

// learn takes over what is to be enforced, and answers whether it is news. Nobody may be woken by what is not: a cycle
// reads the plan, and would be followed by the next one at once.
func (l *Loop) learn(d plan.Document) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reflect.DeepEqual(l.enforced, d) {
		return false
	}
	l.enforced = d
	if d.Plan != nil {
		l.Metrics.ObservePlan(*d.Plan)
	}
	return true
}

func (l *Loop) hasJudged() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.judged
}

func (l *Loop) known() plan.Document {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enforced
}

// repair makes what stands agree with the plan, as soon as it does not: what was written while the webhook was away,
// what a rollout's stage asks for, what a pin moved.
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
		var err error
		if wait, err = l.look(ctx); err != nil && ctx.Err() == nil {
			l.Log.Error(err, "repairing failed; it is tried again")
		}
	}
}

// look repairs, and sees whether people want it. A panic is a repair that failed.
func (l *Loop) look(ctx context.Context) (again time.Duration, err error) {
	defer func() {
		if caught := l.caught(telemetry.PhaseRepair, recover()); caught != nil {
			again, err = lookAgain, caught
		}
	}()
	l.seeGlass(ctx)
	return l.mend(ctx)
}

// mend looks at what stands, by the cache, and writes what differs, by a plan that was read just now: the watch may be
// behind a person's pin or break-glass. It answers when to look again.
func (l *Loop) mend(ctx context.Context) (again time.Duration, err error) {
	if !enforces(l.known()) {
		return lookAgain, nil
	}
	in, w, err := l.stands(ctx, l.Config(), l.lookedAt().known, l.known().Plan)
	if err != nil {
		return lookSoon, err
	}
	// Only what is there is written to.
	fleet := standing.Fleet(input.Inputs{Discovered: in, Memory: l.lookedAt().memory, Now: l.Clock.Now()})
	agenda := l.agenda(l.known(), fleet, w)
	if len(agenda.Steps) > 0 {
		snapshot, err := l.Store.Read(ctx)
		if err != nil {
			return lookSoon, err
		}
		agenda = l.agenda(l.standing(snapshot.Document), fleet, w)
	}
	l.Metrics.Held.Set(float64(len(agenda.Held)))
	if len(agenda.Steps) == 0 {
		return lookAgain, nil
	}
	started := l.Clock.Now()
	report := l.Applier.Apply(ctx, standing.TargetOf(w), agenda.Steps)
	l.Metrics.PhaseTime.WithLabelValues("apply").Observe(l.Clock.Since(started).Seconds())
	return l.reportSteps(w, report), nil
}

func enforces(d plan.Document) bool {
	return d.Plan != nil && d.Plan.Mode.Enforced() && (!d.BreakGlass || d.Plan.StopsAll())
}

// agenda is what is to be written. A plan for another workload says nothing of this one: the next cycle makes it a
// plan.
func (l *Loop) agenda(d plan.Document, fleet discover.Fleet, w discover.Workload) diff.Result {
	if !enforces(d) || d.Plan.Target != standing.TargetOf(w) {
		return diff.Result{}
	}
	last := l.lookedAt()
	seen := standing.Seen(d.Plan.Clusters, fleet, last.known, w)
	seen.Accepted = d.AcceptDiscovery
	seen.Pods, seen.Owned, seen.OwnersKnown, seen.Looked, seen.Given = last.pods, last.owned, last.asked, last.at, l.Applier.Given()
	live := l.Config().Rollout.Live
	o := diff.Options{BreakGlass: d.BreakGlass, Nudge: live != nil && live.Nudge, Now: l.Clock.Now()}
	return diff.Steps(plan.NewView(*d.Plan, standing.Pins(d.Pins, fleet.Clusters)), seen, o)
}

// reportSteps counts what was written and tells of a second writer. It answers when to look again: a step that was
// refused waits for its object to change.
func (l *Loop) reportSteps(w discover.Workload, r apply.Report) (again time.Duration) {
	again = lookAgain
	for _, result := range r.Results {
		kind := "shard"
		switch result.Step.(type) {
		case diff.PatchWorkload:
			kind = "workload"
		case diff.Nudge:
			kind = "nudge"
		}
		l.Metrics.Steps.WithLabelValues(kind, string(result.Outcome)).Inc()
		l.noteBarred(result)
		switch result.Outcome {
		case apply.Applied:
			l.Log.Info("wrote", "step", result.Step.String())
			l.noteHealed(result.Step, w)
			if !result.Until.IsZero() { // a nudge may be lost
				again = min(again, max(result.Until.Sub(l.Clock.Now()), lookSoon))
			}
		case apply.Refused:
			l.Log.Info("left a step unwritten", "step", result.Step.String(), "why", result.Err.Error())
		case apply.Failed:
			l.Log.Error(result.Err, "a step was not written; it is tried again", "step", result.Step.String())
			again = lookSoon
		case apply.Deferred:
			again = min(again, max(result.Until.Sub(l.Clock.Now()), lookSoon))
		}
	}
	for _, c := range r.Contested {
		l.Emit(w, telemetry.Contested(c))
	}
	return again
}

// noteHealed counts a repair that gave a cluster back to its replica: for Argo CD it moved twice.
func (l *Loop) noteHealed(step diff.Step, w discover.Workload) {
	s, ok := step.(diff.PatchShard)
	if !ok || s.Why != diff.Drifted && s.Why != diff.Broken {
		return
	}
	foreign := change.Foreign{Replica: s.Shard, Of: standing.ControllerReplicas(w)}
	if n, err := strconv.Atoi(s.Was); err == nil {
		foreign.Valid, foreign.Shard = true, n
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if owned, known := l.shown.owned[s.Secret]; known {
		foreign.Seen, foreign.Idle = owned.Owners, owned.Idle
	}
	if foreign.Moved() {
		l.healed = append(l.healed, s.Secret)
	}
}

// addHealed gives back what a cycle took and could not write.
func (l *Loop) addHealed(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.healed = append(l.healed, names...)
}

// takeHealed takes the names of those that were healed, each once.
func (l *Loop) takeHealed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.Compact(slices.Sorted(slices.Values(l.healed)))
	l.healed = nil
	return names
}

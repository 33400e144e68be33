package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll/pods"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// patchable sees to it that people can patch the plan ConfigMap, whether or not a plan is written to it.
func (l *Loop) patchable(ctx context.Context, base store.Snapshot) store.Snapshot {
	mended, err := l.Store.Patchable(ctx, base)
	if err != nil {
		l.Log.Error(err, "starting the plan ConfigMap's managedFields anew, which nobody can patch with; it is tried again")
		return base
	}
	return mended
}

// write stores a plan that changed. A lost race is no error: the winner's ConfigMap starts the next cycle.
func (l *Loop) write(ctx context.Context, in input.Inputs, out cycle.Outcome, base store.Snapshot) (string, store.Snapshot, error) {
	base = l.patchable(ctx, base)
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
		l.Metrics.Writes.WithLabelValues("plan", "conflict").Inc()
		l.changed.raise()
		return "conflict", base, nil
	}
	if err != nil {
		l.Metrics.Writes.WithLabelValues("plan", "failed").Inc()
		if full := errors.Is(err, store.ErrFull) || errors.Is(err, plan.ErrTooLarge); full && !l.full {
			l.full = full
			l.tell(in, telemetry.PlanFull(err))
		}
		return "failed", base, err
	}
	l.full = false
	l.learn(written.Document)
	p := written.Document.Plan
	if before := base.Document.Plan; before != nil && before.Revision == p.Revision {
		return "quiet", written, nil // it enforces the same, so the store left it alone
	}
	l.Metrics.Writes.WithLabelValues("plan", "written").Inc()
	l.Log.Info("wrote the plan", "revision", p.Revision, "mode", p.Mode, "replicas", p.Replicas, "clusters", len(p.Clusters), "reason", out.Reason)
	events := []telemetry.Event{telemetry.PlanWritten(*p, out.Reason)}
	if base.Restores() {
		events = append(events, telemetry.WordsPutBack(l.Store.Plan))
	}
	if e, ok := telemetry.RolloutTurned(out.Progress); ok {
		events = append(events, e)
	}
	l.tell(in, events...)
	return "changed", written, nil
}

// report tells people what is new: problems once, and an enforcement that was turned off.
func (l *Loop) report(ctx context.Context, in input.Inputs, out cycle.Outcome) {
	l.tell(in, l.news.Of(out.Problems)...)
	if l.opened(in.BreakGlass) {
		l.tellGlass(ctx, in.Workload)
	}
	l.Log.V(1).Info("cycle", "clusters", len(out.Fleet.Clusters), "changed", out.Changed, "problems", len(out.Problems), "rollout", out.Progress.Outcome)
}

func (l *Loop) tell(in input.Inputs, events ...telemetry.Event) {
	for _, e := range events {
		l.Log.Info("told people", "reason", e.Reason, "message", e.Message)
	}
	l.Emit(in.Workload, events...)
}

// remember writes the history when it is due. A decision that could not be written stays due.
func (l *Loop) remember(ctx context.Context, out cycle.Outcome, written store.Snapshot) error {
	if out.Changed {
		l.history = l.history.WithPlan(written)
	}
	l.unsaved = l.unsaved || out.Changed || out.Decided
	if !store.Due(l.history.SavedAt, l.Clock.Now(), l.unsaved) {
		return nil
	}
	return l.save(ctx, out.Memory)
}

// saveHoldOff saves for how long nothing begins before it writes what that follows from: a leader that dies in between
// must not leave one behind that tries again at once. No plan waits for it, least of all one that is a way back.
func (l *Loop) saveHoldOff(ctx context.Context, in input.Inputs, out cycle.Outcome) (saved bool) {
	if out.Memory.HoldOff.Equal(in.Memory.HoldOff) {
		return true
	}
	m := in.Memory
	m.HoldOff = out.Memory.HoldOff
	l.unsaved = true
	if err := l.save(ctx, m); err != nil {
		l.Log.Error(err, "the hold-off is not saved yet")
	}
	return !l.unsaved
}

// saveMoves saves that clusters move before the plan says so, for a leader that dies in between would leave a budget
// that knows nothing of them; one that counts moves which never came waits longer, and no more. A way back waits for
// nothing, nor does a workload that stands at 0.
func (l *Loop) saveMoves(ctx context.Context, in input.Inputs, out cycle.Outcome) error {
	r := out.Next.Rollout
	begins := r != nil && out.Changed && !r.Since.Equal(in.Memory.Changes.Counted)
	if !begins || len(in.Config.Change.Moves.Rate) == 0 || len(cycle.MovedBy(*r)) == 0 {
		return nil
	}
	if r.Stage == plan.Reverting || out.Next.Replicas == 0 {
		return nil
	}
	m := in.Memory
	m.Changes.Ledger, m.Changes.Counted = out.Memory.Changes.Ledger, out.Memory.Changes.Counted
	l.unsaved = true
	if err := l.save(ctx, m); err != nil {
		return fmt.Errorf("saving that %d clusters move: %w", len(cycle.MovedBy(*r)), err)
	}
	if l.unsaved {
		return fmt.Errorf("saving that %d clusters move: %w", len(cycle.MovedBy(*r)), store.ErrConflict)
	}
	return nil
}

// read reads the plan ConfigMap. What people wrote there is kept in the history, and where somebody deleted it that counts
// as if it stood there still, until it is made anew with it.
func (l *Loop) read(ctx context.Context) (store.Snapshot, error) {
	s, err := l.Store.Read(ctx)
	if err != nil {
		return s, err
	}
	if !s.Exists() {
		restored, err := s.WithWords(l.lastWords())
		if err != nil {
			l.Log.Error(err, "what people wrote into the plan ConfigMap cannot be put back")
		}
		return restored, nil
	}
	l.hear(s.ConfigMap())
	l.keepWords()
	return s, nil
}

// keepWords takes what people wrote last into the history.
func (l *Loop) keepWords() {
	words := l.lastWords()
	if bytes.Equal(words, l.history.Parts[store.PartWords]) {
		return
	}
	l.history.Parts = maps.Clone(l.history.Parts)
	if l.history.Parts == nil {
		l.history.Parts = map[string][]byte{}
	}
	l.history.Parts[store.PartWords], l.unsaved = words, true
	if words == nil {
		delete(l.history.Parts, store.PartWords)
	}
}

// keepPlan takes the plan in force into the history where the leader that wrote it died before it could.
func (l *Loop) keepPlan(s store.Snapshot) {
	l.history.Asked, _ = plan.ParseAsked(s.Document.Rollback, plan.MaxRollback) // what is no revision is refused elsewhere
	if p := s.Document.Plan; p != nil && p.Revision > l.history.Floor() {
		l.history, l.unsaved = l.history.WithPlan(s), true
	}
}

func (l *Loop) save(ctx context.Context, m memory.Memory) error {
	if err := l.unseal(ctx); err != nil {
		l.Log.Error(err, "the plan's key cannot be read again; the one that is known is used on")
	}
	next := l.history
	parts, stale := m.Parts(l.history.Parts)
	stale = append(stale, l.saveWindow(parts))
	next.Parts, next.Anew = parts, append(memory.MadeAnew(), pods.HistoryPart)
	l.tellStale(errors.Join(stale...))
	saved, err := l.Store.WriteHistory(ctx, next, l.Clock.Now())
	if errors.Is(err, store.ErrConflict) {
		l.Metrics.Writes.WithLabelValues("history", "conflict").Inc()
		return l.readAgain(ctx)
	}
	if err != nil {
		l.Metrics.Writes.WithLabelValues("history", "failed").Inc()
		return err
	}
	l.Metrics.Writes.WithLabelValues("history", "written").Inc()
	if d := saved.Dropped; len(d.Plans)+len(d.Parts) > 0 {
		l.Log.Info("the history is full; earlier plans or parts of the memory were dropped", "plans", d.Plans, "parts", d.Parts)
		if !l.crowded {
			l.Emit(discover.Workload{}, telemetry.HistoryFull(d.Plans, d.Parts))
		}
	}
	l.crowded = len(saved.Dropped.Plans)+len(saved.Dropped.Parts) > 0
	l.history, l.unsaved = saved, false
	return nil
}

// readAgain takes over a history that somebody else wrote or deleted, so that the next write is over that one.
func (l *Loop) readAgain(ctx context.Context) error {
	current, _, err := l.Store.ReadHistory(ctx)
	if err != nil {
		return err
	}
	l.history, l.unsaved = l.history.Over(current), true
	return nil
}

// holdHistory has a history that somebody deleted or wrote over written anew with this cycle, and not when it is due
// next: a leader that ends in between would take what is known of moves and failures along.
func (l *Loop) holdHistory(ctx context.Context) error {
	overtaken, err := l.Store.Overtaken(ctx, l.history)
	if err != nil || !overtaken {
		return err
	}
	l.tell(input.Inputs{}, telemetry.HistoryReplaced(l.Store.History))
	return l.readAgain(ctx)
}

// tellStale says, once as long as it lasts, that a part of the history cannot be packed; nil: each can.
func (l *Loop) tellStale(stale error) {
	if stale != nil {
		l.Log.Error(stale, "a part of the history stays as it was")
	}
	if stale != nil && !l.stale {
		l.Emit(discover.Workload{}, telemetry.HistoryStale(stale))
	}
	l.stale = stale != nil
}

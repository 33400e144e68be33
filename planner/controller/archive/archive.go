// Package archive is what a leader keeps for the next one and for people: earlier plans, the memory, people's words, in
// the history ConfigMap.
package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"ballast/planner/apply"
	"ballast/planner/change"
	"ballast/planner/controller/inforce"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/people"
	"ballast/planner/poll/pods"
	"ballast/planner/store"
	"ballast/planner/store/history"
	"ballast/planner/telemetry"
	"ballast/planner/trend"
)

// Archive is the history ConfigMap as this leader keeps it, and the key that vouches for it and for the plan. Only the
// goroutine of Run touches it.
type Archive struct {
	*wiring.Options
	Known   *inforce.Known
	history store.History
	Window  pods.Window // what the pods showed, where there is no Prometheus
	trend   trend.Trend // what replicas carried, for people
	Unsaved bool        // it has a decision that is not written yet
	stale   bool        // people were told that a part of it stays as it was
	crowded bool        // people were told that it has no room for all of it
	keyless bool        // people were told that the key is missing
	denied  bool        // people were told that the API server refuses to have it written
}

// TakeOver goes on with what the last leader kept.
func (a *Archive) TakeOver(history store.History) {
	a.history = history
	a.takeOverWindow()
	a.takeOverTrend()
}

// Unseal reads the key by which this installation's plans are known. Without it none can be believed, and people hear
// why.
func (a *Archive) Unseal(ctx context.Context) error {
	before := a.Store.KeySecret()
	err := a.Store.Unseal(ctx)
	switch {
	case err != nil && !a.keyless && before == "": // a leader that knows it tells of it as a problem
		a.Emit(discover.Workload{}, telemetry.KeyMissing(err))
	case err == nil && before != "" && before != a.Store.KeySecret():
		a.Emit(discover.Workload{}, telemetry.KeyReplaced())
	}
	a.keyless = err != nil
	return err
}

// Newest is the newest plan that is known, nil without one.
func (a *Archive) Newest() *plan.Plan {
	newest := a.history.LastPlan()
	if p := a.Known.Newest().Plan; p != nil && (newest == nil || p.Revision > newest.Revision) {
		newest = p
	}
	return newest
}

// Floor is the highest revision known: the next one is above it.
func (a *Archive) Floor() int64 {
	floor := a.history.Floor()
	if p := a.Known.Newest().Plan; p != nil {
		floor = max(floor, p.Revision)
	}
	return floor
}

// KeepPlan takes the plan in force into the history where the leader that wrote it died before it could.
func (a *Archive) KeepPlan(s store.Snapshot) {
	a.history.Asked, _ = people.ParseAsked(s.Document.Rollback, people.MaxRollback) // what is no revision is refused elsewhere
	if p := s.Document.Plan; p != nil && p.Revision > a.history.Floor() {
		a.history, a.Unsaved = a.history.WithPlan(s), true
	}
}

// KeepWords takes what people wrote last into the history.
func (a *Archive) KeepWords() {
	words := a.LastWords()
	if bytes.Equal(words, a.history.Parts[store.PartWords]) {
		return
	}
	a.history.Parts = maps.Clone(a.history.Parts)
	if a.history.Parts == nil {
		a.history.Parts = map[string][]byte{}
	}
	a.history.Parts[store.PartWords], a.Unsaved = words, true
	if words == nil {
		delete(a.history.Parts, store.PartWords)
	}
}

// LastWords are the latest that are known: the history's are those of the last leader.
func (a *Archive) LastWords() []byte {
	if words, known := a.Known.Words(); known {
		return words
	}
	return a.history.Parts[store.PartWords]
}

// Remember writes the history when it is due. A decision that could not be written stays due.
func (a *Archive) Remember(ctx context.Context, out cycle.Outcome, written store.Snapshot) error {
	if out.Changed {
		a.history = a.history.WithPlan(written)
	}
	a.Unsaved = a.Unsaved || out.Changed || out.Decided
	if !history.Due(a.history.SavedAt, a.Clock.Now(), a.Unsaved) {
		return nil
	}
	_, err := a.save(ctx, out.Memory)
	return err
}

// SaveHoldOff saves for how long nothing begins before it writes what that follows from: a leader that dies in between
// must not leave one behind that tries again at once. No plan waits for it, least of all one that is a way back.
func (a *Archive) SaveHoldOff(ctx context.Context, in input.Inputs, out cycle.Outcome) (saved bool) {
	if out.Memory.HoldOff.Equal(in.Memory.HoldOff) {
		return true
	}
	m := in.Memory
	m.HoldOff, m.LastGood = out.Memory.HoldOff, out.Memory.LastGood
	m.Changes.Pending = out.Memory.PendingOf(in.Memory, Undated(out.Next))
	a.Unsaved = true
	if _, err := a.save(ctx, m); err != nil {
		a.Log.Error(err, "the hold-off is not saved yet")
	}
	return !a.Unsaved
}

// SaveMoves saves what a decision sets before the plan says so, for a leader that dies in between would leave a budget
// that knows nothing of its moves, and limits that know nothing of its restart. Moves that never came are counted all
// the same: who waits longer does no harm. A way back waits for nothing, nor does a workload that stands at 0, a
// decision without moves, and a failover where the API server refuses to have the history written (a quota of
// ConfigMaps), or somebody keeps it from being written: this leader counts it all the same. What was measured is saved
// with it: of what has just moved the next leader takes no lower value than the last one that it knows.
func (a *Archive) SaveMoves(ctx context.Context, in input.Inputs, out cycle.Outcome) error {
	r, was, m := out.Next.Rollout, in.Memory.Changes, in.Memory
	back := r != nil && r.Stage == plan.Reverting
	stopped := in.Workload.Replicas == 0 || in.InForce != nil && in.InForce.Replicas == 0
	if !out.Changed || back || stopped {
		return nil
	}
	moves := 0
	if r != nil && !r.Since.Equal(was.Counted) && len(in.Config.Change.Moves.Rate) > 0 {
		moves = len(ledger.MovedBy(*r))
	}
	begins := r != nil && (in.InForce == nil || in.InForce.Rollout == nil)
	sets := begins || !out.Memory.Changes.Restarted.Equal(was.Restarted)
	tried := was.Pending != nil && in.Now.Sub(was.Pending.Changes.Counted) < justTried // leaders that end with their first write must get on
	if moves == 0 && (!sets || tried) {
		return nil
	}
	m.HoldOff, m.LastGood = out.Memory.HoldOff, out.Memory.LastGood
	m.Changes.Pending = out.Memory.PendingOf(in.Memory, Undated(out.Next))
	if moves > 0 {
		m.Changes.Ledger, m.Changes.Unserved, m.Changes.Counted = out.Memory.Changes.Ledger,
			out.Memory.Changes.Unserved, out.Memory.Changes.Counted
	}
	a.Unsaved = true
	emptied, err := a.save(ctx, m)
	if err == nil && a.Unsaved {
		err = store.ErrConflict
	}
	goesOn := out.Memory.Changes.Cause == change.Failover && (emptied || keptAway(err))
	switch {
	case err == nil:
		return nil
	case moves > 0 && !goesOn:
		return fmt.Errorf("saving that %d clusters move: %w", moves, err)
	}
	a.Log.Error(err, "what a decision limits is not saved before it; it is written all the same", "moves", moves)
	return nil
}

// keptAway reports whether somebody keeps the history from being written: by a rule, or by making it immutable.
func keptAway(err error) bool {
	_, denied := apply.Refusal(err)
	return denied || errors.Is(err, store.ErrImmutable)
}

// justTried is for how long a decision that is pending stands for the next one that was to be saved.
const justTried = 10 * time.Minute

// Undated is the digest of a plan whatever its revision: who decides does not know that yet.
func Undated(p plan.Plan) string {
	p.Revision = 1 // a plan has one
	text, err := codec.Encode(p)
	if err != nil {
		return "" // it is not written either
	}
	return plan.Digest(text)
}

// saveTries is how often a history is written over one that says nothing, or that was deleted, before it stays due:
// anybody may make an empty one, and a decision must not wait for that. One that says something is another leader's,
// and is written over by the next cycle.
const saveTries = 3

// save writes the history with the memory. Where another one stands it stays due; emptied: somebody empties it faster
// than it is written.
func (a *Archive) save(ctx context.Context, m memory.Memory) (emptied bool, err error) {
	for range saveTries {
		if emptied, err = a.saveOver(ctx, m); err != nil || !emptied {
			break
		}
	}
	return emptied, err
}

// saveOver writes the history over the one that was read, and reports whether one without content stands instead.
func (a *Archive) saveOver(ctx context.Context, m memory.Memory) (empty bool, err error) {
	if err := a.Unseal(ctx); err != nil {
		a.Log.Error(err, "the plan's key cannot be read again; the one that is known is used on")
	}
	next := a.history
	parts, stale := m.Parts(a.history.Parts)
	stale = append(stale, a.saveWindow(parts), a.saveTrend(parts))
	next.Parts, next.Anew = parts, append(memory.MadeAnew(), pods.HistoryPart, trend.HistoryPart)
	a.tellStale(errors.Join(stale...))
	saved, err := a.Store.WriteHistory(ctx, next, a.Clock.Now())
	if errors.Is(err, store.ErrConflict) {
		a.Metrics.Writes.WithLabelValues("history", "conflict").Inc()
		return a.readAgain(ctx)
	}
	a.tellDenied(err)
	if err != nil {
		a.history = a.history.Tried(saved)
		a.Metrics.Writes.WithLabelValues("history", "failed").Inc()
		return false, err
	}
	a.Metrics.Writes.WithLabelValues("history", "written").Inc()
	if d := saved.Dropped; len(d.Plans)+len(d.Parts) > 0 {
		a.Log.Info("the history is full; earlier plans or parts of the memory were dropped", "plans", d.Plans, "parts",
			d.Parts)
		if !a.crowded {
			a.Emit(discover.Workload{}, telemetry.HistoryFull(d.Plans, d.Parts))
		}
	}
	a.crowded = len(saved.Dropped.Plans)+len(saved.Dropped.Parts) > 0
	a.history, a.Unsaved = saved, false
	return false, nil
}

// readAgain takes over a history that somebody else wrote or deleted, so that the next write is over that one, and
// reports whether it says anything that a planner wrote.
func (a *Archive) readAgain(ctx context.Context) (empty bool, err error) {
	current, _, err := a.Store.ReadHistory(ctx)
	if err != nil {
		return false, err
	}
	a.history, a.Unsaved = a.history.Over(current), true
	return len(current.Plans)+len(current.Parts) == 0, nil
}

// HoldHistory has a history that somebody deleted or wrote over written anew with this cycle, and not when it is due
// next: a leader that ends in between would take what is known of moves and failures along. An own write whose answer
// was lost, and a label or an annotation of somebody's, are told of nobody.
func (a *Archive) HoldHistory(ctx context.Context) error {
	overtaken, byOthers, err := a.Store.Overtaken(ctx, a.history)
	if err != nil || !overtaken {
		return err
	}
	if byOthers {
		a.Tell(input.Inputs{}, telemetry.HistoryReplaced(a.Store.History))
	}
	_, err = a.readAgain(ctx)
	return err
}

// tellDenied says, once as long as it lasts, that the API server refuses to have the history written.
func (a *Archive) tellDenied(err error) {
	why, denied := apply.Refusal(err)
	if denied && !a.denied {
		a.Tell(input.Inputs{}, telemetry.HistoryRefused(a.Store.History, why))
	}
	a.denied = denied
}

// tellStale says, once as long as it lasts, that a part of the history cannot be packed; nil: each can.
func (a *Archive) tellStale(stale error) {
	if stale != nil {
		a.Log.Error(stale, "a part of the history stays as it was")
	}
	if stale != nil && !a.stale {
		a.Emit(discover.Workload{}, telemetry.HistoryStale(stale))
	}
	a.stale = stale != nil
}

// takeOverWindow goes on with what the last leader saw of the pods.
func (a *Archive) takeOverWindow() {
	part, kept := a.history.Parts[pods.HistoryPart]
	if !kept {
		return
	}
	if err := a.Window.UnmarshalBinary(part); err != nil {
		a.Log.Error(err, "what the pods showed the last leader was dropped; its last good values stand for it")
	}
}

// saveWindow keeps what the pods showed for the next leader, where loads are made of it.
func (a *Archive) saveWindow(parts map[string][]byte) error {
	if a.Config().Poll.Pods == nil {
		delete(parts, pods.HistoryPart)
		return nil
	}
	part, err := a.Window.MarshalBinary()
	if err != nil {
		return fmt.Errorf("packing what the pods showed: %w", err)
	}
	parts[pods.HistoryPart] = part
	return nil
}

// Locked names ballast's ConfigMaps that somebody made immutable: nothing decided can be written there any more,
// whoever writes it, and only deleting them helps.
func (a *Archive) Locked(base store.Snapshot) []problem.Problem {
	var list []problem.Problem
	add := func(name string) {
		list = append(list, problem.Problem{Phase: problem.PhaseStore, Subject: name, Kind: "Immutable",
			Message: fmt.Sprintf(
				"ConfigMap %q is immutable, so that nothing is written to it any more: delete it (kubectl -n %s delete configmap %s; where it stays, take its finalizers out), and ballast makes it anew", name, a.Store.Namespace, name)})
	}
	if base.Immutable() {
		add(a.Store.Plan)
	}
	if a.history.Immutable() {
		add(a.Store.History)
	}
	return list
}

// TakeIn judges a snapshot by the newest plan and the plans that are kept.
func (a *Archive) TakeIn(in *input.Inputs, snapshot store.Snapshot) {
	TakeIn(in, snapshot, a.Newest(), a.history.Plans)
}

// TakeIn takes over what the plan ConfigMap says, judged by the newest plan that is known and the plans that a person
// may go back to. It is the same for the leader and for whoever asks what a leader would do.
func TakeIn(in *input.Inputs, snapshot store.Snapshot, newest *plan.Plan, kept []history.Record) {
	doc := snapshot.Document
	in.InForce, in.Last, in.PlanFault = inforce.Judge(doc, newest)
	if stands := cmp.Or(in.InForce, in.Last); stands != nil && in.Memory.Changes.Pending != nil {
		in.Memory = in.Memory.Resume(Undated(*stands))
	}
	in.Pins, in.PinProblems, in.Paused, in.BreakGlass = doc.Pins, doc.PinProblems, doc.Paused, doc.BreakGlass
	in.Cordon, in.Tripped, in.Rebase, in.Rollback = doc.Cordon, doc.Tripped, doc.Rebase, RollbackTo(kept, doc.Rollback)
	if !snapshot.Exists() {
		in.Memory.Changes.TripTold = false // that the annotation is gone is nobody's word
	}
	in.Discovered.AcceptDiscovery = doc.AcceptDiscovery
}

// RollbackTo reads the annotation by which a person asks for an earlier plan, of those that are kept.
func RollbackTo(kept []history.Record, asked string) *input.Rollback {
	if asked == "" {
		return nil
	}
	revision, ok := people.ParseAsked(asked, people.MaxRollback)
	if !ok {
		return &input.Rollback{Problem: fmt.Sprintf("annotation %s: %q is not a revision; `ballast rollback` lists those that are kept", plan.AnnotationRollback, asked)}
	}
	r := &input.Rollback{Revision: revision, Problem: fmt.Sprintf("revision %d is not kept any more; `ballast rollback` lists those that are", revision)}
	for _, record := range kept {
		if record.Revision != revision {
			continue
		}
		p, err := codec.Decode(record.Text)
		if err != nil {
			r.Problem = fmt.Sprintf("revision %d cannot be read: %v", revision, err)
			break
		}
		r.Plan, r.Problem = &p, ""
	}
	return r
}

// takeOverTrend goes on with what replicas carried under the last leader.
func (a *Archive) takeOverTrend() {
	part, kept := a.history.Parts[trend.HistoryPart]
	if !kept {
		return
	}
	if err := a.trend.UnmarshalBinary(part); err != nil {
		a.Log.Error(err, "what replicas carried under the last leader was dropped; the page's load over time begins anew")
	}
}

// KeepTrend takes in what replicas carry by a cycle that knows loads.
func (a *Archive) KeepTrend(in input.Inputs, out cycle.Outcome) {
	if out.Loads != nil {
		a.trend = a.trend.Take(trend.Of(out.Now, in.Now), out.Memory.Unit)
	}
}

// saveTrend keeps it for people and for the next leader.
func (a *Archive) saveTrend(parts map[string][]byte) error {
	if len(a.trend.Levels) == 0 {
		return nil
	}
	part, err := a.trend.MarshalBinary()
	if err != nil {
		return fmt.Errorf("packing what replicas carried: %w", err)
	}
	parts[trend.HistoryPart] = part
	return nil
}

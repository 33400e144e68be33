// Package repair makes what stands agree with the plan, beside the cycles.
package repair

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"ballast/planner/apply"
	"ballast/planner/change"
	"ballast/planner/controller/gather"
	"ballast/planner/controller/inforce"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/telemetry"
)

// How often repairs look without having been told of a change: soon after a failure, and rarely otherwise, in case a
// watch said nothing. What waits for its backoff is looked at when that ends, and what waits for pods is told of by a
// watch.
const (
	lookSoon  = time.Second
	lookAgain = 30 * time.Second
)

// Repairs make what stands agree with the plan, beside the cycles and in a goroutine of their own.
type Repairs struct {
	*wiring.Options
	drifted <-chan struct{}
	looker  *gather.Looker
	plan    *inforce.Known
	caught  func(phase string, panicked any) error // makes a panic an error
	Refused *refusals
	sizes   *sizeNews
	secrets *telemetry.SecretNews

	mu       sync.Mutex
	shown    shown    // what the last cycle saw
	repaired []string // clusters that were brought back since the last cycle took them
}

// New makes repairs that look as soon as something drifts. What panics in them is caught.
func New(o *wiring.Options, looker *gather.Looker, known *inforce.Known, secrets *telemetry.SecretNews, drifted <-chan struct{}, caught func(string, any) error) *Repairs {
	return &Repairs{Options: o, looker: looker, drifted: drifted, plan: known, caught: caught, Refused: newRefusals(o),
		sizes: &sizeNews{Options: o}, secrets: secrets}
}

// shown is what the last cycle knows, as far as repairs need it: who waits for a nudge, by what the pods said, who
// leads the Secrets of one server, and which Secrets come first of too many.
type shown struct {
	pods   []observed.Pod
	owned  map[string]observed.Owned
	owners bool // the pods were asked who owns what
	at     time.Time
	memory memory.Memory
	known  discover.Known

	resizes *bool // whether the API server changes the size of a running pod; nil: unknown
}

// Show hands over what the last cycle saw and decided.
func (r *Repairs) Show(in input.Inputs, out cycle.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	memory := memory.Memory{Known: discover.Known{Leaders: out.Memory.Known.Leaders}, Servers: out.Memory.Servers,
		Made: out.Memory.Made}
	pods := out.Memory.Changes.Replicas.Dated(in.Observed.Pods, in.Now)
	r.shown = shown{pods, out.Verdict.Owned, in.Observed.Reported.Asked, in.Now, memory, out.Memory.Known, in.Resizes}
}

func (r *Repairs) lookedAt() shown {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown
}

// Run makes what stands agree with the plan, as soon as it does not: what was written while the webhook was away,
// what a rollout's stage asks for, what a pin moved.
func (r *Repairs) Run(ctx context.Context) {
	for wait := lookSoon; ; {
		timer := r.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.drifted:
		case <-timer.C():
		}
		timer.Stop()
		var err error
		if wait, err = r.Look(ctx); err != nil && ctx.Err() == nil {
			r.Log.Error(err, "repairing failed; it is tried again")
			r.Metrics.ObservePhaseError(telemetry.PhaseApply)
		}
	}
}

// Look repairs, and sees whether people want it. A panic is a repair that failed.
func (r *Repairs) Look(ctx context.Context) (again time.Duration, err error) {
	defer func() {
		if caught := r.caught(telemetry.PhaseRepair, recover()); caught != nil {
			again, err = lookAgain, caught
		}
	}()
	r.tellIfSwitchedOff(ctx)
	return r.mend(ctx)
}

// tellIfSwitchedOff tells people of a break-glass as soon as the watch of the plan tells of it: a cycle may be a minute
// away, and wait for a Prometheus that hangs.
func (r *Repairs) tellIfSwitchedOff(ctx context.Context) {
	if !r.plan.SwitchedOff(r.plan.Newest().BreakGlass) {
		return
	}
	_, w, err := r.looker.Stands(ctx, r.Config(), r.lookedAt().known, r.plan.Newest().Plan)
	if err != nil {
		w = discover.Workload{} // then the event is on the plan ConfigMap alone
	}
	r.TellSwitchedOff(ctx, w)
}

// mend looks at what stands, by the cache, and writes what differs, by a plan that was read just now: the watch may be
// behind a person's pin or break-glass. It answers when to look again.
func (r *Repairs) mend(ctx context.Context) (again time.Duration, err error) {
	if !enforces(r.plan.Newest()) {
		return lookAgain, nil
	}
	in, w, err := r.looker.Stands(ctx, r.Config(), r.lookedAt().known, r.plan.Newest().Plan)
	if err != nil {
		return lookSoon, err
	}
	// Only what is there is written to.
	fleet := standing.Fleet(input.Inputs{Discovered: in, Memory: r.lookedAt().memory, Now: r.Clock.Now()})
	due := r.due(r.plan.Newest(), fleet, w)
	if len(due.Steps) > 0 {
		snapshot, err := r.Store.Read(ctx)
		if err != nil {
			return lookSoon, err
		}
		due = r.due(r.plan.Standing(snapshot.Document), fleet, w)
	}
	r.Metrics.Held.Set(float64(len(due.Held)))
	r.sizes.tell(w, due.Held)
	if len(due.Steps) == 0 {
		return lookAgain, nil
	}
	started := r.Clock.Now()
	report := r.Applier.Apply(ctx, standing.TargetOf(w), due.Steps)
	r.Metrics.PhaseTime.WithLabelValues("apply").Observe(r.Clock.Since(started).Seconds())
	r.Emit(w, r.secrets.Of(onSecrets(report.Results, in.Secrets), r.Clock.Now())...)
	return r.ReportSteps(w, report), nil
}

func enforces(d configmap.Document) bool {
	return d.Plan != nil && d.Plan.Mode.Enforced() && (!d.BreakGlass || d.Plan.StopsAll())
}

// due is what is to be written. A plan for another workload says nothing of this one: the next cycle makes it a
// plan.
func (r *Repairs) due(d configmap.Document, fleet discover.Fleet, w discover.Workload) diff.Result {
	if !enforces(d) || d.Plan.Target != standing.TargetOf(w) {
		return diff.Result{}
	}
	last := r.lookedAt()
	seen := standing.Seen(d.Plan.Clusters, fleet, last.known, w)
	seen.Accepted = d.AcceptDiscovery
	seen.Pods, seen.Owned, seen.OwnersKnown, seen.Looked, seen.Repaired = last.pods, last.owned, last.owners, last.at,
		r.Applier.Repaired()
	live := r.Config().Rollout.Live
	o := diff.Options{BreakGlass: d.BreakGlass, Nudge: live != nil && live.Nudge, Now: r.Clock.Now()}
	o.NoResize, o.KeepsLimits, o.Refused = last.resizes != nil && !*last.resizes, r.Applier.KeepsLimits(),
		r.Refused.Pods()
	o.Roomless = r.Refused.Roomless()
	return diff.Between(plan.NewView(*d.Plan, standing.Pins(d.Pins, fleet.Clusters)), seen, o)
}

// ReportSteps counts what was written and tells of a second writer. It answers when to look again: a step that was
// refused waits for its object to change.
func (r *Repairs) ReportSteps(w discover.Workload, done apply.Report) (again time.Duration) {
	again = lookAgain
	for _, result := range done.Results {
		r.Metrics.Steps.WithLabelValues(telemetry.KindOf(result.Step), string(result.Outcome)).Inc()
		r.Refused.note(result)
		r.sizes.note(w, result)
		switch result.Outcome {
		case apply.Applied:
			r.Log.Info("wrote", "step", result.Step.String())
			r.Metrics.ObservePutBack(result.Step)
			r.noteRepaired(result.Step, w)
			if !result.Until.IsZero() { // a nudge may be lost
				again = min(again, max(result.Until.Sub(r.Clock.Now()), lookSoon))
			}
		case apply.Refused:
			r.Log.Info("left a step unwritten", "step", result.Step.String(), "why", result.Err.Error())
		case apply.Failed:
			r.Log.Error(result.Err, "a step was not written; it is tried again", "step", result.Step.String())
			again = lookSoon
		case apply.Deferred:
			again = min(again, max(result.Until.Sub(r.Clock.Now()), lookSoon))
		}
	}
	if slices.ContainsFunc(done.Results, func(result apply.Result) bool { return result.Outcome == apply.Failed }) {
		r.Metrics.ObservePhaseError(telemetry.PhaseApply)
	}
	for _, c := range done.Contested {
		r.Emit(w, telemetry.Contested(c))
	}
	return again
}

// onSecrets is what became of writes to cluster Secrets, told on each, the oldest Secret first: there is not room for
// any number.
func onSecrets(results []apply.Result, secrets []discover.Secret) (events []telemetry.Event) {
	of := make(map[string]discover.Secret, len(secrets))
	for _, s := range secrets {
		of[s.Name] = s
	}
	for _, result := range results {
		step, ok := result.Step.(diff.PatchShard)
		if !ok {
			continue
		}
		why, refused := apply.Refusal(result.Err)
		switch {
		case result.Outcome == apply.Applied:
			events = append(events, telemetry.ShardWritten(step, of[step.Secret].UID))
		case refused:
			events = append(events, telemetry.ShardRefused(step, of[step.Secret].UID, why))
		}
	}
	slices.SortStableFunc(events, func(a, b telemetry.Event) int { return of[a.Secret.Name].Created.Compare(of[b.Secret.Name].Created) })
	return events
}

// noteRepaired counts a repair that gave a cluster back to its replica: for Argo CD it moved twice.
func (r *Repairs) noteRepaired(step diff.Step, w discover.Workload) {
	s, ok := step.(diff.PatchShard)
	if !ok || s.Why != diff.Drifted && s.Why != diff.Broken {
		return
	}
	foreign := change.ForeignShard{Replica: s.Shard, Of: standing.ControllerReplicas(w)}
	if n, err := strconv.Atoi(s.Was); err == nil {
		foreign.Valid, foreign.Shard = true, n
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if owned, known := r.shown.owned[s.Secret]; known {
		foreign.Seen, foreign.Idle = owned.Owners, owned.Idle
	}
	if foreign.Moved() {
		r.repaired = append(r.repaired, s.Secret)
	}
}

// AddRepaired gives back what a cycle took and could not write.
func (r *Repairs) AddRepaired(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.repaired = append(r.repaired, names...)
}

// TakeRepaired takes the names of those that were brought back, each once.
func (r *Repairs) TakeRepaired() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := slices.Compact(slices.Sorted(slices.Values(r.repaired)))
	r.repaired = nil
	return names
}

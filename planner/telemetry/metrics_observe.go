package telemetry

import (
	"math"
	"strconv"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/measure"
	"ballast/planner/plan"
)

// ObserveOutcome shows what a cycle saw and decided.
func (m *Metrics) ObserveOutcome(in input.Inputs, out cycle.Outcome, now time.Time) {
	m.lastCycle.Set(float64(now.UnixMilli()) / 1000)
	m.clusters.Set(float64(len(out.Fleet.Clusters)))
	m.breakGlass.Set(BoolGauge(in.BreakGlass))
	m.paused.Set(BoolGauge(in.Paused))
	m.replicas.WithLabelValues("planned").Set(float64(out.Next.Replicas))
	m.replicas.WithLabelValues("env").Set(float64(standing.ControllerReplicas(in.Workload)))
	m.replicas.WithLabelValues("found").Set(float64(in.Workload.Replicas))
	m.replicas.WithLabelValues("ready").Set(float64(in.Workload.ReadyReplicas))
	m.mode.Reset()
	m.mode.WithLabelValues(string(out.Next.Mode)).Set(1)
	m.rollout.Reset()
	if r := out.Next.Rollout; r != nil {
		m.rollout.WithLabelValues(string(r.Stage)).Set(1)
	}
	m.load.Reset()
	m.count.Reset()
	for _, r := range out.Now {
		id := strconv.Itoa(r.ID)
		m.load.WithLabelValues(id).Set(r.TotalLoad.Float())
		m.count.WithLabelValues(id).Set(float64(len(r.LoadIndexes)))
	}
	m.imbalance.Reset()
	m.moves.Set(0)
	m.votes.Set(float64(len(out.Memory.Votes.Ballots)))
	if out.Loads != nil {
		m.imbalance.WithLabelValues("plan").Set(outcome.Imbalance(out.Now))
	}
	if out.Candidate != nil {
		m.imbalance.WithLabelValues("candidate").Set(outcome.Imbalance(out.Candidate.Replicas))
		m.moves.Set(float64(len(out.Candidate.Moves)))
	}
	m.observeProblems(out)
	m.observeValues(out.Table)
	m.observeOwnership(in, out)
	m.sizes.observe(out.Sizing)
	m.counts.observe(out.Counts, out.Blocked)
	m.blocked.observe(out)
	m.basis.observe(out)
	m.each.observe(in.Config.Telemetry.Clusters, out)
}

func (m *Metrics) observeProblems(out cycle.Outcome) {
	m.problems.Reset()
	for _, p := range out.Problems {
		m.problems.WithLabelValues(string(p.Phase), p.Kind).Inc()
	}
}

func (m *Metrics) observeValues(t measure.Table) {
	m.values.Reset()
	for _, c := range t.Columns {
		for _, flag := range measure.Flags() {
			m.values.WithLabelValues(c.ID, flag.String()).Set(0)
		}
		for _, flag := range c.Flags {
			m.values.WithLabelValues(c.ID, flag.String()).Inc()
		}
	}
}

func (m *Metrics) observeOwnership(in input.Inputs, out cycle.Outcome) {
	m.orphaned.Set(float64(len(out.Verdict.Orphans)))
	m.doubled.Set(float64(len(out.Verdict.Doubled)))
	m.asked.Set(BoolGauge(in.Observed.Reported.Asked))
	m.unwell.Reset()
	for _, s := range out.Replicas.Sick {
		m.unwell.WithLabelValues(string(s.Reason)).Inc()
	}
	m.cordoned.Set(float64(len(out.Cordoned)))
	m.budget.Reset()
	if out.Budget.Left != math.MaxInt {
		m.budget.WithLabelValues().Set(float64(out.Budget.Left))
	}
	m.tripped.Set(BoolGauge(in.Tripped != "" || out.Memory.Changes.Trip != nil))
	m.wave.Reset()
	if r := out.Next.Rollout; r != nil && r.Mode == plan.ModeLive {
		m.wave.WithLabelValues("present").Set(float64(r.Wave))
		m.wave.WithLabelValues("expected").Set(float64(r.Waves))
	}
}

// ObserveMoves counts the moves that entered the ledger, once what was decided is written: else the next cycle counts
// them.
func (m *Metrics) ObserveMoves(out cycle.Outcome) {
	for cause, n := range out.Counted {
		m.Moved.WithLabelValues(string(cause)).Add(float64(n))
	}
}

// ObservePlan shows the plan in force.
func (m *Metrics) ObservePlan(p plan.Plan) { m.revision.Set(float64(p.Revision)) }

// ObserveDecided shows when the plan in force was decided; the zero time says that nobody knows.
func (m *Metrics) ObserveDecided(at time.Time) {
	m.Work.Decided.Reset()
	if !at.IsZero() {
		m.Work.Decided.WithLabelValues().Set(float64(at.Unix()))
	}
}

// ObservePlanFault counts a plan that was not believed.
func (m *Metrics) ObservePlanFault(kind string) {
	if kind != "" {
		m.PlanRefused.WithLabelValues(kind).Inc()
	}
}

// ObservePhaseError counts a run of a phase in which something failed.
func (m *Metrics) ObservePhaseError(phase string) { m.Work.Errors.WithLabelValues(phase).Inc() }

// ObservePutBack counts a step that was written, where it put back what others had changed. What a rollout or a person
// asked for is none.
func (m *Metrics) ObservePutBack(step diff.Step) {
	var why diff.Why
	switch s := step.(type) {
	case diff.PatchShard:
		why = s.Why
	case diff.PatchWorkload:
		why = s.Why
	}
	switch why {
	case diff.Unstamped, diff.Broken, diff.Drifted, diff.Stopped:
		m.Work.PutBack.WithLabelValues(KindOf(step), string(why)).Inc()
	}
}

package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/diff"
)

// PhaseApply is the phase of the repairs' writes, as durations and errors name it.
const PhaseApply = "apply"

// erringPhases is the closed set of what errors are counted by.
func erringPhases() []string {
	return []string{PhaseTakeOver, PhaseGather, PhaseFetch, PhaseObserve, PhaseDecide, PhaseStore, PhaseApply}
}

// WorkMetrics are what a planner's work met: errors, what others had changed, and the age of what it decided last.
type WorkMetrics struct {
	Errors  *prometheus.CounterVec
	PutBack *prometheus.CounterVec
	Decided *prometheus.GaugeVec
}

func newWorkMetrics(r prometheus.Registerer) WorkMetrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "ballast", Subsystem: "planner", Name: name,
			Help: help}, labels)
	}
	m := WorkMetrics{
		Errors: counters("phase_errors_total", "Runs of a cycle's parts in which something failed: a query is fetch, "+
			"a pod that shows nothing is observe, a write to Secrets or the workload is apply.", "phase"),
		PutBack: counters("drift_put_back_total",
			"Writes that put back what others had changed or left out, by what was written and why.", "step", "reason"),
		Decided: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "planner",
			Name: "plan_decided_timestamp_seconds",
			Help: "When the plan in force was decided, in Unix time; time() minus this is its age. Absent without a plan."}, nil),
	}
	for _, phase := range erringPhases() {
		m.Errors.WithLabelValues(phase)
	}
	for _, why := range []diff.Why{diff.Unstamped, diff.Broken, diff.Drifted} {
		m.PutBack.WithLabelValues(StepShard, string(why))
	}
	for _, why := range []diff.Why{diff.Drifted, diff.Stopped} {
		m.PutBack.WithLabelValues(StepWorkload, string(why))
	}
	r.MustRegister(m.Errors, m.PutBack, m.Decided)
	return m
}

// The kinds of steps, as metrics name them.
const (
	StepShard    = "shard"
	StepWorkload = "workload"
	StepPod      = "pod"
	StepNudge    = "nudge"
)

// KindOf is a step's kind.
func KindOf(step diff.Step) string {
	switch step.(type) {
	case diff.PatchWorkload:
		return StepWorkload
	case diff.PatchPod:
		return StepPod
	case diff.Nudge:
		return StepNudge
	}
	return StepShard
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

// ObserveDecided shows when the plan in force was decided; the zero time says that nobody knows.
func (m *Metrics) ObserveDecided(at time.Time) {
	m.Work.Decided.Reset()
	if !at.IsZero() {
		m.Work.Decided.WithLabelValues().Set(float64(at.Unix()))
	}
}

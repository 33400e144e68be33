package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/diff"
)

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

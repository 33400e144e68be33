package telemetry

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/change"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
)

// registerOwnership registers what rollouts and owners are told by: what people alert on.
func (m *Metrics) registerOwnership(r prometheus.Registerer) {
	gauge := func(subsystem, name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: subsystem, Name: name,
			Help: help})
	}
	gauges := func(subsystem, name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: subsystem, Name: name,
			Help: help}, labels)
	}
	m.orphaned = gauge("ownership", "orphaned_clusters",
		"Clusters that no replica has, by the pods' own account, for longer than the grace period.")
	m.doubled = gauge("ownership", "doubled_clusters",
		"Clusters that several pods have, by their own account, for longer than the grace period.")
	m.asked = gauge("ownership", "known", "1 while every ready application-controller says what it owns.")
	m.unwell = gauges("ownership", "unwell_replicas", "Replicas that are unwell, by reason.", "reason")
	m.cordoned = gauge("planner", "cordoned_replicas", "Replicas that a person wants empty.")
	m.Moved = prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "ballast", Subsystem: "planner",
		Name: "moves_total",
		Help: "Clusters that were given another replica, by cause."}, []string{"cause"})
	m.budget = gauges("planner", "moves_left", "Clusters that may move now under change.moves.rate; absent where there is no limit.")
	m.tripped = gauge("planner", "tripped", "1 while ballast has stopped itself because a wave did harm, or a rollout failed three times in a day.")
	m.wave = gauges("planner", "rollout_wave", "The wave of the live rollout under way, and how many were expected when it began.", "of")
	for _, c := range change.Causes() {
		m.Moved.WithLabelValues(string(c))
	}
	r.MustRegister(m.orphaned, m.doubled, m.asked, m.unwell, m.cordoned, m.Moved, m.budget, m.tripped, m.wave)
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

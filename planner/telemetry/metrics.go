// Package telemetry is what people see of the planner without asking: its metrics, and the events it tells.
package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/change"
	"ballast/planner/cycle/belief"
)

// Metrics are the planner's. A plain gauge that only a leader knows is 0 on a standby, one with labels is absent there.
type Metrics struct {
	Cycles      *prometheus.CounterVec
	CycleTime   prometheus.Histogram
	PhaseTime   *prometheus.HistogramVec
	Leader      prometheus.Gauge
	revision    prometheus.Gauge
	mode        *prometheus.GaugeVec
	rollout     *prometheus.GaugeVec
	replicas    *prometheus.GaugeVec
	clusters    prometheus.Gauge
	load        *prometheus.GaugeVec
	count       *prometheus.GaugeVec
	imbalance   *prometheus.GaugeVec
	moves       prometheus.Gauge
	votes       prometheus.Gauge
	values      *prometheus.GaugeVec
	problems    *prometheus.GaugeVec
	Steps       *prometheus.CounterVec
	Held        prometheus.Gauge
	Writes      *prometheus.CounterVec
	PlanRefused *prometheus.CounterVec
	breakGlass  prometheus.Gauge
	Enforcement *prometheus.GaugeVec
	Configured  *prometheus.GaugeVec
	paused      prometheus.Gauge
	ConfigError prometheus.Gauge
	Panics      *prometheus.CounterVec
	lastCycle   prometheus.Gauge
	orphaned    prometheus.Gauge
	doubled     prometheus.Gauge
	unwell      *prometheus.GaugeVec
	cordoned    prometheus.Gauge
	asked       prometheus.Gauge
	Moved       *prometheus.CounterVec
	budget      *prometheus.GaugeVec
	tripped     prometheus.Gauge
	wave        *prometheus.GaugeVec
	sizes       sizeMetrics
	counts      countMetrics
	blocked     blockedMetrics
	basis       basisMetrics
	each        clusterMetrics
	Work        WorkMetrics
}

// NewMetrics registers the planner's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "planner", Name: name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "planner", Name: name, Help: help}, labels)
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "ballast", Subsystem: "planner", Name: name, Help: help}, labels)
	}
	// From a fleet of 100 without I/O (0.2 ms) to a Prometheus that takes its whole timeout.
	buckets := prometheus.ExponentialBuckets(0.0005, 4, 9)
	m := &Metrics{
		Cycles: counters("cycles_total", "Cycles by result: changed, quiet, kept (a phase refused its input), failed.", "result"),
		CycleTime: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "ballast", Subsystem: "planner", Name: "cycle_duration_seconds",
			Help: "Time of a whole cycle with its I/O.", Buckets: buckets}),
		PhaseTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "ballast", Subsystem: "planner", Name: "phase_duration_seconds",
			Help: "Time of a cycle's parts: gather and fetch are I/O, decide is every pure phase, store and apply write.", Buckets: buckets}, []string{"phase"}),
		Leader:      gauge("leader", "1 on the replica that plans."),
		revision:    gauge("plan_revision", "Revision of the plan in force."),
		mode:        gauges("plan_mode", "1 for the mode of the plan in force.", "mode"),
		rollout:     gauges("rollout_stage", "1 for the stage of the rollout under way.", "stage"),
		replicas:    gauges("replicas", "Replicas: planned, env (ARGOCD_CONTROLLER_REPLICAS), found and ready.", "of"),
		clusters:    gauge("clusters", "Clusters discovered."),
		load:        gauges("replica_load_ratio", "Load index of each replica under the plan in force.", "replica"),
		count:       gauges("replica_clusters", "Clusters of each replica under the plan in force.", "replica"),
		imbalance:   gauges("imbalance_ratio", "Makespan over mean: of the plan in force, and of the candidate.", "of"),
		moves:       gauge("candidate_moves", "Clusters that the candidate would move."),
		votes:       gauge("votes", "Samples that the election of the most wanted partition has so far."),
		values:      gauges("metric_values", "Values of each metric by where they come from.", "metric", "flag"),
		problems:    gauges("problems", "Problems of the last cycle by phase and kind.", "phase", "kind"),
		Steps:       counters("steps_total", "Writes to Secrets, the workload and its pods by kind and result.", "step", "result"),
		Held:        gauge("held_steps", "Differences from the plan that are left alone for now."),
		Writes:      counters("plan_writes_total", "Writes of the plan, the history and the status by result.", "object", "result"),
		PlanRefused: counters("plan_refused_total", "Plans found in the ConfigMap that were not believed, and put back, by what was wrong.", "kind"),
		breakGlass:  gauge("enforcement_off", "1 while a person's break-glass annotation is on the plan."),
		// The name is a contract, without the planner's subsystem: it is what people alert on. No labels; absent while
		// unknown.
		Enforcement: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Name: "enforcement_up",
			Help: "1 while the webhook holds the plan, 0 while it does not, absent while there is nothing to hold."}, nil),
		Configured: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "enforcement", Name: "configuration_matches",
			Help: "1 while the installed webhook configuration is the shipped one, 0 while it is not, absent while that is unknown."}, nil),
		paused:      gauge("paused", "1 while a person paused new decisions."),
		ConfigError: gauge("config_error", "1 while the configuration file on disk is refused and the last good one is in use."),
		Panics:      counters("panics_total", "Panics that were caught, by the phase that was under way: those of a cycle, repair and watch.", "phase"),
		lastCycle:   gauge("last_cycle_timestamp_seconds", "When the last cycle ended, in Unix time."),
	}
	// Every label from the start: a counter that begins at 1 has no increase that Prometheus could see.
	for _, result := range []string{"changed", "quiet", "kept", "conflict", "failed"} {
		m.Cycles.WithLabelValues(result)
	}
	for _, object := range []string{"plan", "history", "status"} {
		for _, result := range []string{"written", "conflict", "failed"} {
			m.Writes.WithLabelValues(object, result)
		}
	}
	for _, kind := range belief.PlanFaults() {
		m.PlanRefused.WithLabelValues(kind)
	}
	for _, phase := range panicPhases() {
		m.Panics.WithLabelValues(phase)
	}
	m.registerOwnership(r)
	m.sizes, m.counts, m.blocked, m.basis = newSizeMetrics(r), newCountMetrics(r), newBlockedMetrics(r), newBasisMetrics(r)
	m.each, m.Work = newClusterMetrics(r), newWorkMetrics(r)
	r.MustRegister(m.Cycles, m.CycleTime, m.PhaseTime, m.Leader, m.revision, m.mode, m.rollout, m.replicas, m.clusters, m.load, m.count,
		m.imbalance, m.moves, m.votes, m.values, m.problems, m.Steps, m.Held, m.Writes, m.PlanRefused, m.breakGlass, m.Enforcement,
		m.Configured, m.paused, m.ConfigError, m.Panics, m.lastCycle)
	return m
}

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

// BoolGauge is 1 for true.
func BoolGauge(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

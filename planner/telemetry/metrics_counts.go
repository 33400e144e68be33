package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/cycle"
	"ballast/planner/cycle/resize"
)

// countMetrics are what size.weights and the rules of change say of the number of replicas and of moves.
type countMetrics struct {
	wanted  prometheus.Gauge
	blocked *prometheus.GaugeVec
	moves   *prometheus.GaugeVec
}

func newCountMetrics(r prometheus.Registerer) countMetrics {
	m := countMetrics{
		wanted: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "weights", Name: "replicas",
			Help: "The replicas that size.weights ask for; 0 without them, or while no load is known."}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "replicas",
			Name: "blocked",
			Help: "By how many replicas the number is to change and does not now, by direction and reason."},
			[]string{"direction", "reason"}),
		moves: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "moves", Name: "blocked",
			Help: "How many moves that level are wanted and do not happen now, by reason."}, []string{"reason"}),
	}
	r.MustRegister(m.wanted, m.blocked, m.moves)
	return m
}

func (m countMetrics) observe(c *cycle.Counts, moves []resize.Blocked) {
	m.blocked.Reset()
	m.moves.Reset()
	m.wanted.Set(0)
	for _, b := range moves {
		m.moves.WithLabelValues(string(b.Reason)).Set(b.By())
	}
	if c == nil {
		return
	}
	if c.Weights != nil {
		m.wanted.Set(float64(c.Weights.Replicas))
	}
	for _, b := range c.Blocked {
		m.blocked.WithLabelValues(string(b.Direction), string(b.Reason)).Set(b.By())
	}
}

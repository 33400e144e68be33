package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/cycle"
)

// basisMetrics are what a decision rests on: what a replica may carry, and how old what was measured is.
type basisMetrics struct {
	capacity *prometheus.GaugeVec
	sampled  *prometheus.GaugeVec
}

func newBasisMetrics(r prometheus.Registerer) basisMetrics {
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "planner", Name: name,
			Help: help}, labels)
	}
	m := basisMetrics{
		capacity: gauges("replica_capacity_ratio",
			"The load that a replica may carry by partition.capacity (configured), or else is known to bear (known); absent while neither is.", "of"),
		sampled: gauges("oldest_sample_timestamp_seconds",
			"When the oldest value in use of each metric was sampled, in Unix time; time() minus this is its age.",
			"metric"),
	}
	r.MustRegister(m.capacity, m.sampled)
	return m
}

func (m basisMetrics) observe(out cycle.Outcome) {
	m.capacity.Reset()
	m.sampled.Reset()
	if l := out.Line; l != nil {
		of := "known"
		if l.Configured {
			of = "configured"
		}
		m.capacity.WithLabelValues(of).Set(l.Load.Float())
	}
	for _, c := range out.Table.Columns {
		var oldest int64 // in milliseconds; of a value that nobody dated nothing is known
		for _, at := range c.SampledAt {
			if at > 0 && (oldest == 0 || at < oldest) {
				oldest = at
			}
		}
		if oldest > 0 {
			m.sampled.WithLabelValues(c.ID).Set(float64(oldest) / 1000)
		}
	}
}

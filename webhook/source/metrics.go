package source

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ballast/webhook/inforce"
)

// Metrics are what a source says of the plan that it knows.
type Metrics struct {
	reads      *prometheus.CounterVec
	revision   prometheus.Gauge
	received   prometheus.Gauge
	heard      prometheus.Gauge
	cache      *prometheus.GaugeVec
	breakGlass prometheus.Gauge
}

// The plan cache's states, the values of a metric label.
const (
	cacheUnsynced = "Unsynced" // no list has come yet
	cacheAbsent   = "Absent"   // there is no plan
	cacheCurrent  = "Current"
	cacheStale    = "Stale" // the ConfigMap does not match its digest; the last good plan is enforced
)

// NewMetrics registers them. Every label value is there from the start.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ballast_webhook_plan_reads_total",
			Help: "Live reads of the plan for a write of the planner that disagrees with the cached plan, by result."},
			[]string{"result"}),
		revision: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ballast_webhook_plan_revision",
			Help: "Revision of the plan in force; 0 for none."}),
		received: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ballast_webhook_plan_received_timestamp_seconds",
			Help: "When the plan in force reached this replica; time() minus this is its age."}),
		heard: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ballast_webhook_plan_heard_timestamp_seconds",
			Help: "When the API server last said anything of the plan, if only that it is as it was; 0 for never."}),
		cache: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ballast_webhook_plan_cache",
			Help: "1 for the state that the plan cache is in."}, []string{"state"}),
		breakGlass: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ballast_webhook_break_glass",
			Help: "1 while the annotation ballast.argoproj.io/enforcement=off lets writes pass, but for one to data.plan and what the policies refuse."}),
	}
	r.MustRegister(m.reads, m.revision, m.received, m.heard, m.cache, m.breakGlass)
	for _, result := range []string{readDone, readFailed} {
		m.reads.WithLabelValues(result)
	}
	m.setCache(cacheUnsynced)
	return m
}

func (m *Metrics) setCache(state string) {
	for _, s := range []string{cacheUnsynced, cacheAbsent, cacheCurrent, cacheStale} {
		m.cache.WithLabelValues(s).Set(oneIf(s == state))
	}
}

// observe shows a state that the source has taken.
func (m *Metrics) observe(s *inforce.State, changed bool, now time.Time) {
	m.revision.Set(float64(s.Revision()))
	m.breakGlass.Set(oneIf(s.BreakGlass))
	switch {
	case s.Stale:
		m.setCache(cacheStale)
	case s.View == nil:
		m.setCache(cacheAbsent)
	default:
		m.setCache(cacheCurrent)
	}
	if changed {
		m.received.Set(seconds(now))
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

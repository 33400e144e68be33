package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/plan"
)

// Metrics are what the webhook says of itself.
type Metrics struct {
	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	faults      *prometheus.CounterVec
	malformed   *prometheus.CounterVec
	busy        prometheus.Counter
	reads       *prometheus.CounterVec
	revision    prometheus.Gauge
	received    prometheus.Gauge
	heard       prometheus.Gauge
	cache       *prometheus.GaugeVec
	breakGlass  prometheus.Gauge
	certificate prometheus.Gauge
}

// CertificateEnds notes when the serving certificate ends.
func (m *Metrics) CertificateEnds(at time.Time) { m.certificate.Set(float64(at.Unix())) }

// The plan cache's states, the values of a metric label.
const (
	cacheUnsynced = "Unsynced" // no list has come yet
	cacheAbsent   = "Absent"   // there is no plan
	cacheCurrent  = "Current"
	cacheStale    = "Stale" // the ConfigMap does not match its digest; the last good plan is enforced
)

// NewMetrics registers the webhook's metrics. Every label value of the closed sets is there from the start, so that a
// rate over a fault that never happened is 0 and not empty.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ballast_webhook_requests_total",
			Help: "Writes answered, by webhook, operation and reason."}, []string{"webhook", "operation", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ballast_webhook_duration_seconds",
			Help: "Time from the first byte of a request's body to its answer.", Buckets: durationBuckets()}, []string{"webhook"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ballast_webhook_faults_total",
			Help: "Writes that passed unchanged because ballast failed."}, []string{"webhook"}),
		malformed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ballast_webhook_malformed_total",
			Help: "Requests with an object that cannot be read, which passed unchanged; the API server sends none."},
			[]string{"webhook"}),
		busy: prometheus.NewCounter(prometheus.CounterOpts{Name: "ballast_webhook_busy_total",
			Help: "Requests turned away because too many bytes were being read or decoded."}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ballast_webhook_plan_reads_total",
			Help: "Live reads of the plan for a write of the planner that disagrees with the cached plan, by result."}, []string{"result"}),
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
		certificate: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ballast_webhook_certificate_expiry_timestamp_seconds",
			Help: "When the serving certificate ends."}),
	}
	r.MustRegister(m.requests, m.duration, m.faults, m.malformed, m.busy, m.reads, m.revision, m.received, m.heard, m.cache,
		m.breakGlass, m.certificate)
	m.start()
	return m
}

func (m *Metrics) start() {
	for _, kind := range kinds() {
		m.faults.WithLabelValues(kind.name)
		m.malformed.WithLabelValues(kind.name)
		m.duration.WithLabelValues(kind.name)
		for _, operation := range []string{operationCreate, operationUpdate} {
			for _, reason := range plan.Reasons() {
				m.requests.WithLabelValues(kind.name, operation, string(reason))
			}
		}
	}
	for _, result := range []string{readDone, readFailed} {
		m.reads.WithLabelValues(result)
	}
	m.setCache(cacheUnsynced)
}

// durationBuckets: the API server waits for every call, and a timeout of 2 s is its end. A call takes a fraction of a
// millisecond, so 1 ms steps up to 20 ms make a p99 that can be read, where the usual steps of ten cannot.
func durationBuckets() []float64 {
	b := []float64{0.00025, 0.0005}
	b = append(b, prometheus.LinearBuckets(0.001, 0.001, 20)...)
	return append(b, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 2)
}

func (m *Metrics) setCache(state string) {
	for _, s := range []string{cacheUnsynced, cacheAbsent, cacheCurrent, cacheStale} {
		m.cache.WithLabelValues(s).Set(oneIf(s == state))
	}
}

// observe shows a state that the source has taken.
func (m *Metrics) observe(s *State, changed bool, now time.Time) {
	m.revision.Set(float64(s.revision()))
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

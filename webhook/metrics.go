package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/plan"
)

// Metrics are what the webhook says of its calls.
type Metrics struct {
	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	faults      *prometheus.CounterVec
	malformed   *prometheus.CounterVec
	busy        prometheus.Counter
	certificate prometheus.Gauge
}

// CertificateEnds notes when the serving certificate ends.
func (m *Metrics) CertificateEnds(at time.Time) { m.certificate.Set(float64(at.Unix())) }

// NewMetrics registers the webhook's metrics. Every label value of the closed sets is there from the start, so that a
// rate over a fault that never happened is 0 and not empty.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ballast_webhook_requests_total",
			Help: "Writes answered, by webhook, operation and reason."}, []string{"webhook", "operation", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ballast_webhook_duration_seconds",
			Help: "Time from the first byte of a request's body to its answer.", Buckets: durationBuckets()},
			[]string{"webhook"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ballast_webhook_faults_total",
			Help: "Writes that passed unchanged because ballast failed."}, []string{"webhook"}),
		malformed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ballast_webhook_malformed_total",
			Help: "Requests with an object that cannot be read, which passed unchanged; the API server sends none."},
			[]string{"webhook"}),
		busy: prometheus.NewCounter(prometheus.CounterOpts{Name: "ballast_webhook_busy_total",
			Help: "Requests turned away because too many bytes were being read or decoded."}),
		certificate: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ballast_webhook_certificate_expiry_timestamp_seconds",
			Help: "When the serving certificate ends."}),
	}
	r.MustRegister(m.requests, m.duration, m.faults, m.malformed, m.busy, m.certificate)
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
}

// durationBuckets: the API server waits for every call, and a timeout of 2 s is its end. A call takes a fraction of a
// millisecond, so 1 ms steps up to 20 ms make a p99 that can be read, where the usual steps of ten cannot.
func durationBuckets() []float64 {
	b := []float64{0.00025, 0.0005}
	b = append(b, prometheus.LinearBuckets(0.001, 0.001, 20)...)
	return append(b, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 2)
}

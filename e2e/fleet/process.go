package fleet

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// process is the application-controller in one pod, from its start to its end: a restarted one counts from 0.
type process struct {
	pod      string
	replicas int // its ARGOCD_CONTROLLER_REPLICAS, which is read once
	holdings map[string]*holding
}

// holding is a cluster that a process has, or had: what it lost keeps its counters as they stood, and has no gauges.
type holding struct {
	cluster Cluster
	had     time.Duration // until it was last lost
	since   time.Time     // zero: it is not held now
}

func (h *holding) held(now time.Time) time.Duration {
	if h.since.IsZero() {
		return h.had
	}
	return h.had + now.Sub(h.since)
}

func (h *holding) lose(now time.Time) { h.had, h.since = h.held(now), time.Time{} }

// hold makes the process hold what it owns of these Secrets, from now on; of those that stay, what it holds already.
func (p *process) hold(secrets []Secret, of func(server string) Cluster, stay map[string]bool, now time.Time) {
	owned := map[string]bool{}
	for _, s := range secrets {
		if server := trim(s.Server); owns(p.pod, p.replicas, s) {
			owned[server] = true
			if p.holdings[server] == nil {
				p.holdings[server] = &holding{cluster: of(server)}
			}
		}
	}
	for server, h := range p.holdings {
		switch {
		case stay[server]:
		case owned[server] && h.since.IsZero():
			h.since = now
		case !owned[server] && !h.since.IsZero():
			h.lose(now)
		}
	}
}

// collect sends what the process shows at a time.
func (p *process) collect(now time.Time, ch chan<- prometheus.Metric) {
	d := newDescs()
	ch <- prometheus.MustNewConstMetric(d.memory, prometheus.GaugeValue, float64(idleMemory))
	for _, h := range p.holdings {
		if h.cluster.Work.Apps == 0 {
			continue // no Application, no cluster cache, no metrics
		}
		d.counters(h, now, ch)
		if !h.since.IsZero() {
			d.gauges(h, now, ch)
		}
	}
}

// view shows a process through client_golang at the time that its clock says.
type view struct {
	exporter *Exporter
	process  *process
	now      func() time.Time
}

// Describe sends nothing: what a process shows changes with what it holds.
func (v view) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (v view) Collect(ch chan<- prometheus.Metric) {
	v.exporter.mu.Lock()
	defer v.exporter.mu.Unlock()
	v.process.collect(v.now(), ch)
}

func (v view) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(v)
	return r
}

package watch

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/plan"
)

// Figures are the metrics of a watch that runs in a pod.
type Figures struct {
	orphaned, doubled, unwell, silent, looked prometheus.Gauge
	clusters                                  *prometheus.GaugeVec
}

// NewFigures registers them.
func NewFigures(r prometheus.Registerer) *Figures {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ballast_watch_" + name, Help: help})
		r.MustRegister(g)
		return g
	}
	f := &Figures{
		orphaned: gauge("orphaned_clusters", "Clusters that nobody reconciles."),
		doubled:  gauge("doubled_clusters", "Clusters that several replicas reconcile."),
		unwell:   gauge("unwell_replicas", "Replicas that are not ready for long, restart again and again, or were killed for their memory."),
		silent:   gauge("silent_pods", "Ready pods of the application-controller that did not say what they own."),
		looked:   gauge("last_look_timestamp_seconds", "When the pods were last asked."),
		clusters: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "ballast_watch_clusters", Help: "Clusters that a replica reconciles."},
			[]string{"replica"}),
	}
	r.MustRegister(f.clusters)
	return f
}

// show sets them by a look.
func (f *Figures) show(l *look) {
	if f == nil {
		return
	}
	f.orphaned.Set(float64(len(l.Orphans)))
	f.doubled.Set(float64(len(l.Doubled)))
	f.unwell.Set(float64(len(l.Unwell)))
	f.looked.Set(float64(l.At.Unix()))
	f.clusters.Reset()
	silent := 0
	for _, r := range l.Replicas {
		if r.Ready && !r.Answered {
			silent++
		}
		if r.Replica != plan.NoReplica {
			f.clusters.WithLabelValues(strconv.Itoa(r.Replica)).Add(float64(r.Clusters))
		}
	}
	f.silent.Set(float64(silent))
}

package telemetry

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/cycle"
)

// clusterMetrics are what is known of each cluster. Nothing bounds how many clusters there are, so they are shown where
// telemetry.clusters asks for them, of so many.
type clusterMetrics struct {
	load    *prometheus.GaugeVec
	value   *prometheus.GaugeVec
	replica *prometheus.GaugeVec
	leftOut prometheus.Gauge
}

func newClusterMetrics(r prometheus.Registerer) clusterMetrics {
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "cluster", Name: name,
			Help: help}, labels)
	}
	const asked = "; only with telemetry.clusters."
	m := clusterMetrics{
		load: gauges("load_ratio", "Load of each cluster, by the name of its Secret"+asked, "cluster"),
		value: gauges("metric_value", "Value in use of each metric of each cluster, by the name of its Secret"+asked,
			"cluster", "metric"),
		replica: gauges("replica", "Replica of each cluster under the plan in force, by the name of its Secret"+asked,
			"cluster"),
		leftOut: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "cluster", Name: "left_out",
			Help: "Clusters that are not shown one by one, since telemetry.clusters is lower; 0 where it is 0."}),
	}
	r.MustRegister(m.load, m.value, m.replica, m.leftOut)
	return m
}

// observe shows the heaviest clusters, at most as many as asked for.
func (m clusterMetrics) observe(most int, out cycle.Outcome) {
	m.load.Reset()
	m.value.Reset()
	m.replica.Reset()
	m.leftOut.Set(0)
	if most <= 0 {
		return
	}
	shown := heaviest(most, out)
	m.leftOut.Set(float64(len(out.Fleet.Clusters) - len(shown)))
	for id, at := range shown {
		if out.Loads != nil {
			m.load.WithLabelValues(id).Set(out.Loads[at].Float())
		}
	}
	for i, shard := range out.Table.Shards {
		if _, ok := shown[shard.ID]; !ok {
			continue
		}
		for _, c := range out.Table.Columns {
			m.value.WithLabelValues(shard.ID, c.ID).Set(c.Values[i])
		}
	}
	for _, r := range out.Now {
		for _, l := range r.LoadIndexes {
			if _, ok := shown[l.Shard.ID]; ok {
				m.replica.WithLabelValues(l.Shard.ID).Set(float64(r.ID))
			}
		}
	}
}

// heaviest are the names of so many clusters, each with its place in the fleet: the heaviest by their loads, without
// loads the first by their names.
func heaviest(most int, out cycle.Outcome) map[string]int {
	places := map[string]int{}
	for i, c := range out.Fleet.Clusters {
		places[c.Shard.ID] = i
	}
	names := slices.Sorted(maps.Keys(places))
	if out.Loads != nil {
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(out.Loads[places[b]], out.Loads[places[a]]) })
	}
	for _, name := range names[min(most, len(names)):] {
		delete(places, name)
	}
	return places
}

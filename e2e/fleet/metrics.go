package fleet

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	k8sVersion = "1.34"
	repo       = "https://git.example.com/platform/deployments"

	// meanReconcile is the seconds that a reconciliation takes on average; reconcileShares says how many of 100 end
	// within each of Argo CD's buckets.
	meanReconcile = 0.4
	// idleMemory is what every process shows: 93 MB of binary and caches that are not there.
	idleMemory = 160 << 20
)

// namespaces that Applications live in; their names repeat across them, so that only both together name one.
func namespaces() []string { return []string{"argocd", "team-apps"} }

func reconcileShares() map[float64]uint64 {
	return map[float64]uint64{.25: 55, .5: 80, 1: 92, 2: 97, 4: 99, 8: 100, 16: 100}
}

// descs are Argo CD's own metrics, as controller/metrics of v3.2.11 describes them.
type descs struct {
	appInfo, reconcile, events                    *prometheus.Desc
	info, objects, resources, cacheAge, connected *prometheus.Desc
	memory                                        *prometheus.Desc
}

func newDescs() descs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return descs{
		appInfo: desc("argocd_app_info", "Information about application.", "namespace", "name", "project",
			"autosync_enabled", "repo", "dest_server", "dest_namespace", "sync_status", "health_status", "operation"),
		reconcile: desc("argocd_app_reconcile", "Application reconciliation performance in seconds.", "namespace",
			"dest_server"),
		events: desc("argocd_cluster_events_total", "Number of processes k8s resource events.", "server", "group",
			"kind"),
		info: desc("argocd_cluster_info", "Information about cluster.", "server", "k8s_version", "name"),
		objects: desc("argocd_cluster_api_resource_objects", "Number of k8s resource objects in the cache.",
			"server"),
		resources: desc("argocd_cluster_api_resources", "Number of monitored kubernetes API resources.", "server"),
		cacheAge:  desc("argocd_cluster_cache_age_seconds", "Cluster cache age in seconds.", "server"),
		memory:    desc("process_resident_memory_bytes", "Resident memory size in bytes."),
		connected: desc("argocd_cluster_connection_status", "The k8s cluster current connection status.", "server",
			"k8s_version"),
	}
}

func (d descs) gauges(h *holding, now time.Time, ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	server, work := trim(h.cluster.Server), h.cluster.Work
	gauge(d.info, 1, server, k8sVersion, h.cluster.Name)
	gauge(d.objects, float64(work.Objects), server)
	gauge(d.resources, 84, server)
	gauge(d.cacheAge, float64(int(now.Sub(h.since).Seconds())), server)
	gauge(d.connected, 1, server, k8sVersion)
	spaces := namespaces()
	for i := range work.Apps {
		name := h.cluster.Name + "-" + strconv.Itoa(i/len(spaces))
		gauge(d.appInfo, 1, spaces[i%len(spaces)], name, "default", "true", repo, server, name, "Synced", "Healthy", "")
	}
}

func (d descs) counters(h *holding, now time.Time, ch chan<- prometheus.Metric) {
	server, held := trim(h.cluster.Server), h.held(now)
	kinds := [][2]string{{"", "Pod"}, {"apps", "ReplicaSet"}}
	for i, n := range split(count(h.cluster.Work.EventsPerMinute, held), len(kinds)) {
		if n > 0 {
			ch <- prometheus.MustNewConstMetric(d.events, prometheus.CounterValue, float64(n), server, kinds[i][0],
				kinds[i][1])
		}
	}
	spaces := namespaces()[:min(2, h.cluster.Work.Apps)]
	for i, n := range split(count(h.cluster.Work.ReconcilesPerMinute, held), len(spaces)) {
		if n > 0 {
			ch <- prometheus.MustNewConstHistogram(d.reconcile, n, float64(n)*meanReconcile, buckets(n), spaces[i],
				server)
		}
	}
}

// count is a counter with that rate after it ran so long.
func count(perMinute int, held time.Duration) uint64 {
	return uint64(max(0, int64(perMinute)*int64(held/time.Millisecond)/time.Minute.Milliseconds()))
}

// split shares a count between series so that they add up to it.
func split(n uint64, series int) []uint64 {
	shares := make([]uint64, series)
	for i := range shares {
		shares[i] = (n + uint64(i)) / uint64(series)
	}
	return shares
}

func buckets(n uint64) map[float64]uint64 {
	b := reconcileShares()
	for bound, share := range b {
		b[bound] = n * share / 100
	}
	return b
}

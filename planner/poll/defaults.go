package poll

import "fmt"

// Objects is the default metric of how many live objects a cluster's replica keeps.
const Objects = "objects"

// DefaultMetrics is a set that works on the metrics of Argo CD's application-controller however it was installed. No
// query looks at `job`, which every installation names anew, or joins on `name`, which is the Application's; each takes
// the targets of the pods' namespace alone (targets.go). Each is noData 0: a cluster without Applications has no
// series. DefaultWeights says what each counts.
//
//   - objects: how many live objects the controller keeps in memory. Memory is what kills it, though the number is a
//     poor measure of it (argo-cd PR #8002).
//   - events: how many changes of those objects it hears of a second, as nine tenths of the time in the last 3 h. There is a
//     counter for each kind of each cluster, so that their rates cost more than all else: RecordedMetrics takes them from a
//     recording rule.
//   - reconciles: how many Applications it reconciles a second, likewise. Their duration would not do: a slow
//     repo-server makes its clusters look heavy.
//   - apps: how many Applications there are.
//
// After a move the old pod keeps its counters, but they stand still: the sum of the rates is right, where the sum or
// the maximum of the counters is not. Gauges of the old pod go, so their maximum over the last hour is of one pod or of
// two that say the same.
func DefaultMetrics() []Metric {
	return metricsOf(`sum by (server) (rate(argocd_cluster_events_total{ {{.targets}} }[10m]))`)
}

// The recording rule of manifests/components/recording-rules, and what it records: the events of each cluster and pod,
// with the labels of the target.
const (
	EventsRule = "ballast:argocd_cluster_events:rate10m"
	EventsRate = "sum without (group, kind) (rate(argocd_cluster_events_total[10m]))"
)

// RecordedMetrics are DefaultMetrics of the same values, the events by the recording rule: they are other text, and the
// same measure.
func RecordedMetrics() []Metric {
	return metricsOf(`sum by (server) (` + EventsRule + `{ {{.targets}} })`)
}

// metricsOf is the default set with that for the events a second of each cluster.
func metricsOf(rate string) []Metric {
	const objects = `argocd_cluster_api_resource_objects{ {{.targets}} }`
	const reconciles, apps = `argocd_app_reconcile_count{ {{.pods}},dest_server!="" }`,
		`argocd_app_info{ {{.pods}},dest_server!="" }`
	ofServer := ageOf("server", `timestamp(`+objects+`)`)
	ofDestination := ageOf("dest_server", `timestamp(`+reconciles+`) {{.ofTargets}}`)
	return []Metric{
		newDefault(Objects, "server", `max by (server) (max_over_time(`+objects+`[1h]))`, ofServer),
		newDefault("events", "server", `quantile_over_time(0.9, (`+rate+`)[3h:5m])`, ofServer),
		newDefault("reconciles", "dest_server", `quantile_over_time(0.9, (sum by (dest_server) (rate(`+reconciles+`[10m]) {{.ofTargets}}))[3h:5m])`, ofDestination),
		newDefault("apps", "dest_server", `count by (dest_server) (group by (dest_server, namespace, exported_namespace, name) (last_over_time(`+apps+`[10m]) {{.ofTargets}}))`, ofDestination),
	}
}

// DefaultWeights are the weights of DefaultMetrics; they sum to 1.
func DefaultWeights() map[string]float64 {
	return map[string]float64{Objects: 0.375, "events": 0.25, "reconciles": 0.25, "apps": 0.125}
}

// ageOf is an age query, of the time of each series' newest sample: the time of the cluster's newest, where there is
// none now that of the newest within the longest window, seen in steps of 5 min, Prometheus's lookback. One series a
// cluster tells of all that is scraped with it, and metrics that share the query share its answer.
func ageOf(label, sampled string) string {
	return fmt.Sprintf(`max by (%[1]s) (%[2]s) or max by (%[1]s) (max_over_time((%[2]s)[3h:5m]))`, label, sampled)
}

func newDefault(id, label, query, age string) Metric {
	zero := 0.0
	return Metric{ID: id, Query: query, NoData: &zero, Match: Match{Label: label, To: ToServer}, AgeQuery: age}
}

package pods

import (
	"time"

	"ballast/planner/poll"
)

const (
	step       = 5 * time.Minute
	rateOver   = 10 * time.Minute // that a rate looks back
	steps      = 36               // rates that the answer is made of
	rateWindow = steps * step     // three hours
	quantile   = 0.9
	objectsFor = time.Hour
	appsFor    = 10 * time.Minute
	slots      = int(objectsFor/step) + 1 // the first and the last of them are not whole
)

// What is measured, in the order of Metrics.
const (
	objects = iota
	events
	reconciles
	apps
	metrics // how many there are
)

// Metrics are the default metrics, by the names and in the order that poll.DefaultMetrics gives them.
func Metrics() []poll.Metric {
	texts := [metrics]string{
		objects:    "max over 1h of argocd_cluster_api_resource_objects, as the pods show it",
		events:     "0.9 quantile over 3h of the rates over 10m of argocd_cluster_events_total, as the pods show it",
		reconciles: "0.9 quantile over 3h of the rates over 10m of argocd_app_reconcile_count, as the pods show it",
		apps:       "most argocd_app_info over 10m, as the pods show it",
	}
	list := make([]poll.Metric, metrics)
	for i, m := range poll.DefaultMetrics() {
		list[i] = poll.Metric{ID: m.ID, Query: texts[i], NoData: m.NoData,
			Match: poll.Match{Label: "server", To: poll.ToServer}}
	}
	return list
}

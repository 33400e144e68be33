// Package page draws a fleet as one page of HTML: replicas as columns of stacked clusters, what waits and why,
// decisions, load over time, each replica and each cluster. It is a function of values: the same fleet makes the same
// bytes.
package page

import (
	"time"

	"ballast/planner/measure"
	"ballast/planner/observed"
	"ballast/planner/page/chart"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/status"
	"ballast/planner/trend"
)

// Fleet is what a page is made of. Of cluster Secrets there are the name, the cluster's own name and its server.
type Fleet struct {
	Now      time.Time
	Document configmap.Document
	Decided  chart.Decided
	Pause    Pause             // where Document is paused
	Pins     plan.Pins         // the plan ConfigMap's beside the Secrets' own
	Clusters []plan.Shard      // nil: they could not be read, and the rows stand for them
	Apart    map[string]string // clusters that ballast leaves alone, and why
	Status   *status.Status    // nil: no leader said anything
	Kept     []chart.Kept      // earlier plans and the one in force, newest first
	Trend    trend.Trend       // what replicas carried in the last week
	Values   measure.LastGood  // of each cluster's metrics, as the leader kept them last
	Pods     []observed.Pod    // of the application-controller
	Unseen   []string          // sentences about what could not be read
}

// Pause says who paused it and why, as far as that is written.
type Pause struct{ By, Why string }

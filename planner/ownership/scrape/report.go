package scrape

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ballast/planner/observed"
)

// PodReport is what one pod said, or why it said nothing.
type PodReport struct {
	observed.Controller
	Err       string                  `json:"err,omitempty"`      // why it did not answer; empty: it answered
	SampledAt time.Time               `json:"sampledAt,omitzero"` // when that was so
	Servers   map[string]ServerReport `json:"servers,omitempty"`  // by server URL, normalised
	Quoted    bool                    `json:"quoted,omitempty"`   // Prometheus said it in the pod's place
	Unplaced  int                     `json:"unplaced,omitempty"` // Applications whose destination Argo CD cannot find; every pod shows them

	// Of events, which a cluster may have of any kind: how many counters are too long to be read, and whether there are
	// so many that none is shown.
	LongEvents int  `json:"longEvents,omitempty"`
	ManyEvents bool `json:"manyEvents,omitempty"`
}

// Answered reports whether the pod said anything: what it does not name, it does not have.
func (r PodReport) Answered() bool { return r.Err == "" }

// Passed says which counters of events were passed over, and what to do about it; empty: none.
func (r PodReport) Passed() string {
	const next = "; their label server names the cluster that makes them: take it out, and restart the pod"
	switch {
	case r.ManyEvents:
		return fmt.Sprintf("pod %q shows more of argocd_cluster_events_total than is read, as no fleet has: "+
			"no cluster's events are taken from it"+next, r.Name)
	case r.LongEvents > 0:
		return fmt.Sprintf("pod %q shows series of argocd_cluster_events_total of more than %d KiB, as no kind of Kubernetes makes: "+
			"%d are passed over, and their cluster's events count for less"+next, r.Name, usualLine>>10, r.LongEvents)
	}
	return ""
}

// ServerReport is what a pod shows of one cluster. Seconds, Reconciles and Events are counters, and may be left from an
// earlier ownership; all else is of now, or of up to 30 s ago.
type ServerReport struct {
	Apps       int     `json:"apps,omitempty"`       // Applications that the pod is responsible for
	Cached     bool    `json:"cached,omitempty"`     // the cluster gauges are there
	CacheAge   float64 `json:"cacheAge,omitempty"`   // seconds since the cluster was read; below 0: never
	Connected  bool    `json:"connected,omitempty"`  // the last connection went well, or none was tried yet
	Reconciles float64 `json:"reconciles,omitempty"` // argocd_app_reconcile_count, all namespaces
	Seconds    float64 `json:"seconds,omitempty"`    // argocd_app_reconcile_sum, all namespaces
	Events     float64 `json:"events,omitempty"`     // argocd_cluster_events_total, all kinds
	Objects    float64 `json:"objects,omitempty"`    // argocd_cluster_api_resource_objects
	Counts     Shown   `json:"counts,omitempty"`
}

// Shown is which of a server's numbers a pod shows: what it does not show is not 0.
type Shown uint8

// The numbers that may be missing.
const (
	ShowsObjects Shown = 1 << iota
	ShowsEvents
	ShowsReconciles
)

// Shows reports whether the pod shows that number.
func (s ServerReport) Shows(number Shown) bool { return s.Counts&number != 0 }

// Live reports whether the pod has read the cluster and is connected to it.
func (s ServerReport) Live() bool { return s.Cached && s.CacheAge >= 0 && s.Connected }

// Pods are the reports' pods as rollouts see them, by replica and name, with the memory that they reported and whether
// they answered.
func Pods(reports []PodReport) []observed.Pod {
	pods := make([]observed.Pod, len(reports))
	for i, r := range reports {
		pods[i] = r.Pod
		pods[i].Answered = r.Answered()
	}
	slices.SortFunc(pods, func(a, b observed.Pod) int {
		return cmp.Or(cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

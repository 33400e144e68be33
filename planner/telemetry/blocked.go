package telemetry

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"ballast/planner/cycle"
	"ballast/planner/cycle/resize"
)

// blockedMetrics say for how long changes wait.
type blockedMetrics struct {
	since *prometheus.GaugeVec
}

func newBlockedMetrics(r prometheus.Registerer) blockedMetrics {
	m := blockedMetrics{since: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "ballast", Subsystem: "change", Name: "blocked_timestamp_seconds",
		Help: "Since when the change waits that waits longest, in Unix time, by resource (replicas, clusters, cpu, memory), direction and reason."},
		[]string{"resource", "direction", "reason"})}
	r.MustRegister(m.since)
	return m
}

// observe shows what a cycle found to wait, and nothing of what waited before.
func (m blockedMetrics) observe(out cycle.Outcome) {
	m.since.Reset()
	longest := map[string]time.Time{}
	for _, b := range out.Waiting() {
		if since, seen := longest[kindOf(b)]; seen && !b.Since.Before(since) {
			continue
		}
		longest[kindOf(b)] = b.Since
		m.since.WithLabelValues(b.Resource, string(b.Direction), string(b.Reason)).Set(float64(b.Since.Unix()))
	}
}

// kindOf is what changes that wait for one reason have in common, whichever replica they are of.
func kindOf(b resize.Blocked) string {
	return b.Resource + "/" + string(b.Direction) + "/" + string(b.Reason)
}

// quietFor is how long a change that waits again, as it did before, is no news: many come and go about a threshold.
const quietFor = time.Hour

// BlockedNews is what people were told of changes that wait. The zero value has told nothing.
type BlockedNews struct {
	seen map[string]time.Time // when a kind waited last
}

// Of is an event for each kind of change that waits and did not within the last hour. It names the first of several
// replicas.
func (n *BlockedNews) Of(waiting []resize.Blocked, now time.Time) (events []Event) {
	next := map[string]time.Time{}
	for kind, at := range n.seen {
		if age := now.Sub(at); age >= 0 && age < quietFor {
			next[kind] = at
		}
	}
	n.seen = next
	count, first := map[string]int{}, []resize.Blocked{}
	for _, b := range waiting {
		if count[kindOf(b)]++; count[kindOf(b)] == 1 {
			first = append(first, b)
		}
	}
	for _, b := range first {
		if _, told := n.seen[kindOf(b)]; !told {
			events = append(events, ChangeBlocked(b, count[kindOf(b)]-1))
		}
		n.seen[kindOf(b)] = now
	}
	return events
}

// ChangeBlocked says of a change that it waits, and of so many more like it.
func ChangeBlocked(b resize.Blocked, more int) Event {
	said := b.String()
	if more > 0 {
		said += fmt.Sprintf("; and %d more like it, which `ballast status` names", more)
	}
	return Event{Type: corev1.EventTypeNormal, Reason: "ChangeBlocked", Message: said}
}

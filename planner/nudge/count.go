package nudge

import (
	"context"
	"fmt"
	"time"

	"ballast/planner/plan"
)

// Destination is a cluster as Applications name it.
type Destination struct{ Server, Name string }

// Count is how many Applications Argo CD works on for each destination, by its server URL, and when that was so. It rests on
// a listing of at most that age, or five times as long as it took: a large fleet's Applications are read page by page, and
// not for every question. Of destinations with one server, which Argo CD takes for one cluster, the one with most counts.
func (n *Nudger) Count(ctx context.Context, namespace string, destinations []Destination, age time.Duration) (map[string]int, time.Time, error) {
	l, err := n.listed(ctx, namespace, age)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("counting the Applications of %d clusters: %w", len(destinations), err)
	}
	count := make(map[string]int, len(destinations))
	for _, d := range destinations {
		server := plan.NormalizeServer(d.Server)
		count[server] = max(count[server], len(l.applications.of(d.Server, d.Name)))
	}
	return count, l.at, nil
}

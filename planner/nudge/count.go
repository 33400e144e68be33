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
// not for every question. Of destinations with one server, which Argo CD takes for one cluster, the one with most counts. What
// Argo CD does nothing for counts nowhere: a name that several servers have is nobody's to it, and so is an Application that it
// found fault with. Who may create Applications must not make a cluster look as if it had lost its owner.
func (n *Nudger) Count(ctx context.Context, namespace string, destinations []Destination, age time.Duration) (map[string]int, time.Time, error) {
	l, err := n.listed(ctx, namespace, age)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("counting the Applications of %d clusters: %w", len(destinations), err)
	}
	shared, count := sharedNames(destinations), make(map[string]int, len(destinations))
	for _, d := range destinations {
		if shared[d.Name] {
			d.Name = ""
		}
		worked := 0
		for _, a := range l.applications.of(d.Server, d.Name) {
			if !a.Invalid {
				worked++
			}
		}
		server := plan.NormalizeServer(d.Server)
		count[server] = max(count[server], worked)
	}
	return count, l.at, nil
}

// sharedNames are those that clusters of several servers have.
func sharedNames(destinations []Destination) map[string]bool {
	first, shared := map[string]string{}, map[string]bool{}
	for _, d := range destinations {
		server := plan.NormalizeServer(d.Server)
		if other, seen := first[d.Name]; seen && other != server {
			shared[d.Name] = true
		}
		first[d.Name] = server
	}
	return shared
}

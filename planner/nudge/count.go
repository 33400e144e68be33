package nudge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ballast/planner/plan"
)

// Destination is a cluster as Applications name it; Name is empty where none finds it by that.
type Destination struct{ Server, Name string }

// Unknown is the number of Applications of a destination that may have some beyond those that are kept.
const Unknown = -1

// Count is how many Applications Argo CD works on for each destination, by its server URL, and when that was so. It
// rests on a listing of at most that age, or five times as long as it took: a large fleet's Applications are read page
// by page, and not for every question. Of destinations with one server, which Argo CD takes for one cluster, the one
// with most counts. An Application that Argo CD found fault with counts nowhere: who may create some must not make a
// cluster look as if it had lost its owner. Where there are more Applications than are kept, or some in a namespace
// that may not be listed, none that are seen is Unknown, not none.
func (n *Nudger) Count(ctx context.Context, namespace string, destinations []Destination, age time.Duration) (map[string]int, time.Time, error) {
	l, err := n.listed(ctx, namespace, age)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("counting the Applications of %d clusters: %w", len(destinations), err)
	}
	count := make(map[string]int, len(destinations))
	for _, d := range destinations {
		worked := 0
		for _, a := range l.applications.of(d.Server, d.Name) {
			if !a.Invalid {
				worked++
			}
		}
		server := plan.NormalizeServer(d.Server)
		count[server] = max(count[server], worked)
	}
	for server, worked := range count {
		if worked == 0 && l.partial {
			count[server] = Unknown
		}
	}
	return count, l.at, nil
}

// Destinations are those that Applications name which Argo CD works on, each by its server or by its name, in their
// order.
func (n *Nudger) Destinations(ctx context.Context, namespace string, age time.Duration) ([]Destination, error) {
	l, err := n.listed(ctx, namespace, age)
	if err != nil {
		return nil, fmt.Errorf("listing the destinations of Applications: %w", err)
	}
	var all []Destination
	for d, applications := range l.applications {
		if slices.ContainsFunc(applications, func(a Application) bool { return !a.Invalid }) {
			all = append(all, Destination{d.server, d.name})
		}
	}
	slices.SortFunc(all, func(a, b Destination) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

package nudge

import (
	"context"
	"fmt"

	"ballast/planner/plan"
)

// Destination is a cluster as Applications name it.
type Destination struct{ Server, Name string }

// Count is how many Applications Argo CD works on for each destination, by its server URL. It rests on a listing of up to
// some minutes ago: a large fleet's Applications are read page by page, and not for every question.
func (n *Nudger) Count(ctx context.Context, namespace string, destinations []Destination) (map[string]int, error) {
	l, err := n.listed(ctx, namespace, keep)
	if err != nil {
		return nil, fmt.Errorf("counting the Applications of %d clusters: %w", len(destinations), err)
	}
	count := make(map[string]int, len(destinations))
	for _, d := range destinations {
		count[plan.NormalizeServer(d.Server)] = len(l.applications.of(d.Server, d.Name))
	}
	return count, nil
}

package matrix

import (
	"fmt"
	"testing"

	"ballast/planner/plan"
)

// fullReplicas: a new cluster goes where the plan says that there is room; where there is none it is made all the same, and its writer
// is told.
func (s *site) fullReplicas(t *testing.T) {
	for round, full := range [][]int{{0, 1, 3}, {0, 1, 2, 3}} {
		p := fleet(plan.StatefulSet, 1)
		p.MaxClusters, p.Full, p.Cordoned = 100, full, []int{0, 1}
		p.Clusters["heavy"] = plan.Row{Replica: 2, Load: "1000"} // its load alone would have it elsewhere
		want := outcome{Fields: shard("2"), Audit: audit("Assigned", "1", "shard=-", "shard=2")}
		if len(full) == 4 {
			p.Cordoned = []int{0, 1, 3}
			want.Warnings = []string{
				"ballast: every replica is full (clusters, memory, load), this one goes to 2; raise the limits or partition.maxReplicas"}
		}
		s.decide(t, p, "")
		s.run(t, table{
			resource: secrets, webhook: "clusters.ballast.argoproj.io", fields: shardOf,
			cells: map[string]cell{fmt.Sprintf("CREATE with %d of 4 full", len(full)): {write: create(secret("")), want: want}},
			names: func(i int) string { return fmt.Sprintf("full-%d-%d", round, i) },
			reset: func(*testing.T, string) {},
		})
	}
}

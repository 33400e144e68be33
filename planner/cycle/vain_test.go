package cycle

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// TestWhatIsInVain are moves of Secrets alone that name no replica and that nobody can write: no wave makes them.
func TestWhatIsInVain(t *testing.T) {
	stuck := discover.Cluster{Shard: plan.Shard{ID: "stuck"}, Immutable: true, Explicit: discover.ShardValue{State: discover.ShardAbsent}}
	twin := discover.Cluster{Shard: plan.Shard{ID: "twin"}, Explicit: discover.ShardValue{State: discover.ShardValid, N: 1}}
	for name, test := range map[string]struct {
		moves    []string
		replicas int
		want     []string
	}{
		"it alone":                          {[]string{"stuck"}, 3, []string{"stuck"}},
		"one that can be written beside it": {[]string{"twin"}, 3, nil},
		"both":                              {[]string{"stuck", "twin"}, 3, nil},
		"it, with another count":            {[]string{"stuck"}, 2, nil},
		"nothing":                           {nil, 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rows := map[string]plan.Row{"stuck": {Replica: 1}, "twin": {Replica: 1}}
			g := &ground.Ground{Fleet: discover.Fleet{Clusters: []discover.Cluster{stuck, twin}}}
			g.Next = plan.Plan{Replicas: 3, ControllerReplicas: 16, Clusters: rows}
			want := rollout.Proposal{Replicas: test.replicas, ControllerReplicas: 16, Rows: maps.Clone(rows)}
			for _, moved := range test.moves {
				want.Rows[moved] = plan.Row{Replica: 0}
			}
			if diff := cmp.Diff(test.want, (&snapshot.Snapshot{Ground: g}).Vain(&want)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

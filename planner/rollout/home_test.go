package rollout

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// TestWhatHasToLeaveAReplicaGoesWhereThereIsRoom: three replicas become two, and nobody said where c goes.
func TestWhatHasToLeaveAReplicaGoesWhereThereIsRoom(t *testing.T) {
	on := func(server string, replica int) plan.Row {
		return plan.Row{Replica: replica, Load: "1", Server: plan.ServerHash("https://" + server)}
	}
	for name, test := range map[string]struct {
		rows map[string]plan.Row
		most int // clusters of a replica
		want map[string]int
	}{
		"to the lightest": {
			rows: map[string]plan.Row{"a": {Replica: 0, Load: "5"}, "b": on("b", 1), "d": on("d", 1), "c": on("c", 2)},
			want: map[string]int{"a": 0, "b": 1, "d": 1, "c": 1},
		},
		"to one with room under the cap, though it carries more": {
			rows: map[string]plan.Row{"a": {Replica: 0, Load: "5"}, "b": on("b", 1), "d": on("d", 1), "c": on("c", 2)}, most: 2,
			want: map[string]int{"a": 0, "b": 1, "d": 1, "c": 0},
		},
		"to the one that has its server": {
			rows: map[string]plan.Row{"a": {Replica: 0, Load: "5", Server: on("c", 0).Server}, "b": on("b", 1), "c": on("c", 2)},
			want: map[string]int{"a": 0, "b": 1, "c": 0},
		},
	} {
		for _, mode := range []string{plan.ModeLive, plan.ModeDefault} {
			t.Run(name+", "+mode, func(t *testing.T) {
				stage := map[string]plan.Stage{plan.ModeLive: plan.Moving, plan.ModeDefault: plan.Assigning}[mode]
				p := during(three, two, stage, nil, func(p *plan.Plan) { p.Clusters, p.Rollout.Mode = test.rows, mode })
				stands := shards{}
				for name, row := range test.rows {
					stands[name] = row.Replica
				}
				seen := fit(3, 16, stands)
				for i, s := range seen.Secrets {
					seen.Secrets[i].Server = "https://" + s.Name
					if test.rows[s.Name].Server == on("c", 0).Server {
						seen.Secrets[i].Server = "https://c"
					}
				}
				o := basis.Options{StageTimeout: time.Hour, MaxMovesPerWave: 5, Budget: math.MaxInt, MaxClusters: test.most}
				next, progress := Advance(plan.NewView(p, nil), seen, nil, o, start)
				got := map[string]int{}
				for name, row := range next.Clusters {
					got[name] = row.Replica
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", progress.Why, diff)
				}
			})
		}
	}
}

package decision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
	"ballast/webhook/objects"
)

// A new cluster goes where there is room, and where there is none it is not refused: its writer is told.
func TestANewClusterGoesWhereThereIsRoom(t *testing.T) {
	const warning = "ballast: every replica is full (clusters or memory), this one goes to 0; raise the limits or partition.maxReplicas"
	for name, tc := range map[string]struct {
		full      []int
		cordoned  []int
		old       objects.Secret
		want      string
		warnings  []string
		knownHost bool
	}{
		"one has room":                 {full: []int{0, 1, 3}, want: "2"},
		"another one has":              {full: []int{1, 2, 3}, want: "0"},
		"none has":                     {full: []int{0, 1, 2, 3}, cordoned: []int{1, 2, 3}, want: "0", warnings: []string{warning}},
		"the one that has is cordoned": {full: []int{0}, cordoned: []int{1, 2, 3}, want: "0", warnings: []string{warning}},
		"it is no new one": {full: []int{0, 1, 2, 3}, old: cluster("2"), want: "2",
			warnings: []string{`ballast: no shard was asked, 2 stays (plan 17); to pin, add "new: 2" to data.pins of ConfigMap ballast-plan`}},
		"a server that the plan knows": {full: []int{0, 1, 3}, knownHost: true, want: "0"},
		"and where no other is roomy":  {full: []int{0, 1, 2, 3}, knownHost: true, want: "0", warnings: []string{warning}},
	} {
		t.Run(name, func(t *testing.T) {
			s := withPlan(nil, func(p *plan.Plan) { p.Full, p.Cordoned = tc.full, tc.cordoned })
			object := cluster("")
			if tc.knownHost {
				object.Server = "https://us.example"
			}
			v := Cluster(s, Request{Create: !tc.old.HasShard, Namespace: "argocd", Name: "new"}, object, tc.old)
			if diff := cmp.Diff(shardIs(tc.want), v.Enforced) + cmp.Diff(plan.Assigned, v.Reason) + cmp.Diff("", v.Denied); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.warnings, v.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

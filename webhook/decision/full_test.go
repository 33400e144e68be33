package decision

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
	"ballast/webhook/objects"
)

// A new cluster goes where there is room, and where there is none it is not refused: its writer is told.
func TestANewClusterGoesWhereThereIsRoom(t *testing.T) {
	const warning = "ballast: every replica is full (clusters, memory, load), this one goes to 0; raise the limits or partition.maxReplicas"
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

// Two Secrets of one new server that are written one after the other, however they spell it, have one replica: the answer rests on the
// plan and the server, not on the name.
func TestTwoSecretsOfOneNewServerHaveOneReplica(t *testing.T) {
	for name, change := range map[string]func(*plan.Plan){
		"none is full":      func(*plan.Plan) {},
		"two are":           func(p *plan.Plan) { p.Full = []int{0, 2} },
		"all are":           func(p *plan.Plan) { p.Full = []int{0, 1, 2, 3} },
		"one has one place": func(p *plan.Plan) { p.MaxClusters, p.Full = 2, []int{1, 2, 3} },
		"two are cordoned":  func(p *plan.Plan) { p.Cordoned = []int{1, 3} },
	} {
		s := withPlan(nil, change)
		for i := range 40 {
			server := fmt.Sprintf("https://new-%d.example", i)
			answer := func(name, server string) []Field {
				object := cluster("")
				object.Server = server
				return Cluster(s, Request{Create: true, Namespace: "argocd", Name: name}, object, objects.Secret{}).Enforced
			}
			if diff := cmp.Diff(answer("first", server), answer("second", server+"/")); diff != "" {
				t.Errorf("%s: two Secrets of %s (-first +second):\n%s", name, server, diff)
			}
		}
	}
}

package webhook

import (
	"encoding/base64"
	"fmt"
	"testing"

	"ballast/planner/plan"
	"ballast/webhook/decision"
	"ballast/webhook/inforce"
	"ballast/webhook/rawjson"
)

// What the labels of a Secret's request say decides where a new cluster goes, as the plan has the groups.
func TestANewClusterGoesByItsGroups(t *testing.T) {
	p := plan.Plan{Revision: 1, Mode: plan.Enforce, Replicas: 3, MaxReplicas: 3, Cordoned: []int{2},
		Target: plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "controller"}, Clusters: map[string]plan.Row{},
		Groups: map[string]plan.ClusterGroup{"hubs": {Apart: "tier in (hub)", At: []int{0}}, "pay": {Together: "team=pay", At: []int{0}}}}
	s := inforce.Of(inforce.Identity{}, plan.NewView(p, nil))
	for labels, want := range map[string]string{`"tier":"hub"`: "1", `"team":"pay"`: "0", `"tier":"hub","team":"pay"`: "0"} {
		for i := range 20 {
			server := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "https://new-%d", i))
			text := fmt.Sprintf(`{"metadata":{"name":"new","labels":{"argocd.argoproj.io/secret-type":"cluster",%s}},"data":{"server":"%s"}}`, labels, server)
			object, err := rawjson.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			v, err := reviewCluster(s, &review{Request: decision.Request{Create: true, Kind: "Secret", Namespace: "argocd", Name: "new"}, object: object})
			if err != nil || len(v.Enforced) != 1 || v.Enforced[0].Value != want {
				t.Fatalf("labels %s: %+v, %v, want shard %s", labels, v, err, want)
			}
		}
	}
}

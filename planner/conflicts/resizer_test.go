package conflicts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/plan"
	"ballast/planner/size/inputs"
)

// vpa is one over the planned workload, with so much more in its spec.
func vpa(t *testing.T, name, spec string) (v inputs.VPA) {
	t.Helper()
	text := fmt.Sprintf(`{"metadata":{"namespace":"argocd","name":%q},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":%q}%s}}`,
		name, controller, spec)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAVPAThatChangesPodsIsNamed(t *testing.T) {
	p := planOf(4)
	p.Target.Container = "application-controller"
	another := vpa(t, "another", "")
	another.Metadata.Namespace = "elsewhere"
	evicts := "evicts or resizes pods of StatefulSet " + controller + " (updateMode "
	const mend = ": set its updatePolicy.updateMode to Off; size rules may read what it recommends (input vpaTargetMemory)"
	for name, tc := range map[string]struct {
		spec string
		want string
	}{
		"one that recommends":             {`,"updatePolicy":{"updateMode":"Off"}`, ""},
		"Auto":                            {`,"updatePolicy":{"updateMode":"Auto"}`, evicts + "Auto)" + mend},
		"Recreate":                        {`,"updatePolicy":{"updateMode":"Recreate"}`, evicts + "Recreate)" + mend},
		"in place, by its later releases": {`,"updatePolicy":{"updateMode":"InPlaceOrRecreate"}`, evicts + "InPlaceOrRecreate)" + mend},
		"no mode, which is Recreate":      {``, evicts + "Recreate)" + mend},
		"a policy of another type":        {`,"updatePolicy":"Off"`, evicts + "Recreate)" + mend},
		"new pods alone": {`,"updatePolicy":{"updateMode":"Initial"}`,
			"gives new pods another size of StatefulSet " + controller + " (updateMode Initial)" + mend},
		"all containers but ours are off": {`,"resourcePolicy":{"containerPolicies":[{"containerName":"sidecar","mode":"Off"}]}`, evicts + "Recreate)" + mend},
		"our container is off":            {`,"resourcePolicy":{"containerPolicies":[{"containerName":"application-controller","mode":"Off"}]}`, ""},
		"all containers are off":          {`,"resourcePolicy":{"containerPolicies":[{"containerName":"*","mode":"Off"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var want []Finding
			if tc.want != "" {
				want = []Finding{{Resized, "VPA argocd/grow", "VPA argocd/grow " + tc.want}}
			}
			if diff := cmp.Diff(want, Resizers(p, []inputs.VPA{another, vpa(t, "grow", tc.spec)})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAVPABesideHeldSizesIsNamedAsSuch(t *testing.T) {
	p := planOf(4)
	p.Sizes = &plan.Sizes{}
	found := Resizers(p, []inputs.VPA{vpa(t, "grow", "")})
	if len(found) != 1 || !strings.Contains(found[0].Message, ", and ballast holds their size: set its") {
		t.Errorf("%v", found)
	}
}

// TestTheOperatorIsNamedWhereItWritesWhatIsHeld: the number of replicas, unless it is the workload's, and the pod template's resources.
func TestTheOperatorIsNamedWhereItWritesWhatIsHeld(t *testing.T) {
	owners := []metav1.OwnerReference{{Kind: "Team", Name: "a"}, {APIVersion: "argoproj.io/v1beta1", Kind: "ArgoCD", Name: "gitops"}}
	p := planOf(4)
	number := []Finding{{Autoscaled, "ArgoCD argocd/gitops", "ArgoCD argocd/gitops writes the replicas of StatefulSet " + controller +
		", too, and ballast holds them at 4: its writes are made to agree while a webhook answers; " +
		"set its spec.controller.sharding to {enabled: true, replicas: 4}, or partition.replicas: workload so that it decides their number"}}
	if diff := cmp.Diff(number, Operated(p, owners)); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	p.FreeReplicas = true
	if found := Operated(p, owners); found != nil {
		t.Errorf("in place, with replicas of its own: %v", found)
	}
	p.Resources = &plan.Resources{}
	want := []Finding{{Resized, "ArgoCD argocd/gitops", "ArgoCD argocd/gitops writes the resources of StatefulSet " + controller + ", too, and ballast holds them: " +
		"leave them out of its spec.controller.resources, or set size.apply: inPlace, which leaves the pod template alone"}}
	if diff := cmp.Diff(want, Operated(p, owners)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package conflicts

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
)

// TestWhoMakesThousandsOfAutoscalersHoldsNoCycleUp: each names an owner that is not there, which was looked for among all of
// them. A cycle that takes minutes for it ends the leader, and the next one, and no replica's clusters are rescued.
func TestWhoMakesThousandsOfAutoscalersHoldsNoCycleUp(t *testing.T) {
	const many = 20_000
	var list []Autoscaler
	for i := range many {
		list = append(list, Autoscaler{Kind: HPA, Namespace: "argocd", Name: fmt.Sprintf("h%05d", i), Owner: "absent", TargetKind: "StatefulSet", TargetName: controller, Min: 1, Max: 9})
	}
	found := autoscalers(planOf(4), list, 0)
	if len(found) != 21 {
		t.Fatalf("%d findings", len(found))
	}
	want := Finding{Autoscaled, "more autoscalers", "19980 more autoscalers scale StatefulSet " + controller + ": kubectl -n argocd get hpa,scaledobjects.keda.sh lists them; see who may create them"}
	if diff := cmp.Diff(want, found[20]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := found[19].Subject; got != "HPA argocd/h00019" {
		t.Errorf("the last that is named is %q", got)
	}
}

// TestManyBudgetsAreNamedInAFewWords, with their number.
func TestManyBudgetsAreNamedInAFewWords(t *testing.T) {
	var budgets []policyv1.PodDisruptionBudget
	for i := range 100 {
		budgets = append(budgets, budget(fmt.Sprintf("b%02d", i), maxUnavailable("1")))
	}
	const names = "PodDisruptionBudgets b00, b01, b02, b03, b04 and 95 more"
	want := []Finding{{PDBBlocks, names, "the " + names + " all select the pods of StatefulSet " + controller +
		", and Kubernetes evicts no pod that has more than one: no node that runs one can be drained; keep one of them"}}
	if diff := cmp.Diff(want, among(planOf(4), Pods{Labels: podLabels(), Count: 4}, budgets)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

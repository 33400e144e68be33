package conflicts

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pages answers lists of budgets one page each, and the workload with its owners.
type pages struct {
	budgets [][]policyv1.PodDisruptionBudget
	owners  []metav1.OwnerReference
}

func (p pages) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if of, metadata := into.(*metav1.PartialObjectMetadata); metadata {
		of.OwnerReferences = p.owners
		return nil
	}
	into.(*appsv1.StatefulSet).Spec.Template.Labels = podLabels()
	return nil
}

func (p pages) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	list, are := into.(*policyv1.PodDisruptionBudgetList)
	if !are {
		return nil
	}
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	page := 0
	if asked.Continue != "" {
		_, _ = fmt.Sscan(asked.Continue, &page)
	}
	list.Items, list.Continue = p.budgets[page], ""
	if page+1 < len(p.budgets) {
		list.Continue = fmt.Sprint(page + 1)
	}
	return nil
}

// TestBudgetsAreJudgedTogether: who makes a hundred others between two over the same pods hides neither, nor has each told.
func TestBudgetsAreJudgedTogether(t *testing.T) {
	elsewhere := func(name string) policyv1.PodDisruptionBudget {
		b := budget(name, maxUnavailable("1"))
		b.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		return b
	}
	two := pages{budgets: [][]policyv1.PodDisruptionBudget{{budget("z", maxUnavailable("1"))}, {elsewhere("b")}, {budget("a", maxUnavailable("1"))}}}
	found, err := Look(t.Context(), two, planOf(4))
	const names = "PodDisruptionBudgets a, z"
	want := []Finding{{PDBBlocks, names, "the " + names + " all select the pods of StatefulSet " + controller +
		", and Kubernetes evicts no pod that has more than one: no node that runs one can be drained; keep one of them"}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	many := pages{budgets: make([][]policyv1.PodDisruptionBudget, 30)}
	for i := range many.budgets {
		many.budgets[i] = []policyv1.PodDisruptionBudget{budget(fmt.Sprintf("b%02d", i), maxUnavailable("0"))}
	}
	found, err = Look(t.Context(), many, planOf(4))
	var subjects []string
	for _, f := range found {
		subjects = append(subjects, f.Subject)
	}
	var told []string
	for i := range 19 {
		told = append(told, fmt.Sprintf("PodDisruptionBudget argocd/b%02d", i))
	}
	told = append(told, "PodDisruptionBudgets b00, b01, b02, b03, b04 and 25 more", "more PodDisruptionBudgets")
	if diff := cmp.Diff(told, subjects); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestALookFindsTheOperator of the workload, also while no size is held.
func TestALookFindsTheOperator(t *testing.T) {
	r := pages{budgets: [][]policyv1.PodDisruptionBudget{nil}, owners: []metav1.OwnerReference{{Kind: "ArgoCD", Name: "gitops"}}}
	for free, want := range map[bool]int{false: 1, true: 0} {
		p := planOf(4)
		p.FreeReplicas = free
		found, err := Look(t.Context(), r, p)
		if len(found) != want || err != nil {
			t.Errorf("replicas are the workload's: %v: %v, %v", free, found, err)
		}
	}
}

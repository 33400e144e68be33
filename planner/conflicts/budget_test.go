package conflicts

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

const controller = "argocd-application-controller"

func planOf(replicas int) plan.Plan {
	return plan.Plan{Replicas: replicas, Target: plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: controller}}
}

func podLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": controller, "app.kubernetes.io/part-of": "argocd"}
}

func budget(name string, change func(*policyv1.PodDisruptionBudget)) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": controller}}}}
	change(&b)
	return b
}

func minAvailable(value string) func(*policyv1.PodDisruptionBudget) {
	v := intstr.Parse(value)
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = &v }
}

func maxUnavailable(value string) func(*policyv1.PodDisruptionBudget) {
	v := intstr.Parse(value)
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &v }
}

const (
	ofThePlan = "the 4 replicas of the plan"
	mendPDB   = ": no node that runs one of StatefulSet " + controller + " can be drained; set maxUnavailable: 1 there, which fits any number of replicas above 0"
)

func TestBudgetsThatKeepNodesFromBeingDrained(t *testing.T) {
	blocks := func(asks, of string) []Finding {
		return []Finding{{PDBBlocks, "PodDisruptionBudget argocd/a", "PodDisruptionBudget argocd/a asks for " + asks + ", which spares none of " + of + mendPDB}}
	}
	shrinking, draining := planOf(4), planOf(0)
	shrinking.Rollout = &plan.Rollout{Replicas: 3}
	draining.Rollout = &plan.Rollout{Replicas: 4}
	for name, test := range map[string]struct {
		plan    plan.Plan
		pods    int
		budgets []policyv1.PodDisruptionBudget
		want    []Finding
	}{
		"none":                        {planOf(4), 4, nil, nil},
		"one that spares a pod":       {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", minAvailable("3"))}, nil},
		"one that spares none":        {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", minAvailable("4"))}, blocks("minAvailable 4", ofThePlan)},
		"one that asks for more":      {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", minAvailable("9"))}, blocks("minAvailable 9", ofThePlan)},
		"a share that spares a pod":   {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", minAvailable("75%"))}, nil},
		"a share that is rounded up":  {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", minAvailable("76%"))}, blocks("minAvailable 76%", ofThePlan)},
		"no pod may be unavailable":   {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", maxUnavailable("0"))}, blocks("maxUnavailable 0", ofThePlan)},
		"no share may be unavailable": {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", maxUnavailable("0%"))}, blocks("maxUnavailable 0%", ofThePlan)},
		"a small share is one pod":    {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", maxUnavailable("1%"))}, nil},
		"one pod may be unavailable":  {planOf(1), 1, []policyv1.PodDisruptionBudget{budget("a", maxUnavailable("1"))}, nil},
		"one that says nothing":       {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", func(*policyv1.PodDisruptionBudget) {})}, blocks("neither minAvailable nor maxUnavailable", ofThePlan)},
		"a rollout to fewer":          {shrinking, 4, []policyv1.PodDisruptionBudget{budget("a", minAvailable("3"))}, blocks("minAvailable 3", "the 3 replicas that the rollout goes to")},
		"a rollout, before and after": {shrinking, 4, []policyv1.PodDisruptionBudget{budget("a", maxUnavailable("0"))}, blocks("maxUnavailable 0", ofThePlan+" and of the 3 replicas that the rollout goes to")},
		"while no replica runs":       {draining, 0, []policyv1.PodDisruptionBudget{budget("a", minAvailable("4"))}, blocks("minAvailable 4", "the 4 replicas that the rollout goes to")},
		"one of another namespace":    {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", func(b *policyv1.PodDisruptionBudget) { b.Namespace = "other" })}, nil},
		"one over other pods": {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchLabels["app.kubernetes.io/name"] = "argocd-server"
		})}, nil},
		"one over no pods":             {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil })}, nil},
		"one over every pod there is":  {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{}; minAvailable("4")(b) })}, blocks("minAvailable 4", ofThePlan)},
		"one over other pods, as well": {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("a", func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 7; minAvailable("4")(b) })}, nil},
		"two over one pod": {planOf(4), 4, []policyv1.PodDisruptionBudget{budget("b", minAvailable("2")), budget("a", maxUnavailable("1"))}, []Finding{{
			PDBBlocks, "PodDisruptionBudgets a, b", "the PodDisruptionBudgets a, b all select the pods of StatefulSet " + controller +
				", and Kubernetes evicts no pod that has more than one: no node that runs one can be drained; keep one of them"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, among(test.plan, Pods{Labels: podLabels(), Count: test.pods}, test.budgets)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// among are those of some budgets under which no node can be drained.
func among(p plan.Plan, pods Pods, budgets []policyv1.PodDisruptionBudget) []Finding {
	return undrainable(p, pods, selecting(p.Target.Namespace, pods, budgets))
}

// TestABudgetBlocksWhereNoPodIsSpared holds the roundings against whole numbers: a share of pods is compared without
// division.
func TestABudgetBlocksWhereNoPodIsSpared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas, value := rapid.IntRange(1, 64).Draw(t, "replicas"), rapid.IntRange(0, 120).Draw(t, "value")
		number, share := intstr.FromInt32(int32(value)), intstr.FromString(strconv.Itoa(value)+"%")
		for _, c := range []struct {
			what string
			spec policyv1.PodDisruptionBudgetSpec
			want bool
		}{
			{"minAvailable", policyv1.PodDisruptionBudgetSpec{MinAvailable: &number}, value >= replicas},
			{"minAvailable %", policyv1.PodDisruptionBudgetSpec{MinAvailable: &share}, value*replicas > 100*(replicas-1)},
			{"maxUnavailable", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &number}, value == 0},
			{"maxUnavailable %", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &share}, value == 0},
		} {
			c.spec.Selector = &metav1.LabelSelector{}
			b := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "a"}, Spec: c.spec}
			if got := len(among(planOf(replicas), Pods{Count: replicas}, []policyv1.PodDisruptionBudget{b})) > 0; got != c.want {
				t.Fatalf("%s %d of %d replicas: blocks is %t, want %t", c.what, value, replicas, got, c.want)
			}
		}
	})
}

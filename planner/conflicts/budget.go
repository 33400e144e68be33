package conflicts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ballast/planner/plan"
)

// Pods are the workload's as a budget sees them: the labels of its template, and how many there are now.
type Pods struct {
	Labels map[string]string
	Count  int
}

// undrainable finds the budgets under which no node that runs a replica can be drained: with the plan's replicas, or
// with those that a rollout goes to. Two budgets over one pod are another way: Kubernetes evicts none then.
func undrainable(p plan.Plan, pods Pods, ours []policyv1.PodDisruptionBudget) []Finding {
	slices.SortFunc(ours, func(a, b policyv1.PodDisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
	var found []Finding
	for _, b := range ours {
		if asks, counts := blocked(p, pods, b); len(counts) > 0 {
			found = append(found, Finding{Kind: PDBBlocks, Subject: nameOf(b), Message: fmt.Sprintf(
				"%s asks for %s, which spares none of %s: no node that runs one of %s %s can be drained; set maxUnavailable: 1 there, which fits any number of replicas above 0",
				nameOf(b), asks, strings.Join(counts, " and of "), p.Target.Kind, p.Target.Name)})
		}
	}
	if len(ours) > 1 && p.Replicas > 0 {
		names := "PodDisruptionBudgets " + listed(ours)
		found = append(found, Finding{Kind: PDBBlocks, Subject: names, Message: fmt.Sprintf(
			"the %s all select the pods of %s %s, and Kubernetes evicts no pod that has more than one: no node that runs one can be drained; keep one of them",
			names, p.Target.Kind, p.Target.Name)})
	}
	return found
}

// mostNames is how many of several are named in one finding.
const mostNames = 5

// listed names the first of several, and the number of the others.
func listed(budgets []policyv1.PodDisruptionBudget) string {
	var names []string
	for _, b := range budgets[:min(len(budgets), mostNames)] {
		names = append(names, b.Name)
	}
	if more := len(budgets) - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, ", ")
}

// selecting are the budgets over the workload's pods, without what is not looked at afterwards: each may be as large as
// etcd takes it.
func selecting(namespace string, pods Pods, budgets []policyv1.PodDisruptionBudget) (ours []policyv1.PodDisruptionBudget) {
	for i := range budgets {
		b := &budgets[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if b.Namespace != namespace || err != nil || !selector.Matches(labels.Set(pods.Labels)) {
			continue
		}
		ours = append(ours, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace,
			Name: b.Name},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: b.Spec.MinAvailable,
				MaxUnavailable: b.Spec.MaxUnavailable},
			Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: b.Status.ExpectedPods}})
	}
	return ours
}

// blocked says what a budget asks for, and of which of the plan's numbers of replicas that leaves none to spare.
func blocked(p plan.Plan, pods Pods, b policyv1.PodDisruptionBudget) (asks string, counts []string) {
	others := max(int(b.Status.ExpectedPods)-pods.Count, 0) // a selector may be wider than one workload
	add := func(replicas int, what string) {
		if replicas > 0 && demanded(b.Spec, replicas+others) >= replicas+others {
			counts = append(counts, fmt.Sprintf("the %d %s", replicas, what))
		}
	}
	add(p.Replicas, "replicas of the plan")
	if r := p.Rollout; r != nil && r.Replicas != p.Replicas {
		add(r.Replicas, "replicas that the rollout goes to")
	}
	switch s := b.Spec; {
	case s.MaxUnavailable != nil:
		return "maxUnavailable " + s.MaxUnavailable.String(), counts
	case s.MinAvailable != nil:
		return "minAvailable " + s.MinAvailable.String(), counts
	}
	return "neither minAvailable nor maxUnavailable", counts
}

// demanded is how many of so many pods a budget wants healthy, as Kubernetes' disruption controller computes it: both
// percentages are rounded up, and one that says nothing lets nothing go.
func demanded(s policyv1.PodDisruptionBudgetSpec, pods int) int {
	switch {
	case s.MaxUnavailable != nil:
		if n, err := intstr.GetScaledValueFromIntOrPercent(s.MaxUnavailable, pods, true); err == nil {
			return pods - n
		}
	case s.MinAvailable != nil:
		if n, err := intstr.GetScaledValueFromIntOrPercent(s.MinAvailable, pods, true); err == nil {
			return n
		}
	default:
		return pods
	}
	return 0
}

func nameOf(b policyv1.PodDisruptionBudget) string {
	return "PodDisruptionBudget " + b.Namespace + "/" + b.Name
}

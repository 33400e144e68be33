package conflicts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ballast/planner/plan"
)

// What autoscalers are called in findings.
const (
	HPA          = "HPA"
	ScaledObject = "ScaledObject"
)

// Autoscaler is an object that scales a workload of its namespace. Owner is the ScaledObject that made an HPA, if one
// did.
type Autoscaler struct {
	Kind       string
	Namespace  string
	Name       string
	Owner      string
	TargetKind string
	TargetName string
	Min, Max   int
}

// autoscalers finds those that scale the plan's workload, by kind and name, beside so many that are not in the list;
// none where the replicas are theirs by configuration. An HPA that a ScaledObject made is its own finding only where
// that ScaledObject is not in the list.
func autoscalers(p plan.Plan, list []Autoscaler, unlisted int) []Finding {
	if p.FreeReplicas {
		return nil
	}
	var ours []Autoscaler
	makers := map[string]bool{}
	for _, a := range list {
		if a.scales(p.Target) {
			ours = append(ours, a)
			makers[a.Name] = makers[a.Name] || a.Kind == ScaledObject
		}
	}
	ours = slices.DeleteFunc(ours, func(a Autoscaler) bool { return a.Owner != "" && makers[a.Owner] })
	slices.SortFunc(ours, func(a, b Autoscaler) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	told := ours[:min(len(ours), mostTold)]
	var found []Finding
	for _, a := range told {
		found = append(found, Finding{Kind: Autoscaled, Subject: a.subject(), Message: fmt.Sprintf(
			"%s scales %s %s between %d and %d, and ballast holds its replicas at %d: delete the %s, or set partition.replicas: workload so that it decides their number",
			a.subject(), p.Target.Kind, p.Target.Name, a.Min, a.Max, p.Replicas, a.Kind)})
	}
	if more := unlisted + len(ours) - len(told); more > 0 {
		found = append(found, Finding{Kind: Autoscaled, Subject: "more autoscalers", Message: fmt.Sprintf(
			"%d more autoscalers scale %s %s: kubectl -n %s get hpa,scaledobjects.keda.sh lists them; see who may create them",
			more, p.Target.Kind, p.Target.Name, p.Target.Namespace)})
	}
	return found
}

// scales reports whether it scales that workload, by kind and name.
func (a Autoscaler) scales(t plan.Target) bool {
	return a.Namespace == t.Namespace && a.TargetKind == t.Kind && a.TargetName == t.Name
}

func (a Autoscaler) subject() string {
	return strings.Join([]string{a.Kind, a.Namespace + "/" + a.Name}, " ")
}

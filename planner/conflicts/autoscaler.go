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

// Autoscalers finds those that scale the plan's workload, by kind and name; none where the replicas are theirs by
// configuration. An HPA that a ScaledObject made is its own finding only where that ScaledObject is not in the list.
func Autoscalers(p plan.Plan, list []Autoscaler) []Finding {
	if p.FreeReplicas {
		return nil
	}
	var ours []Autoscaler
	for _, a := range list {
		if a.Namespace == p.Target.Namespace && a.TargetKind == p.Target.Kind && a.TargetName == p.Target.Name {
			ours = append(ours, a)
		}
	}
	slices.SortFunc(ours, func(a, b Autoscaler) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	var found []Finding
	for _, a := range ours {
		if a.Owner != "" && slices.ContainsFunc(ours, func(o Autoscaler) bool { return o.Kind == ScaledObject && o.Name == a.Owner }) {
			continue
		}
		found = append(found, Finding{Kind: Autoscaled, Subject: a.subject(), Message: fmt.Sprintf(
			"%s scales %s %s between %d and %d, and ballast holds its replicas at %d: delete the %s, or set partition.replicas: workload so that it decides their number",
			a.subject(), p.Target.Kind, p.Target.Name, a.Min, a.Max, p.Replicas, a.Kind)})
	}
	return found
}

func (a Autoscaler) subject() string {
	return strings.Join([]string{a.Kind, a.Namespace + "/" + a.Name}, " ")
}

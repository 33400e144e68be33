package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/plan"
	"ballast/planner/size"
)

// The inputs that are neither metrics of clusters nor made of them: what all nodes of the cluster that ballast runs in can give pods, in
// cores and bytes, and how many there are; what a VerticalPodAutoscaler of the workload recommends, in cores and bytes; and how
// many replicas a HorizontalPodAutoscaler of the workload wants.
const (
	InputCores  = "cores"
	InputMemory = "memory"
	InputNodes  = "nodes"

	InputVPATargetCPU        = "vpaTargetCPU"
	InputVPATargetMemory     = "vpaTargetMemory"
	InputVPALowerBoundCPU    = "vpaLowerBoundCPU"
	InputVPALowerBoundMemory = "vpaLowerBoundMemory"
	InputVPAUpperBoundCPU    = "vpaUpperBoundCPU"
	InputVPAUpperBoundMemory = "vpaUpperBoundMemory"

	InputHPAReplicas = "hpaReplicas"

	// InputMemoryInUse is what each replica's pod says that it has in use, in bytes.
	InputMemoryInUse = "memoryInUse"
)

// Source is who has an input.
type Source string

// The sources; that of every other input is the fleet.
const (
	FromFleet      Source = ""
	FromNodesInput Source = "nodes"
	FromVPA        Source = "VerticalPodAutoscaler"
	FromHPA        Source = "HorizontalPodAutoscaler"
	FromPods       Source = "pods"
)

// surroundings are the inputs of the workload's surroundings, and who has them.
func surroundings() map[string]Source {
	return map[string]Source{InputCores: FromNodesInput, InputMemory: FromNodesInput, InputNodes: FromNodesInput,
		InputVPATargetCPU: FromVPA, InputVPATargetMemory: FromVPA, InputVPALowerBoundCPU: FromVPA,
		InputVPALowerBoundMemory: FromVPA, InputVPAUpperBoundCPU: FromVPA, InputVPAUpperBoundMemory: FromVPA,
		InputHPAReplicas: FromHPA, InputMemoryInUse: FromPods}
}

// SourceOf is who has an input.
func SourceOf(input string) Source { return surroundings()[input] }

// BoundOf is which of a recommendation's bounds an input is, Target, LowerBound or UpperBound, and of which resource.
func BoundOf(input string) (bound, resource string) {
	bound = strings.TrimPrefix(input, "vpa")
	if cut, isCPU := strings.CutSuffix(bound, "CPU"); isCPU {
		return cut, size.CPU
	}
	return strings.TrimSuffix(bound, "Memory"), size.Memory
}

// ofFleet reports whether an input is one number for all replicas and clusters.
func ofFleet(input string) bool {
	source := SourceOf(input)
	return input == InputReplicas || source != FromFleet && source != FromPods
}

// validateScope refuses what an input has not got.
func (c PlannerConfig) validateScope(r SizeRule, at *field.Path) field.ErrorList {
	given := r.Scope != ""
	ofReplicas := c.isOfReplicas(r.Input) || SourceOf(r.Input) == FromPods
	p := at.Child("scope")
	switch {
	case given && ofFleet(r.Input) && r.Scope != ScopeTotal:
		return wrong(p, string(r.Scope), fmt.Sprintf("is not that of %s: write total, or leave it out", ofFleetName(r.Input)))
	case r.Input == InputClusters && r.Scope == ScopeCluster:
		return wrong(p, string(r.Scope), "has one cluster, whichever it is: write replica, or total")
	case c.isOfReplicas(r.Input) && c.Target.Kind == plan.Deployment:
		return wrong(at.Child("input"), r.Input, "is a metric of replicas, and the pods of a Deployment have no ordinals by which they are replicas")
	case given && ofReplicas && r.Scope != ScopeReplica:
		return wrong(p, string(r.Scope), "is not that of what each replica has for itself: write replica, or leave it out")
	}
	return nil
}

func wrong(p *field.Path, value, why string) field.ErrorList {
	return field.ErrorList{field.Invalid(p, value, why)}
}

func ofFleetName(input string) string {
	if input == InputReplicas {
		return "the number of replicas"
	}
	return fmt.Sprintf("%s, which is one for all", input)
}

func (c PlannerConfig) isOfReplicas(input string) bool {
	p := c.Poll.Prometheus
	return p != nil && slices.ContainsFunc(p.OfReplicas(), func(m Metric) bool { return m.ID == input })
}

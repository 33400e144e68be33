package config

import (
	"maps"
	"slices"
	"strings"

	"ballast/planner/size"
)

// The inputs that are no metrics.
const (
	InputClusters = "clusters"
	InputLoad     = "load"
	InputReplicas = "replicas"
)

// The inputs that are neither metrics of clusters nor made of them: what all nodes of the cluster that ballast runs in
// can give pods, in cores and bytes, and how many there are; what a VerticalPodAutoscaler of the workload recommends,
// in cores and bytes; and how many replicas a HorizontalPodAutoscaler of the workload wants.
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

// KnownInputs says which inputs there are beside those metrics.
func KnownInputs(metrics []string) []string {
	known := slices.Concat([]string{InputClusters, InputLoad, InputReplicas}, slices.Collect(maps.Keys(surroundings())),
		metrics)
	slices.SortFunc(known, strings.Compare)
	return slices.Compact(known)
}

// IsOfFleet reports whether an input is one number for all replicas and clusters.
func IsOfFleet(input string) bool {
	source := SourceOf(input)
	return input == InputReplicas || source != FromFleet && source != FromPods
}

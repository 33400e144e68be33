package telemetry

// The phases that a panic names; the set is closed.
const (
	PhaseTakeOver = "takeOver" // reading the key and the last leader's memory
	PhaseGather   = "gather"   // reading the plan, the Secrets and the workload
	PhaseFetch    = "fetch"    // asking Prometheus
	PhaseObserve  = "observe"  // asking the pods
	PhaseDecide   = "decide"
	PhaseStore    = "store"
	PhaseRepair   = "repair"
	PhaseWatch    = "watch" // a plan that a watch told of
)

// PhaseApply is the phase of the repairs' writes, as durations and errors name it.
const PhaseApply = "apply"

// panicPhases is the closed set, for the metric that shows every phase from the start.
func panicPhases() []string {
	return []string{PhaseTakeOver, PhaseGather, PhaseFetch, PhaseObserve, PhaseDecide, PhaseStore, PhaseRepair, PhaseWatch}
}

// erringPhases is the closed set of what errors are counted by.
func erringPhases() []string {
	return []string{PhaseTakeOver, PhaseGather, PhaseFetch, PhaseObserve, PhaseDecide, PhaseStore, PhaseApply}
}

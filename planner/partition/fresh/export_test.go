package fresh

import (
	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
)

func none(*state, int) {}

// BySearch is Plan without the constructions beside LPT, ByBestFit and ByFirstFit are Plan by nothing else.
func BySearch(p constraint.Question, o Options) (partition.Partition, error) {
	return by(p, o, (*state).fewer, nil)
}

func ByBestFit(p constraint.Question, o Options) (partition.Partition, error) {
	return by(p, o, none, []construction{bestFit})
}

func ByFirstFit(p constraint.Question, o Options) (partition.Partition, error) {
	return by(p, o, none, []construction{firstFit})
}

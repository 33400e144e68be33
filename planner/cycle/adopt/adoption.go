package adopt

import (
	"time"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
)

// Adoption is the plan in force brought up to date with the world, without deciding anything: new clusters have rows,
// gone ones lose theirs in time, pins and the configuration are taken over.
type Adoption struct {
	*ground.Ground
	Gone  map[string]time.Time
	Moved []outcome.Move // clusters that have another replica than in the plan before
	Notes []string       // what changed, in words
	Found []problem.Problem

	followed []string // clusters whose rows went to the replica that has them
}

package inuse

import (
	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
)

// memoryUse says what clusters take of a replica's memory, and learns it of the pods where nobody wrote it.
type memoryUse struct{ *outcome.Draft }

// remembers is the configuration's memory; nil: nothing is bounded by it.
func remembers(c config.PlannerConfig) *config.Memory {
	if c.Index.Dimensions == nil {
		return nil
	}
	return c.Index.Dimensions.Memory
}

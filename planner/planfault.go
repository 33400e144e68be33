package planner

import (
	"errors"

	"ballast/planner/plan"
	"ballast/planner/store"
)

// planFault says what is wrong with the plan that was read; empty where it is in force, or there is none.
func planFault(doc plan.Document, inForce *plan.Plan) string {
	switch {
	case errors.Is(doc.PlanErr, store.ErrForeign):
		return planForeign
	case doc.PlanErr != nil:
		return planBroken
	case doc.Plan != nil && inForce == nil:
		return planOlder
	}
	return ""
}

package controller

import (
	"errors"

	"ballast/planner/cycle"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// planFault says what is wrong with the plan that was read; empty where it is in force, or there is none.
func planFault(doc plan.Document, inForce *plan.Plan) string {
	switch {
	case errors.Is(doc.PlanErr, store.ErrForeign):
		return cycle.PlanForeign
	case doc.PlanErr != nil:
		return cycle.PlanBroken
	case doc.Plan != nil && inForce == nil:
		return cycle.PlanOlder
	}
	return ""
}

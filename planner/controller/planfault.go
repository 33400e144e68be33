package controller

import (
	"errors"

	"ballast/planner/cycle/belief"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// Judge says of a plan that was read whether it is in force, by the newest that is known: one of a lower revision is a backup that
// somebody restored, and one that cannot be read is none. Then the newest is put back, and fault says why.
func Judge(doc plan.Document, newest *plan.Plan) (inForce, last *plan.Plan, fault string) {
	inForce, last = doc.Plan, nil
	if older := doc.Plan != nil && newest != nil && doc.Plan.Revision < newest.Revision; doc.Plan == nil || older {
		inForce, last = nil, newest
	}
	return inForce, last, planFault(doc, inForce)
}

// planFault says what is wrong with the plan that was read; empty where it is in force, or there is none.
func planFault(doc plan.Document, inForce *plan.Plan) string {
	switch {
	case errors.Is(doc.PlanErr, store.ErrForeign):
		return belief.PlanForeign
	case doc.PlanErr != nil:
		return belief.PlanBroken
	case doc.Plan != nil && inForce == nil:
		return belief.PlanOlder
	}
	return ""
}

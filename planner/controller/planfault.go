package controller

import (
	"errors"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
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

// TakeIn takes over what the plan ConfigMap says, judged by the newest plan that is known and the plans that a person may go back to. It
// is the same for the leader and for whoever asks what a leader would do.
func TakeIn(in *input.Inputs, snapshot store.Snapshot, newest *plan.Plan, kept []store.Record) {
	doc := snapshot.Document
	in.InForce, in.Last, in.PlanFault = Judge(doc, newest)
	in.Pins, in.PinProblems, in.Paused, in.BreakGlass = doc.Pins, doc.PinProblems, doc.Paused, doc.BreakGlass
	in.Cordon, in.Tripped, in.Rebase, in.Rollback = doc.Cordon, doc.Tripped, doc.Rebase, RollbackTo(kept, doc.Rollback)
	if !snapshot.Exists() {
		in.Memory.Changes.TripTold = false // that the annotation is gone is nobody's word
	}
	in.Discovered.AcceptDiscovery = doc.AcceptDiscovery
}

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

package cycle

import (
	"ballast/planner/cycle/election"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/safety"
	"ballast/planner/cycle/sizing"
	"ballast/planner/plan"
)

// cycle is one of them, in the order of its phases. Each phase is a type or a function that has the draft and what it
// needs beside it.
type cycle struct {
	*outcome.Draft
	breaker   *safety.Breaker
	votes     *election.Election
	read      *plan.Plan     // the plan in force as it stands in its ConfigMap
	turnsBack string         // why a rollout that has stopped every replica brings them back as they were
	verdicts  gate.Verdicts  // of the gates, before anything began
	ungrown   sizing.Ungrown // replicas that nothing is levelled to, since they may not grow for it
}

func newCycle(in input.Inputs, read *plan.Plan, held sizing.Ungrown) *cycle {
	d := &outcome.Draft{In: in, Out: outcome.Outcome{Memory: in.Memory}}
	votes := &election.Election{Draft: d, Ballots: in.Memory.Votes}
	return &cycle{Draft: d, breaker: &safety.Breaker{Draft: d}, votes: votes, read: read, ungrown: held}
}

// starting begins a rollout.
type starting struct{ *cycle }

// advancing goes on with the one under way.
type advancing struct{ *cycle }

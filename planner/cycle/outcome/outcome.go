// Package outcome is what a cycle decided and what it decided on, and the draft of it that the phases share.
package outcome

import (
	"ballast/planner/change"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize"
	"ballast/planner/discover"
	"ballast/planner/failover/health"
	"ballast/planner/measure"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// Outcome is what a cycle decided and what it decided on.
type Outcome struct {
	Next      plan.Plan
	Changed   bool   // Next enforces something else than the plan in force and is to be written
	Decided   bool   // a rollout began, or a plan was made: the history is written at once
	Reason    string // one sentence a person understands
	Memory    memory.Memory
	Fleet     discover.Fleet
	Table     measure.Table
	Loads     []plan.Load // of Fleet.Clusters; nil while the metrics say nothing
	Now       []plan.Replica
	InUse     *InUse // of memory; nil: the configuration has no such dimension, or nobody knows
	Line      *Line  // what a replica may carry, or is known to; nil: nothing says it
	Candidate *Candidate
	Sizing    *resize.Sizing   // nil: no policy says how large replicas are
	Counts    *Counts          // nil: nothing is to be said of how many there are
	Blocked   []resize.Blocked // moves that level are wanted, and wait for a rule of change.moves
	Progress  rollout.Progress
	Verdict   ownership.Verdict // who has each cluster
	Replicas  health.Verdict    // who is unwell
	Cordoned  []int             // whom a person wants empty
	Budget    change.Budget
	Counted   map[change.Cause]int // moves that entered the ledger in this cycle
	Done      bool                 // the rollback that a person asked for holds, or was refused
	Rebased   bool                 // what a person asked for of the references is done, or was refused
	Problems  []problem.Problem
	Pins      plan.Pins // data.pins and the Secrets' annotations together
}

// Printable is the gate of what else an outcome says in words.
func (o Outcome) Printable() Outcome {
	o.Problems = problem.Printable(o.Problems)
	o.Reason = problem.Text(o.Reason)
	o.Progress.Why = problem.Text(o.Progress.Why)
	return o
}

// Scales reports whether a cycle begins to change the number of replicas.
func (o Outcome) Scales() bool {
	r := o.Next.Rollout
	return o.Decided && r != nil && r.Replicas != r.From.Replicas
}

// Waiting are all changes that are wanted and do not happen now: of the number of replicas, of where clusters are, and
// of sizes.
func (o Outcome) Waiting() (all []resize.Blocked) {
	if o.Counts != nil {
		all = append(all, o.Counts.Blocked...)
	}
	all = append(all, o.Blocked...)
	if o.Sizing != nil {
		all = append(all, o.Sizing.Blocked...)
	}
	return all
}

package outcome

import (
	"fmt"

	"ballast/planner/plan"
)

// Candidate is what the partition would do, whether or not it is decided for.
type Candidate struct {
	Replicas []plan.Replica `json:"replicas"`
	Moves    []Move         `json:"moves,omitempty"`
	Lost     []string       `json:"lost,omitempty"`
	Verdict  string         `json:"verdict"` // what the evaluation says of it

	Low  plan.Load `json:"low,omitempty"`  // up to which a replica takes on others' clusters; 0: the partition knows none
	High plan.Load `json:"high,omitempty"` // above which a replica is overloaded; 0: the partition knows none

	Memory []Fit `json:"memory,omitempty"` // of Moves, in their order; none: nothing is bounded by it

	Worth *Worth `json:"worth,omitempty"` // nil: the evaluation weighs nothing, or no overload is mended
}

// Worth is what the moves gain and cost, whether or not they may begin: the overload that they mend, what they would have saved of it
// so far, and what the empty caches of the new owners cost, the latter two in load hours.
type Worth struct {
	Mends plan.Load `json:"mends"`
	Saved plan.Load `json:"saved"`
	Costs plan.Load `json:"costs"`
}

// String words all three.
func (w Worth) String() string {
	return fmt.Sprintf("mends %s of overload, of which it would have saved %s load hours so far, and costs %s load hours",
		w.Mends.Display(), w.Saved.Display(), w.Costs.Display())
}

// Fit is whether a move's new owner has the memory for it: what it has in use before all moves, and after them.
type Fit struct {
	Cluster string     `json:"cluster"`
	To      int        `json:"to"`
	Takes   plan.Bytes `json:"takes"`
	Before  plan.Bytes `json:"before"`
	After   plan.Bytes `json:"after"`
	Fits    bool       `json:"fits"`
}

// Move is one cluster's change of replica.
type Move struct {
	Cluster string     `json:"cluster"`
	From    int        `json:"from"`
	To      int        `json:"to"`
	Reason  MoveReason `json:"reason,omitempty"` // of a partition
}

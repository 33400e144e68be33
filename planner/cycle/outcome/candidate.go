package outcome

import (
	"fmt"
	"strings"

	"ballast/planner/evaluate"
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

// Worth is what the moves gain and cost, whether or not they may begin: the overload that they mend, what they would
// have saved of it so far, and what the empty caches of the new owners cost, the latter two in load hours.
type Worth struct {
	Mends plan.Load `json:"mends"`
	Saved plan.Load `json:"saved"`
	Costs plan.Load `json:"costs"`
}

// Gains words what the moves gain and cost, for people who have read the verdict: what that says already is not said
// again. Empty: nothing.
func (c Candidate) Gains() string {
	w := c.Worth
	if w == nil {
		return ""
	}
	mends := fmt.Sprintf("mends %s of overload", w.Mends.Display())
	if both := evaluate.Both(w.Saved, w.Costs); !strings.Contains(c.Verdict, both) {
		mends += ", " + both
	}
	return mends
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

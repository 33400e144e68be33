package cycle

import (
	"ballast/planner/plan"
)

// Candidate is what the partition would do, whether or not it is decided for.
type Candidate struct {
	Replicas []plan.Replica `json:"replicas"`
	Moves    []Move         `json:"moves,omitempty"`
	Lost     []string       `json:"lost,omitempty"`
	Verdict  string         `json:"verdict"` // what the evaluation says of it

	// What a replica may carry, and take on of others', and what each carries at its busiest; 0 where the partition knows none.
	High  plan.Load   `json:"high,omitempty"`
	Low   plan.Load   `json:"low,omitempty"`
	Peaks []plan.Load `json:"peaks,omitempty"`
}

// Move is one cluster's change of replica.
type Move struct {
	Cluster string `json:"cluster"`
	From    int    `json:"from"`
	To      int    `json:"to"`
}

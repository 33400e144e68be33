package explain

import (
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/measure"
	"ballast/planner/plan"
)

// Explanation is why a cluster is where it is, and what each other replica would be to it.
type Explanation struct {
	Cluster  string     `json:"cluster"`
	Server   string     `json:"server"`
	Together []string   `json:"together,omitempty"` // other Secrets of its server or of its group, which go where it goes
	Replica  int        `json:"replica"`            // -1: it has none
	Because  string     `json:"because"`
	Values   []ValueOf  `json:"values,omitempty"`
	Load     plan.Load  `json:"load"` // of all of its server
	OfFleet  float64    `json:"ofFleet"`
	OfOwn    float64    `json:"ofReplica"`
	Takes    plan.Bytes `json:"takes,omitempty"`   // of a replica's memory
	Room     plan.Bytes `json:"room,omitempty"`    // that a replica's clusters have; 0: nothing says it
	Choices  []ChoiceOf `json:"choices,omitempty"` // by replica; none where nothing is measured
	To       int        `json:"to"`                // where the candidate has it; -1: nowhere else
	Verdict  string     `json:"verdict"`
	At       time.Time  `json:"at"`
	Moving   *Moving    `json:"moving,omitempty"` // to the best other replica
	Fleet    *Yardstick `json:"fleet,omitempty"`  // all clusters, beside what is possible at best

	fixed string        // what keeps it on its replica whatever is measured; empty: nothing does
	total plan.Load     // of the fleet
	table measure.Table // of the outcome
}

// ChoiceOf is a replica that a cluster could be on. Against is what speaks against it; empty: nothing.
type ChoiceOf struct {
	Replica   int       `json:"replica"`
	Clusters  int       `json:"clusters"`
	Carries   plan.Load `json:"carries"`
	With      plan.Load `json:"with"`      // the cluster on it
	Imbalance float64   `json:"imbalance"` // makespan over mean, with the cluster on it
	Against   string    `json:"against,omitempty"`

	InUse plan.Bytes `json:"inUse,omitempty"` // memory, with the cluster on it
}

// with is the makespan over the mean with the cluster on that replica.
func (e *Explanation) with(out outcome.Outcome, replica int) float64 {
	return float64(e.makespan(out, replica)) * float64(max(len(out.Now), replica+1)) / float64(e.total)
}

// makespan is what the fullest replica carries with the cluster on that one, which may be one that there is not yet.
func (e *Explanation) makespan(out outcome.Outcome, replica int) (most plan.Load) {
	for _, r := range out.Now {
		load := r.TotalLoad
		if r.ID == e.Replica {
			load -= e.Load
		}
		if r.ID == replica {
			load += e.Load
		}
		most = max(most, load)
	}
	if replica >= len(out.Now) {
		most = max(most, e.Load)
	}
	return most
}

// Moving is what a move of a cluster, with all that goes with it, to the best other replica would gain and cost, by the
// model of evaluate.costBenefit; and whether to leave the cluster where it is.
type Moving struct {
	To       int       `json:"to"`            // -1: every other replica is ruled out
	Clusters int       `json:"clusters"`      // that move
	Makespan plan.Load `json:"makespan"`      // of the fleet as it is
	After    plan.Load `json:"makespanAfter"` // of the move
	Level    float64   `json:"imbalanceAfter"`
	Saves    plan.Load `json:"saves"` // of what its replica carries above what it may

	LoadHours float64         `json:"loadHours"`           // what starts from an empty cache makes in the time that a cold start counts
	Restarts  bool            `json:"restarts,omitempty"`  // by the rollout mode every replica does
	Objects   *float64        `json:"objects,omitempty"`   // that are listed anew, where the default metric is measured
	PaysAfter config.Duration `json:"paysAfter,omitempty"` // how long the overload must last; 0: none is mended
	Limited   bool            `json:"limited,omitempty"`   // there is a move budget
	Done      time.Time       `json:"done,omitzero"`       // when the budget lets the last of them move at the earliest; zero: never

	Leave  bool   `json:"leave"`
	Answer string `json:"answer"` // one sentence
}

// ValueOf is one of a cluster's metrics.
type ValueOf struct {
	Metric  string       `json:"metric"`
	Value   float64      `json:"value"`
	Flag    measure.Flag `json:"flag"`
	Sampled time.Time    `json:"sampled,omitzero"`
}

package rollout

import (
	"time"

	"ballast/planner/plan"
)

// Outcome says what Advance did. The set is closed.
type Outcome string

// The outcomes.
const (
	Idle       Outcome = "Idle"       // no rollout is under way
	Waiting    Outcome = "Waiting"    // the stage goes on
	Advanced   Outcome = "Advanced"   // the next stage begins
	Finished   Outcome = "Finished"   // the plan holds as wanted
	TurnedBack Outcome = "TurnedBack" // the stage passed its deadline, and the way back begins
	Reverted   Outcome = "Reverted"   // the way back ended: the count is what it was
	GaveUp     Outcome = "GaveUp"     // the rollout ended where it was
)

// Progress is what Advance did, for events, logs and metrics. Stage is the one that was under way; Why is a sentence
// for people; Left is the time until its deadline; Late says that it had passed. An Outcome but Idle and Waiting means
// that the plan changed and is to be written; with Waiting it may have, for a cluster that appeared meanwhile.
type Progress struct {
	Outcome Outcome       `json:"outcome"`
	Stage   plan.Stage    `json:"stage,omitempty"`
	Why     string        `json:"why,omitempty"`
	Left    time.Duration `json:"left,omitempty"`
	Late    bool          `json:"late,omitempty"`
}

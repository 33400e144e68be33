package memory

import (
	"time"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/cycle/track"
	"ballast/planner/evaluate"
	"ballast/planner/failover"
	"ballast/planner/failover/health"
	"ballast/planner/ownership"
)

// Changes is what is remembered of moves and of those who carry them.
type Changes struct {
	// where the live rollout under way goes, by cluster; its plan has the present wave only
	Target map[string]int `json:"target,omitempty"`
	Cause  change.Cause   `json:"cause,omitempty"` // of the rollout under way
	Why    string         `json:"why,omitempty"`   // it began, in words
	// a Secret's pin asked for it, or a second Secret of its server that went
	BySecret bool `json:"bySecret,omitempty"`
	// it was taken back by what has nothing to do with it: a person's word, a fleet that is not seen
	Recalled  bool          `json:"recalled,omitempty"`
	PinFailed time.Time     `json:"pinFailed,omitzero"` // when a rollout failed that a Secret's pin asked for last
	Ledger    change.Ledger `json:"ledger,omitempty"`   // moves that were made
	// failovers of clusters that are not known yet: they count among failovers alone
	Unserved change.Ledger        `json:"unserved,omitempty"`
	Pinned   map[string]time.Time `json:"pinned,omitempty"` // clusters whose pins or repairs were counted, and when
	Failed   map[string]time.Time `json:"failed,omitempty"` // clusters that a failover moved, and when
	// clusters whose replicas may die of them, and when a failover moved them last
	Suspect map[string]time.Time `json:"suspect,omitempty"`
	Moved   map[string]time.Time `json:"moved,omitempty"`  // clusters that moved lately, and when
	Stopped time.Time            `json:"stopped,omitzero"` // when the fleet restarted for a Secret's pin last
	// when a rollout that restarts the fleet began last, whatever its cause
	Restarted time.Time `json:"restarted,omitzero"`
	// when pods were seen last: Restarted lacks no restart of before
	Looked   time.Time     `json:"looked,omitzero"`
	Failures harm.Failures `json:"failures,omitempty"` // rollouts that failed
	Counted  time.Time     `json:"counted,omitzero"`   // the stage whose moves were counted last, by its since
	Began    harm.Signs    `json:"began,omitzero"`     // what was seen when the present wave began
	Watch    harm.Watch    `json:"watch,omitzero"`     // waves that still answer for what follows
	// what keeps moves that level from beginning, and since when
	Blocked map[string]time.Time `json:"blocked,omitempty"`
	Trip    *harm.Trip           `json:"trip,omitempty"` // why ballast stopped itself
	// clusters that the waves moved behind which it is for memory
	TripMoved []string `json:"tripMoved,omitempty"`
	// the plan ConfigMap has the annotation, so that its absence is a person's word
	TripTold  bool             `json:"tripTold,omitempty"`
	Replicas  health.Memory    `json:"replicas,omitzero"`
	Failover  failover.Last    `json:"failover,omitzero"`
	Pending   *Pending         `json:"pending,omitempty"` // of a plan whose write nobody knows the end of
	Ownership ownership.Memory `json:"ownership,omitzero"`
	// Applications without a dest_server, though they seemed to name a cluster, at the last look
	ByName int `json:"byName,omitempty"`
}

// FollowsOwner reports whether the rollout only has the plan say who has a cluster already.
func (c *Changes) FollowsOwner() bool { return c.BySecret && c.Cause == change.Balance }

// HoldOffFor is how long nothing begins after a rollout that failed: whatever kept pods from getting ready then is
// likely to be there still, and each try restarts them.
const HoldOffFor = 30 * time.Minute

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Pending is what a decision sets of the memory: limits, and what its rollout is for. It is kept from before the plan
// is written, for the answer to that write may be lost, or the leader die right after it, and the plan stands all the
// same. Whoever finds the plan in force takes it over; where it never comes about nothing was limited.
type Pending struct {
	Plan    string  `json:"plan"`    // the digest of what was decided, whatever its revision
	Changes Changes `json:"changes"` // without what was seen; of clusters, those that it adds
	Counts  Counts  `json:"counts,omitzero"`
	Sizes   Sizes   `json:"sizes,omitzero"` // what of them is lost with the decision

	here *undecided // where the leader that decided lives on
}

// undecided is what a decision sets that makes no difference to another leader.
type undecided struct {
	votes   evaluate.Vote
	savings evaluate.Savings
	even    track.Even
	unit    string
	young   map[string]time.Time
	rebased time.Time
	before  map[string]string
}

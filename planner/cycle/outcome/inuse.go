package outcome

import (
	"ballast/planner/calibrate"
	"ballast/planner/plan"
)

// InUse is what clusters take of their replicas' memory. Room is what those of one replica may take together.
type InUse struct {
	Of   []plan.Bytes `json:"-"` // of Fleet.Clusters
	Room plan.Bytes   `json:"room"`
	From string       `json:"from"` // where Room comes from, in words
	Now  []plan.Bytes `json:"now"`  // by replica, under the plan in force

	Learned *calibrate.Fit `json:"learned,omitempty"` // what Of follows from, where the configuration has no weights
}

// On adds up what so many replicas have in use; of is each cluster's.
func (u *InUse) On(replicas int, of func(i int) int) []plan.Bytes {
	all := make([]plan.Bytes, max(replicas, 0))
	for i, bytes := range u.Of {
		if at := of(i); at >= 0 && at < len(all) {
			all[at] = all[at].Plus(bytes)
		}
	}
	return all
}

// Takes is what a cluster of the fleet takes; 0: nothing is bounded by it.
func (u *InUse) Takes(i int) plan.Bytes {
	if u == nil {
		return 0
	}
	return u.Of[i]
}

// Most is what the clusters of a replica may take together; 0: nothing says it.
func (u *InUse) Most() plan.Bytes {
	if u == nil {
		return 0
	}
	return u.Room
}

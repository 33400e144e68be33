package outcome

// MoveReason is why a cluster would have another replica than the plan in force gives it, of a closed set.
type MoveReason string

// The reasons.
const (
	MoveGone     MoveReason = "Gone"     // its replica is no more: there are to be fewer
	MovePinned   MoveReason = "Pinned"   // it is pinned to the new replica, or its Secret, which cannot be written, names that
	MoveTogether MoveReason = "Together" // another cluster of its server or group goes there, or is there, and they stay together
	MoveApart    MoveReason = "Apart"    // a group keeps it apart from another cluster on its replica
	MoveCapped   MoveReason = "Capped"   // its replica has more clusters than partition.maxClustersPerReplica
	MoveStarved  MoveReason = "Starved"  // its replica has not enough memory
	MoveOverload MoveReason = "Overload" // its replica carries more than it may
	MoveMadeRoom MoveReason = "MadeRoom" // it makes room for another cluster that moves
	MoveFilled   MoveReason = "Filled"   // the new replica has next to nothing
	MoveDrained  MoveReason = "Drained"  // its replica is not needed
	MoveLevelled MoveReason = "Levelled" // the fleet is divided anew, which lowers the makespan
)

// MoveReasons lists the closed set.
func MoveReasons() []MoveReason {
	return []MoveReason{MoveGone, MovePinned, MoveTogether, MoveApart, MoveCapped, MoveStarved, MoveOverload,
		MoveMadeRoom, MoveFilled, MoveDrained,
		MoveLevelled}
}

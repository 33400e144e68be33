package observed

import (
	"time"

	"ballast/planner/plan"
)

// Pod is an application-controller's. Started is the start of the running container, RestartedAt the same if it
// restarted; OOMKilled speaks of the end before that, and KilledAt is when that was. Memory and MemoryLimit are bytes,
// 0 where they are not known. Claimed says that the pod holds the slot of its replica with a fresh heartbeat; a
// StatefulSet's pod always does. Answered says that it told which clusters it owns. Size is nil of a pod that is being
// deleted, and of one in which the controller's container is not found.
type Pod struct {
	Replica     int       `json:"replica"`
	Name        string    `json:"name"`
	UID         string    `json:"uid,omitempty"`
	Ready       bool      `json:"ready,omitempty"`
	Restarts    int       `json:"restarts,omitempty"`
	Started     time.Time `json:"started,omitzero"`
	RestartedAt time.Time `json:"restartedAt,omitzero"`
	OOMKilled   bool      `json:"oomKilled,omitempty"`
	KilledAt    time.Time `json:"killedAt,omitzero"`
	Memory      int64     `json:"memory,omitempty"`
	MemoryLimit int64     `json:"memoryLimit,omitempty"`
	Claimed     bool      `json:"claimed,omitempty"`
	Answered    bool      `json:"answered,omitempty"`
	Size        *Size     `json:"size,omitempty"`
}

// aheadOf is how far a node's clock may be before ours.
const aheadOf = 5 * time.Minute

// KilledLately reports whether the kill is of the last day: what is longer ago says nothing of today, and what is ahead
// of every clock is no kill.
func (p Pod) KilledLately(now time.Time) bool {
	ago := now.Sub(p.KilledAt)
	return ago < 24*time.Hour && ago > -aheadOf
}

// MemoryAsked is the memory limit that the pod asks for, whatever its node has given it; 0: none, or nobody knows.
func (p Pod) MemoryAsked() int64 {
	if p.Size == nil {
		return p.MemoryLimit
	}
	limit, err := plan.ReadQuantity(p.Size.Asks.Controller.Limits["memory"])
	if err != nil {
		return p.MemoryLimit
	}
	return max(limit.Value(), 0)
}

package observed

import "time"

// Controller is an application-controller's pod: what rollouts need to know of it, and where it can be asked.
type Controller struct {
	Pod
	Address     string `json:"address,omitempty"`     // host:port of its metrics; empty: it has no address yet
	Running     bool   `json:"running,omitempty"`     // its container runs, ready or not: it may own clusters
	Terminating bool   `json:"terminating,omitempty"` // it is being deleted, and owns what it owns until it is gone
}

// SlotState says how a slot of Argo CD's dynamic distribution stands. The set is closed.
type SlotState string

// The states of a slot.
const (
	SlotHeld   SlotState = "Held"   // by a pod that is there, with a fresh heartbeat
	SlotSilent SlotState = "Silent" // its controller is unhealthy: no heartbeat for too long
	SlotGone   SlotState = "Gone"   // its controller's pod is not there any more
	SlotFree   SlotState = "Free"   // nobody took it
)

// Slot is a replica's number with the controller that holds it. Silence is the heartbeat's age, 0 where none was
// written.
type Slot struct {
	Shard      int           `json:"shard"`
	State      SlotState     `json:"state"`
	Controller string        `json:"controller,omitempty"`
	Silence    time.Duration `json:"silence,omitempty"`
}

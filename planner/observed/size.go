package observed

import (
	"time"

	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

// Size is how large a pod is: what it asks for, what the node has given its controller's container, and what became of
// the last change of it. Only cpu and memory are told, which change without a restart.
type Size struct {
	Asks      podspec.Size      `json:"asks,omitzero"`
	Has       plan.Resources    `json:"has,omitzero"`        // by its status; empty: the node has not said
	Allocated map[string]string `json:"allocated,omitempty"` // what the node has set aside
	Resize    Resize            `json:"resize,omitempty"`
	Message   string            `json:"message,omitempty"`  // the node's words
	Since     time.Time         `json:"since,omitzero"`     // of that state
	Restarts  []string          `json:"restarts,omitempty"` // resources whose change restarts the container, as its resizePolicy asks for
	Unmanaged bool              `json:"unmanaged,omitempty"`
}

// Resize is what became of the last change of a pod's size, of a closed set; empty: it is done, or none was asked for.
type Resize string

// The states of a change.
const (
	ResizeDeferred   Resize = "Deferred"   // the node has no room for it now, and tries again
	ResizeInfeasible Resize = "Infeasible" // the node never has room for it
	ResizeInProgress Resize = "InProgress" // the node is at it
	ResizeFailed     Resize = "Failed"     // the node is at it, and something went wrong
)

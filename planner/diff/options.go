package diff

import "time"

// Options say what Between may list. BreakGlass is a person's, and nothing is; Nudge lets a moved cluster's new owner
// be woken; NoResize says that the API server cannot change the size of a running pod, KeepsLimits that it lowers no
// memory limit of one, Refused has its words for each pod whose size it refuses, and Roomless names those of them whose
// node has less to give; Now tells a stop that has lasted too long from one that goes on.
type Options struct {
	BreakGlass bool
	Nudge      bool
	NoResize   bool
	Now        time.Time

	KeepsLimits bool
	Refused     map[string]string
	Roomless    map[string]bool
}

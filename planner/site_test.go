package planner

import (
	"maps"
	"slices"
	"time"

	"ballast/planner/config"

	"ballast/planner/plan"
)

// What these tests expect of the core, by value.
const (
	heldOffFor = 30 * time.Minute // after a rollout that failed
	crashGain  = 0.01             // of the makespan, which is worth a move
)

func crashModeOf(r config.Rollout) string {
	switch {
	case r.Live != nil:
		return plan.ModeLive
	case r.X0Y != nil:
		return plan.ModeX0Y
	}
	return plan.ModeDefault
}

func namesIn[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// SITE

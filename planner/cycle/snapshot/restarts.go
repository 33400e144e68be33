package snapshot

import (
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/rollout/basis"
)

// Restarts reports whether what is wanted restarts the fleet in that mode.
func Restarts(s *Snapshot, w *rollout.Proposal, o basis.Options) bool {
	moves := len(rollout.Moves(s.Next, plan.Plan{Clusters: w.Rows})) > 0
	switch {
	case o.Mode == plan.ModeX0Y:
		return moves || w.Replicas != s.Next.Replicas || w.ControllerReplicas != s.Next.ControllerReplicas
	case ScalingRestarts(s, w):
		return true
	case s.Next.Target.Kind != plan.Deployment && w.ControllerReplicas != s.Next.ControllerReplicas:
		return true
	}
	return o.Mode == plan.ModeDefault && o.RolloutRestart && moves
}

// ScalingRestarts reports whether what is wanted scales a Deployment, whose pods read their number once.
func ScalingRestarts(s *Snapshot, w *rollout.Proposal) bool {
	return s.Next.Target.Kind == plan.Deployment && w.Replicas != s.Next.Replicas && !s.Next.FreeReplicas
}

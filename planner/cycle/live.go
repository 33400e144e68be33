package cycle

import (
	"fmt"

	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/proposal"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/plan"
)

// tellRestart says in Observe and Hold what mode live will do once: people hear of a restart before it comes.
func (c starting) tellRestart(s *snapshot.Snapshot) {
	if s.Next.Rollout != nil || !s.Env().Prepares() || s.Next.Mode == plan.Enforce {
		return
	}
	if s.In.Config.Rollout.Live == nil {
		c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
			"the application-controller restarts when the mode becomes Enforce: %s changes from %s to %d, the number of replicas, since below it clusters have several owners",
			plan.EnvReplicas, proposal.EnvFound(s.Next.ControllerReplicas), s.Env().Of(s.Next.Replicas))})
		return
	}
	if s.Env().Awaits() {
		c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
			"rollout.live waits, once the mode is Enforce, for a change of the pod template that anybody makes: %s changes from %s to %d with it and stays there",
			plan.EnvReplicas, proposal.EnvFound(s.Next.ControllerReplicas), s.Env().Constant())})
		return
	}
	c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
		"rollout.live restarts the application-controller once, when the mode becomes Enforce: %s changes from %s to %d and stays there, so that nothing restarts for scaling afterwards",
		plan.EnvReplicas, proposal.EnvFound(s.Next.ControllerReplicas), s.Env().Constant())})
}

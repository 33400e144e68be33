package cycle

import (
	"fmt"

	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
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

// awaitTemplate has the plan say that the env comes with the next change of the pod template, where nothing but that
// keeps it from being set. It goes on saying so while something is under way, or pods are silent for a moment; and once
// the env has come, it stays.
func (c starting) awaitTemplate(g *ground.Ground, now gate.Situation) {
	said := g.Next.NextControllerReplicas
	silent := now.OwnersUnknown != "" && len(now.Missing)+len(now.EnvLacks)+len(now.Unstamped) == 0
	switch waits := g.Next.Mode == plan.Enforce && g.Env().Awaits(); {
	case !waits:
		g.Next.NextControllerReplicas = 0
	case g.Env().Awaited():
	case c.verdicts[gate.SetEnv] == gate.RestartWaits:
		if g.Next.NextControllerReplicas = g.Env().Constant(); said == 0 {
			c.Note(fmt.Sprintf("%s becomes %d with the next change of the pod template that anybody makes",
				plan.EnvReplicas, g.Env().Constant()))
		}
	case !now.UnderWay && !silent:
		g.Next.NextControllerReplicas = 0
	}
}

package cycle

import (
	"fmt"
	"strconv"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// drainTimeout is the deadline of the one stage in which nothing is reconciled.
const drainTimeout = 5 * time.Minute

// modeOf is the rollout mode that the configuration names.
func modeOf(r config.Rollout) string {
	switch {
	case r.Live != nil:
		return plan.ModeLive
	case r.X0Y != nil:
		return plan.ModeX0Y
	}
	return plan.ModeDefault
}

func inCluster(fleet discover.Fleet, in input.Inputs) observed.InCluster {
	for _, cl := range fleet.Clusters {
		if cl.Implicit {
			return observed.InCluster{Implicit: true, Algorithm: string(standing.Algorithm(in))}
		}
	}
	return observed.InCluster{}
}

func envFound(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

// destination remembers where a live rollout goes: its plan has the present wave only.
func destination(mode string, now plan.Plan, want rollout.Proposal) map[string]int {
	if mode != plan.ModeLive {
		return nil
	}
	target := map[string]int{}
	for _, m := range rollout.Moves(now, plan.Plan{Clusters: want.Rows}) {
		target[m.Cluster] = m.To
	}
	return target
}

// tellRestart says in Observe and Hold what mode live will do once: people hear of a restart before it comes.
func (c starting) tellRestart(s *snapshot) {
	if s.Next.Rollout != nil || !s.Env().Prepares() || s.Next.Mode == plan.Enforce {
		return
	}
	if s.In.Config.Rollout.Live == nil {
		c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
			"the application-controller restarts when the mode becomes Enforce: %s changes from %s to %d, the number of replicas, since below it clusters have several owners",
			plan.EnvReplicas, envFound(s.Next.ControllerReplicas), s.Env().Of(s.Next.Replicas))})
		return
	}
	if s.Env().Awaits() {
		c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
			"rollout.live waits, once the mode is Enforce, for a change of the pod template that anybody makes: %s changes from %s to %d with it and stays there",
			plan.EnvReplicas, envFound(s.Next.ControllerReplicas), s.Env().Constant())})
		return
	}
	c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
		"rollout.live restarts the application-controller once, when the mode becomes Enforce: %s changes from %s to %d and stays there, so that nothing restarts for scaling afterwards",
		plan.EnvReplicas, envFound(s.Next.ControllerReplicas), s.Env().Constant())})
}

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

// constantEnv is what ARGOCD_CONTROLLER_REPLICAS is held at for good in mode live: with it above every replica there
// will ever be, and every Secret explicit, replicas come and go and no pod has to read it again. One that was found
// larger stays.
func (a *adoption) constantEnv() int { return max(a.next.MaxReplicas, a.next.ControllerReplicas) }

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

// prepares reports whether the one restart that the mode live needs is still to come, or in the others one that ends
// that clusters have several owners.
func (a *adoption) prepares() bool {
	ours := a.next.Target.Kind == plan.StatefulSet && !a.next.Unmanaged
	if a.in.Config.Rollout.Live == nil {
		return ours && a.envTooLow()
	}
	return ours && a.next.ControllerReplicas != a.constantEnv()
}

// envTooLow reports whether Argo CD counts fewer replicas than there are: those beyond are replica 0 once more, and where
// it counts one, each of them has every cluster.
func (a *adoption) envTooLow() bool {
	return a.next.Target.Kind == plan.StatefulSet && a.next.ControllerReplicas < a.next.Replicas
}

// tellRestart says in Observe and Hold what mode live will do once: people hear of a restart before it comes.
func (c *cycle) tellRestart(s *snapshot) {
	if s.next.Rollout != nil || !s.prepares() || s.next.Mode == plan.Enforce {
		return
	}
	if s.in.Config.Rollout.Live == nil {
		c.problem(problem.Problem{Phase: problem.PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
			"the application-controller restarts when the mode becomes Enforce: %s changes from %s to %d, the number of replicas, since below it clusters have several owners",
			plan.EnvReplicas, envFound(s.next.ControllerReplicas), s.envOf(s.next.Replicas))})
		return
	}
	c.problem(problem.Problem{Phase: problem.PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
		"rollout.live restarts the application-controller once, when the mode becomes Enforce: %s changes from %s to %d and stays there, so that nothing restarts for scaling afterwards",
		plan.EnvReplicas, envFound(s.next.ControllerReplicas), s.constantEnv())})
}

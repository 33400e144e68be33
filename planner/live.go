package planner

import (
	"fmt"
	"math"
	"strings"
	"time"

	"ballast/planner/config"
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

func (c *cycle) rolloutOptions(a *adoption) rollout.Options {
	r := c.in.Config.Rollout
	o := rollout.Options{Mode: modeOf(r), StageTimeout: time.Duration(r.StageTimeout), DrainTimeout: drainTimeout, Budget: c.budget(a)}
	switch {
	case r.Live != nil:
		o.MaxMovesPerWave, o.Nudge = r.Live.MaxMovesPerWave, r.Live.Nudge
	case r.Default != nil:
		o.RolloutRestart = r.Default.RolloutRestart
	}
	return o
}

// constantEnv is what ARGOCD_CONTROLLER_REPLICAS is held at for good in mode live: with it above every replica there will
// ever be, and every Secret explicit, replicas come and go and no pod has to read it again. One that was found larger stays.
func (a *adoption) constantEnv() int { return max(a.next.MaxReplicas, a.next.ControllerReplicas) }

// prepares reports whether the one restart that the mode live needs is still to come.
func (c *cycle) prepares(a *adoption) bool {
	return c.in.Config.Rollout.Live != nil && a.next.Target.Kind == plan.StatefulSet && a.next.ControllerReplicas != a.constantEnv()
}

// checkLive says what the mode live still waits for, and in Observe and Hold what it will do once: people hear of a restart
// before it comes.
func (c *cycle) checkLive(a *adoption) {
	if c.in.Config.Rollout.Live == nil || a.next.Rollout != nil {
		return
	}
	if c.prepares(a) && a.next.Mode != plan.Enforce {
		c.problem(Problem{Phase: PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
			"rollout.live restarts the application-controller once, when the mode becomes Enforce: %s changes from %s to %d and stays there, so that nothing restarts for scaling afterwards",
			plan.EnvReplicas, envFound(a.next.ControllerReplicas), a.constantEnv())})
	}
	if !c.mayBegin(a) {
		return
	}
	if missing := rollout.Missing(a.next, c.seen(a)); len(missing) > 0 {
		c.unready = true
		c.problem(Problem{Phase: PhaseRollout, Kind: "LiveNotReady", Message: "rollout.live begins nothing yet: " + strings.Join(missing, "; ")})
	}
}

func envFound(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// prepare is the rollout that the mode live needs once.
func (c *cycle) prepare(a *adoption) (*rollout.Want, string) {
	of := make(map[string]int, len(a.next.Clusters))
	for name, row := range a.next.Clusters {
		of[name] = row.Replica
	}
	return a.wantOf(a.next.Replicas, of), fmt.Sprintf("prepares live rollouts: %s becomes %d for good, which restarts the application-controller once, and nothing will afterwards",
		plan.EnvReplicas, a.constantEnv())
}

// budget is how many clusters may change their replica now.
func (c *cycle) budget(a *adoption) int {
	switch {
	case c.in.Paused, c.in.Tripped != "":
		return 0 // a wave that is under way ends; no other begins
	case c.unlimited:
		return math.MaxInt
	}
	return c.movesLeft(a)
}

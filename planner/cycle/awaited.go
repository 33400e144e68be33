package cycle

import (
	"fmt"

	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/plan"
)

// awaitTemplate has the plan say that the env comes with the next change of the pod template, where nothing but that keeps it from
// being set. It goes on saying so while something is under way, or pods are silent for a moment; and once the env has come, it stays.
func (c starting) awaitTemplate(g *ground.Ground, now gate.Situation) {
	said := g.Next.NextControllerReplicas
	silent := now.Unsaid != "" && len(now.Missing)+len(now.EnvLacks)+len(now.Unstamped) == 0
	switch waits := g.Next.Mode == plan.Enforce && g.Env().Awaits(); {
	case !waits:
		g.Next.NextControllerReplicas = 0
	case g.Env().Awaited():
	case c.verdicts[gate.SetEnv] == gate.RestartWaits:
		if g.Next.NextControllerReplicas = g.Env().Constant(); said == 0 {
			c.Note(fmt.Sprintf("%s becomes %d with the next change of the pod template that anybody makes", plan.EnvReplicas, g.Env().Constant()))
		}
	case !now.UnderWay && !silent:
		g.Next.NextControllerReplicas = 0
	}
}

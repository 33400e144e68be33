package ground

import (
	"fmt"
	"time"

	"ballast/planner/plan"
)

// betweenPins is how long a Secret's pin waits for replicas: after the fleet restarted for another one, if it would
// again, and after a rollout failed that one asked for. Whoever may write one cluster Secret must not restart the fleet
// over and over, nor keep it trying.
const betweenPins = 24 * time.Hour

// BySecret reports whether a cluster's pin is its Secret's annotation alone: data.pins wins.
func (g *Ground) BySecret(name string) bool {
	_, byPlan := g.In.Pins[name]
	return !byPlan
}

// PinsWait says until when a Secret's pin waits for that many replicas, and why; empty: they may come now.
func (g *Ground) PinsWait(replicas int) (waits string) {
	m, says := g.In.Memory.Changes, func(from time.Time, why string) string {
		return fmt.Sprintf("waits until %s, since %s; a pin in data.pins of the plan ConfigMap waits for nothing",
			from.Add(betweenPins).UTC().Format(time.RFC3339), why)
	}
	switch {
	case g.lately(m.Stopped) && g.comingRestarts(replicas):
		return says(m.Stopped, "every replica restarts for it, and did so for another pin")
	case g.lately(m.PinFailed):
		return says(m.PinFailed, "the last rollout that a Secret's pin asked for failed")
	}
	return ""
}

func (g *Ground) lately(at time.Time) bool {
	since := g.In.Now.Sub(at)
	return !at.IsZero() && since >= 0 && since < betweenPins // a clock that went back counts as long ago
}

// comingRestarts reports whether replicas restart the others as they come.
func (g *Ground) comingRestarts(replicas int) bool {
	r := g.In.Config.Rollout
	switch {
	case r.X0Y != nil, r.Default != nil && r.Default.RolloutRestart:
		return true
	case g.Next.Target.Kind == plan.Deployment: // their pods read the number once
		return !g.Next.FreeReplicas
	}
	return g.Env().Of(replicas) != g.Next.ControllerReplicas
}

// Holds reports whether a pin says where its cluster is to be: not beyond the replicas where those are not ballast's to
// bring about, nor where a Secret's waits for them. Else whatever levels would bring them about, or would wait as long.
func (g *Ground) Holds(name string, pin int) bool {
	if pin < g.settled() || pin >= g.Pinnable() {
		return pin < g.Pinnable()
	}
	return !g.BySecret(name) || g.PinsWait(pin+1) == ""
}

// settled is how many replicas there are once what is under way is done.
func (g *Ground) settled() int {
	if r := g.Next.Rollout; r != nil {
		return r.Replicas
	}
	return g.Next.Replicas
}

package adopt

import (
	"fmt"
	"slices"

	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// stillStopped reports whether rollout.x0y holds every replica stopped, or has yet to bring them back: the plan that
// says so may be written minutes before the workload follows.
func (a *Adoption) stillStopped() bool {
	w, least := a.In.Workload, a.Next.Replicas
	if a.Next.FreeReplicas {
		least = 1 // how many they are is people's
	}
	comesBack := a.Next.StopsAll() && w.Replicas < least && !w.Unmanaged
	return comesBack || a.Next.Rollout != nil && a.Next.Replicas < 1
}

// setMode takes over the configured mode, and the number of replicas where nothing is held. No mode but Enforce goes on
// with a rollout, and one that has stopped every replica brings them back first.
func (a *Adoption) setMode(stopped bool) {
	if a.In.Workload.Replicas >= discover.MostReplicas {
		a.Found = append(a.Found, problem.Problem{Phase: problem.PhaseDiscover, Kind: "TooManyReplicas",
			Message: fmt.Sprintf(
				"%s %q asks for %d replicas or more, and as many is all that is planned for: scale it",
				a.In.Workload.Kind,
				a.In.Workload.Name, discover.MostReplicas)})
	}
	before := a.Next.Mode
	if a.Next.Mode = a.In.Config.Mode; stopped && a.Next.Mode != plan.Enforce {
		a.Next.Mode = plan.Enforce
		a.Found = append(a.Found, problem.Problem{Phase: problem.PhaseRollout, Kind: "ModeWaits", Message: fmt.Sprintf(
			"mode %s waits until the replicas that rollout.x0y stopped are back", a.In.Config.Mode)})
	}
	if before != a.Next.Mode && a.In.InForce != nil {
		a.Notes = append(a.Notes, fmt.Sprintf("mode %s instead of %s", a.Next.Mode, before))
	}
	if !a.Next.Mode.Enforced() {
		a.Next.Rollout = nil
		a.Next.Replicas, a.Next.ControllerReplicas = standing.Replicas(a.In.Workload), standing.Env(a.In.Workload)
	}
}

// holdLess takes over a configured mode that holds less than the plan does: that a person's hands are free waits for no
// list of clusters. One that holds more waits until the list is believed.
func (a *Adoption) holdLess() {
	less := []plan.Mode{plan.Observe, plan.Hold, plan.Enforce}
	if slices.Index(less, a.In.Config.Mode) < slices.Index(less, a.Next.Mode) {
		a.setMode(a.Next.StopsAll())
	}
}

// NoReplicaRuns reports whether a rollout is in one of the two stages in which no replica runs.
func NoReplicaRuns(r *plan.Rollout) bool {
	if r == nil || r.Mode != plan.ModeX0Y {
		return false
	}
	return r.Stage == plan.Draining || r.Stage == plan.Assigning
}

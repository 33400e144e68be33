package rollout

import (
	"cmp"
	"slices"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// Agenda is what differs from the plan: what to write, the workload first and the Secrets by name, and what is left
// alone, with the reason.
type Agenda struct {
	Steps []Step `json:"steps,omitempty"`
	Held  []Held `json:"held,omitempty"`
}

// StepOptions say what Steps may list. BreakGlass is a person's, and nothing is; Nudge lets a moved cluster's new owner be
// woken; Now tells a stop that has lasted too long from one that goes on.
type StepOptions struct {
	BreakGlass bool
	Nudge      bool
	Now        time.Time
}

// Steps lists what differs between what stands and what the plan enforces now. There is nothing to do while the plan
// only observes, or a person broke the glass and every replica that ballast stopped is back.
func Steps(v *plan.View, seen observed.State, o StepOptions) Agenda {
	if o.BreakGlass && !StopsAll(v.Plan) || !v.Plan.Mode.Enforced() {
		return Agenda{}
	}
	if seen.Workload == nil {
		return Agenda{Held: []Held{{Reason: HeldNoWorkload}}}
	}
	var a Agenda
	a.workload(v, seen, o.Now)
	a.secrets(v, seen)
	if o.Nudge {
		a.nudges(v, seen)
		a.wakes(v, seen)
	}
	return a
}

func (a *Agenda) secrets(v *plan.View, seen observed.State) {
	limit := stampLimit(v.Plan, seen.Workload)
	for _, s := range sorted(seen.Secrets) {
		replica, reason, ok := v.Effective(s.Name)
		if !ok || s.Carries(replica) {
			continue
		}
		switch {
		case s.Immutable:
			a.Held = append(a.Held, Held{Secret: s.Name, Reason: HeldImmutable, Shard: replica})
		case s.Unmanaged:
			a.Held = append(a.Held, Held{Secret: s.Name, Reason: HeldUnmanaged, Shard: replica})
		case replica >= limit:
			a.Held = append(a.Held, Held{Secret: s.Name, Reason: HeldBeyondReach, Shard: replica})
		default:
			a.Steps = append(a.Steps, PatchShard{Secret: s.Name, Shard: replica, Was: s.Display(), Why: whyStamp(v.Plan, s, reason)})
		}
	}
}

// stampLimit is the number no stamp may reach: the reach of what stands, and while a stage replaces pods also that of
// both ends, since pods of either run. Where x0y has stopped them all, only the pods that come will read what is written.
func stampLimit(p plan.Plan, w *observed.Workload) int {
	limit := reach(p.Target.Kind, w.Count())
	switch r := p.Rollout; {
	case r == nil:
	case r.Mode == plan.ModeX0Y && r.Stage == plan.Assigning && w.Stopped():
		limit = reach(p.Target.Kind, target(r))
	case replaces(r):
		limit = min(limit, reach(p.Target.Kind, r.From), reach(p.Target.Kind, target(r)))
	}
	return limit
}

// replaces reports whether pods of both ends of a rollout may run: on its way there, and on its way back, but for a wave's,
// whose clusters go back between pods that stay.
func replaces(r *plan.Rollout) bool {
	return r.Stage == plan.Scaling || r.Stage == plan.Shrinking || r.Stage == plan.Reverting && len(r.Moves) == 0
}

func whyStamp(p plan.Plan, s observed.Secret, reason plan.Reason) Why {
	switch {
	case s.Absent:
		return Unstamped
	case !s.Valid || s.Shard < 0:
		return Broken
	case reason == plan.Pinned:
		return Pinned
	}
	if p.Rollout != nil {
		_, moves := p.Rollout.Moves[s.Name]
		if _, moved := p.Rollout.Was[s.Name]; moves || moved {
			return Moved
		}
	}
	return Drifted
}

func (a *Agenda) workload(v *plan.View, seen observed.State, now time.Time) {
	want, held := guarded(v, seen, now)
	stands := seen.Workload.Count()
	step := PatchWorkload{Why: whyWorkload(v.Plan, seen.Workload)}
	if want.Replicas != stands.Replicas {
		step.Replicas = &want.Replicas
	}
	if v.Plan.HoldsEnv() && want.ControllerReplicas != stands.ControllerReplicas {
		step.ControllerReplicas = &want.ControllerReplicas
	}
	if held == nil && restarts(v.Plan) && !seen.Workload.RestartedSince(v.Plan.Rollout.Since) {
		step.RestartedAt = v.Plan.Rollout.Since.UTC().Format(time.RFC3339)
	}
	differs := step.Replicas != nil || step.ControllerReplicas != nil || step.RestartedAt != ""
	switch {
	case seen.Workload.Unmanaged:
		if differs || held != nil {
			a.Held = append(a.Held, Held{Reason: HeldUnmanaged})
		}
		return
	case held != nil:
		a.Held = append(a.Held, *held)
	}
	if differs {
		a.Steps = append(a.Steps, step)
	}
}

// guarded is the count the workload may be brought to now: the plan's, at least one replica, and not below a shard that a
// Secret carries. What grows goes on where the other half is held back. Replicas that the plan leaves free are people's,
// 0 included, but for those that x0y stopped; and those that people brought back after a stop that lapsed are not stopped again.
func guarded(v *plan.View, seen observed.State, at time.Time) (plan.Count, *Held) {
	p, stands := v.Plan, seen.Workload.Count()
	want := plan.Count{Replicas: p.Replicas, ControllerReplicas: p.ControllerReplicas}
	if want.Replicas < 1 && !stops(p.Rollout) {
		want.Replicas = 1
	}
	if broughtBack(p, seen, at) {
		want.Replicas = stands.Replicas
	}
	if p.FreeReplicas && (p.Rollout == nil || p.Rollout.Mode != plan.ModeX0Y) {
		want.Replicas = stands.Replicas
	}
	if !p.HoldsEnv() {
		want.ControllerReplicas = stands.ControllerReplicas
	}
	now := reach(p.Target.Kind, stands)
	held := inTheWay(v, seen, reach(p.Target.Kind, want), now)
	if held == nil || want.Replicas == 0 {
		return want, nil
	}
	larger := plan.Count{Replicas: max(want.Replicas, stands.Replicas), ControllerReplicas: max(want.ControllerReplicas, stands.ControllerReplicas)}
	if reach(p.Target.Kind, larger) < now {
		return stands, held
	}
	return larger, held
}

// inTheWay names the first Secret whose shard a smaller reach would cut off. A shard at or above the present reach is
// owned by replica 0 as it is, and stands in nobody's way.
func inTheWay(v *plan.View, seen observed.State, next, now int) *Held {
	if next >= now {
		return nil
	}
	if blind(v.Plan, seen) {
		return &Held{Reason: HeldUnseen}
	}
	for _, s := range sorted(seen.Secrets) {
		if s.Valid && s.Shard >= next && s.Shard < now {
			return &Held{Reason: HeldStillCarried, Shard: s.Shard, By: s.Name}
		}
	}
	return nil
}

// blindFrom is the smallest plan that is judged by the share of its clusters that are seen, as in discovery.
const blindFrom = 4

// blind reports whether more than half of the plan's clusters have no Secret: a broken selector looks like a fleet in
// which nobody carries a high shard. It is none where a person says that so many are right.
func blind(p plan.Plan, seen observed.State) bool {
	if seen.Accepted != nil && *seen.Accepted == len(seen.Secrets) {
		return false
	}
	found := 0
	for _, s := range seen.Secrets {
		if _, ok := p.Clusters[s.Name]; ok {
			found++
		}
	}
	rows := len(p.Clusters)
	for _, name := range seen.Passing {
		if _, ok := p.Clusters[name]; ok {
			rows--
		}
	}
	return rows >= blindFrom && 2*found < rows
}

// restarts reports whether the stage restarts the pods: Restarting, and another number of replicas in a Deployment, whose
// pods read spec.replicas once.
func restarts(p plan.Plan) bool {
	if p.Rollout == nil {
		return false
	}
	return p.Rollout.Stage == plan.Restarting || p.Target.Kind == plan.Deployment && replaces(p.Rollout)
}

func whyWorkload(p plan.Plan, w *observed.Workload) Why {
	stage := plan.Stage("")
	if p.Rollout != nil {
		stage = p.Rollout.Stage
	}
	switch {
	case w.Replicas == 0 && (p.Rollout == nil || p.Rollout.Mode != plan.ModeX0Y):
		return Stopped
	case stage == "", stage == plan.Assigning, stage == plan.Moving, stage == plan.Verifying:
		return Drifted
	}
	return Rolling
}

// sorted lists Secrets by name and leaves the caller's slice as it is.
func sorted(secrets []observed.Secret) []observed.Secret {
	byName := func(a, b observed.Secret) int { return cmp.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(secrets, byName) {
		return secrets
	}
	return slices.SortedFunc(slices.Values(secrets), byName)
}

// reach is the number of replicas that own the shard of their own number. Pods whose env is absent or at most 1 own
// every shard, their own included; a Deployment's pods take spec.replicas for the env.
func reach(kind string, c plan.Count) int {
	if kind == plan.Deployment || c.ControllerReplicas <= 1 {
		return c.Replicas
	}
	return min(c.Replicas, c.ControllerReplicas)
}

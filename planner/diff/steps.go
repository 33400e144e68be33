// Package diff says what differs between the fleet that stands and the plan that holds, as steps that package apply
// carries out. Healing and applying are one function: a Secret that somebody changed and a Secret that a stage of a
// rollout has not reached yet differ from the plan in the same way.
package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// Between lists what differs between what stands and what the plan enforces now. There is nothing to do while the plan
// only observes, or a person broke the glass and every replica that ballast stopped is back.
func Between(v *plan.View, seen observed.State, o Options) Result {
	if o.BreakGlass && !v.Plan.StopsAll() || !v.Plan.Mode.Enforced() {
		return Result{}
	}
	if seen.Workload == nil {
		return Result{Held: []Held{{Reason: HeldNoWorkload}}}
	}
	var a Result
	a.workload(v, seen, o.Now)
	if !o.BreakGlass {
		a.pods(v.Plan, seen, o)
	}
	a.secrets(v, seen, growing(v.Plan, seen, o))
	if o.Nudge {
		a.nudges(v, seen)
		a.wakes(v, seen)
	}
	return a
}

func (a *Result) secrets(v *plan.View, seen observed.State, growing map[int]string) {
	limit := stampLimit(v.Plan, seen)
	var stamps []PatchShard
	for _, s := range seen.Sorted() {
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
		case growing[replica] != "" && waits(v.Plan, seen, s, reason):
			a.Held = append(a.Held, Held{Secret: s.Name, Reason: HeldUnsized, Shard: replica, Words: growing[replica]})
		default:
			stamps = append(stamps, PatchShard{Secret: s.Name, Shard: replica, Was: s.Display(),
				Why: whyStamp(v.Plan, s, reason), Follows: s.Follows})
		}
	}
	// Writes are limited: what somebody turns all the time must not come before what has no owner.
	slices.SortStableFunc(stamps, func(a, b PatchShard) int { return cmp.Compare(rank(v.Plan.Rollout, a), rank(v.Plan.Rollout, b)) })
	for _, s := range stamps {
		a.Steps = append(a.Steps, s)
	}
}

// stampLimit is the number no stamp may reach: the reach of what stands, and while a stage replaces pods also that of
// both ends, since pods of either run. Where x0y has stopped them all, only the pods that come will read what is
// written.
func stampLimit(p plan.Plan, seen observed.State) int {
	limit := seen.Workload.Count().Reach(p.Target.Kind)
	switch r := p.Rollout; {
	case r == nil:
	case r.Mode == plan.ModeX0Y && r.Stage == plan.Assigning && seen.Stopped():
		limit = r.To().Reach(p.Target.Kind)
	case r.Replaces():
		limit = min(limit, r.From.Reach(p.Target.Kind), r.To().Reach(p.Target.Kind))
	}
	return limit
}

// rank is the order in which Secrets are written: those of a wave first, and last those that follow another one.
func rank(r *plan.Rollout, s PatchShard) int {
	switch {
	case moved(r, s.Secret):
		return 0
	case !s.Follows:
		return 1
	}
	return 2
}

// moved reports whether a wave or the wave's way back moves a cluster.
func moved(r *plan.Rollout, name string) bool {
	if r == nil {
		return false
	}
	_, moves := r.Moves[name]
	_, was := r.Was[name]
	return moves || was
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
	if moved(p.Rollout, s.Name) {
		return Moved
	}
	return Drifted
}

// waits reports whether a cluster can wait where it is: the rollout moves it off a replica that works.
func waits(p plan.Plan, seen observed.State, s observed.Secret, reason plan.Reason) bool {
	return whyStamp(p, s, reason) == Moved && s.Valid && seen.Asleep(s.Shard) == ""
}

func (a *Result) workload(v *plan.View, seen observed.State, now time.Time) {
	want, held := guarded(v, seen, now)
	stands := seen.Workload.Count()
	step := PatchWorkload{Why: whyWorkload(v.Plan, seen.Workload)}
	if want.Replicas != stands.Replicas {
		step.Replicas = &want.Replicas
	}
	if v.Plan.HoldsEnv() && want.ControllerReplicas != stands.ControllerReplicas {
		step.ControllerReplicas = &want.ControllerReplicas
	}
	if held == nil && v.Plan.Restarts() && !seen.Workload.RestartedSince(v.Plan.Rollout.Since, now) {
		step.RestartedAt = v.Plan.Rollout.Since.UTC().Format(time.RFC3339)
	}
	var above []string
	if held == nil && v.Plan.Resources != nil {
		step.Resources, above = fitting(templateResources(seen.Workload), *v.Plan.Resources)
	}
	differs := step.Replicas != nil || step.ControllerReplicas != nil || step.RestartedAt != "" ||
		len(pairs(step.Resources)) > 0
	if step.Replicas == nil && step.ControllerReplicas == nil && step.RestartedAt == "" {
		step.Why = Sized
	}
	switch {
	case seen.Workload.Unmanaged:
		if differs || held != nil {
			a.Held = append(a.Held, Held{Reason: HeldUnmanaged})
		}
		return
	case held != nil:
		a.Held = append(a.Held, *held)
	}
	if len(above) > 0 {
		a.Held = append(a.Held, Held{Reason: HeldMisfit,
			Words: fmt.Sprintf("its request of %s would be above its limit, of which the plan "+
				"holds one: change the other in the pod template, or let the rules name both",
				strings.Join(above, " and "))})
	}
	if differs {
		a.Steps = append(a.Steps, step)
	}
}

// fitting is what of a size a pod template does not have and can have, and the resources that it cannot have as the
// plan holds them.
func fitting(has, size plan.Resources) (lacks plan.Resources, above []string) {
	fits, above := has.Fitting(size)
	return lacking(has, fits), above
}

// guarded is the count the workload may be brought to now: the plan's, at least one replica, and not below a shard that
// a Secret carries. What grows goes on where the other half is held back. Replicas that the plan leaves free are
// people's, 0 included, but for those that x0y stopped; and those that people brought back after a stop that lapsed are
// not stopped again.
func guarded(v *plan.View, seen observed.State, at time.Time) (plan.Count, *Held) {
	p, stands := v.Plan, seen.Workload.Count()
	want := plan.Count{Replicas: p.Replicas, ControllerReplicas: p.ControllerReplicas}
	if want.Replicas < 1 && !p.Rollout.Stops() {
		want.Replicas = 1
	}
	if seen.BroughtBack(p, at) {
		want.Replicas = stands.Replicas
	}
	if p.FreeReplicas && (p.Rollout == nil || p.Rollout.Mode != plan.ModeX0Y) {
		want.Replicas = stands.Replicas
	}
	if !p.HoldsEnv() || p.Awaits(stands.ControllerReplicas) {
		want.ControllerReplicas = stands.ControllerReplicas
	}
	now := stands.Reach(p.Target.Kind)
	held := inTheWay(v, seen, want.Reach(p.Target.Kind), now)
	if held == nil || want.Replicas == 0 {
		return want, nil
	}
	larger := plan.Count{Replicas: max(want.Replicas, stands.Replicas),
		ControllerReplicas: max(want.ControllerReplicas, stands.ControllerReplicas)}
	if larger.Reach(p.Target.Kind) < now {
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
	if seen.Blind(v.Plan) {
		return &Held{Reason: HeldUnseen}
	}
	for _, s := range seen.Sorted() {
		if s.Valid && s.Shard >= next && s.Shard < now {
			return &Held{Reason: HeldStillCarried, Shard: s.Shard, By: s.Name}
		}
	}
	return nil
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

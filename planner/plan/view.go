package plan

// Pins are people's: cluster Secret name to replica.
type Pins map[string]int

// View is a plan with its pins, to look up which replica has a cluster.
type View struct {
	Plan   Plan
	pins   Pins
	stable int // replicas below this run whatever becomes of the rollout under way
}

// NewView keeps the plan and the pins: neither may change afterwards.
func NewView(p Plan, pins Pins) *View {
	return &View{Plan: p, pins: pins, stable: max(p.Running(), 1)}
}

// Effective is the one lookup of webhook and planner: the pin if it is below the replicas in force and no x0y rollout
// is under way, else the row. While a rollout changes the replicas, a pin must be below both ends: a replica that does
// not run yet, or is about to go, owns nothing. ok is false for a cluster that the plan does not know, unless it is
// pinned.
func (v *View) Effective(name string) (replica int, why Reason, ok bool) {
	if pin, pinned := v.pins[name]; pinned && v.PinHolds(pin) {
		return pin, Pinned, true
	}
	row, ok := v.Plan.Clusters[name]
	return row.Replica, InPlan, ok
}

// PinHolds reports whether a pin to that replica holds now, wherever it was written.
func (v *View) PinHolds(pin int) bool {
	return pin < v.stable && (v.Plan.Rollout == nil || v.Plan.Rollout.Mode != ModeX0Y)
}

// Pin is a cluster's pin, whether it holds now or waits for a rollout.
func (v *View) Pin(name string) (int, bool) {
	pin, ok := v.pins[name]
	return pin, ok
}

// Stays reports whether a replica runs before, during and after the rollout under way.
func (v *View) Stays(replica int) bool { return replica >= 0 && replica < v.stable }

// Stable is the number of replicas that run before, during and after the rollout under way.
func (v *View) Stable() int { return v.stable }

// Running is the number of replicas that run before, during and after the rollout under way. New clusters and
// pins keep to them, so that none waits for a replica to come or has to leave one that goes. A count of 0 is a stop of
// x0y, which passes: the other counts say how many there are.
func (p Plan) Running() int {
	n := p.Replicas
	if p.Rollout == nil {
		return max(n, 0)
	}
	for _, other := range []int{p.Rollout.From.Replicas, p.Rollout.Replicas} {
		fewer := other > 0 && other < n
		if n == 0 || fewer {
			n = other
		}
	}
	return max(n, 0)
}

// Widest is the most replicas that there are before, during or after the rollout under way.
func (p Plan) Widest() int {
	if p.Rollout == nil {
		return p.Replicas
	}
	return max(p.Replicas, p.Rollout.Replicas, p.Rollout.From.Replicas)
}

// Reach is the number of replicas that own the shard of their own number. Pods whose env is absent or at most 1 own
// every shard, their own included; a Deployment's pods take spec.replicas for the env.
func (c Count) Reach(kind string) int {
	if kind == Deployment || c.ControllerReplicas <= 1 {
		return c.Replicas
	}
	return min(c.Replicas, c.ControllerReplicas)
}

// To is the count that the rollout goes to.
func (r *Rollout) To() Count {
	return Count{Replicas: r.Replicas, ControllerReplicas: r.ControllerReplicas}
}

// Stops reports whether a stage holds the workload at 0: the only ones that may. Nil: there is no rollout.
func (r *Rollout) Stops() bool {
	return r != nil && r.Mode == ModeX0Y && (r.Stage == Draining || r.Stage == Assigning)
}

// Replaces reports whether pods of both ends of a rollout may run: on its way there, and on its way back, but for a
// wave's, whose clusters go back between pods that stay.
func (r *Rollout) Replaces() bool {
	scales := r.Stage == Scaling || r.Stage == Shrinking
	return scales || r.Stage == Reverting && !r.TakesWaveBack()
}

// TakesWaveBack reports which of two ways back Reverting is: a wave's clusters go back, between pods that stay. The
// other takes the number of replicas and the env back, for which pods come, go or restart.
func (r *Rollout) TakesWaveBack() bool { return r.Stage == Reverting && len(r.Moves) > 0 }

// Restarts reports whether the stage restarts the pods: Restarting, and another number of replicas in a Deployment,
// whose pods read spec.replicas once.
func (p Plan) Restarts() bool {
	return p.Rollout != nil && (p.Rollout.Stage == Restarting || p.Target.Kind == Deployment && p.Rollout.Replaces())
}

// StopsAll reports whether a rollout is under way that may hold every replica stopped. Neither break-glass nor a
// discovery that is not believed leaves one where it is: what it stopped comes back first.
func (p Plan) StopsAll() bool { return p.Rollout != nil && p.Rollout.Mode == ModeX0Y }

// Reason says why a write was answered as it was: metric label, log value and audit annotation. The set is closed.
type Reason string

// The reasons.
const (
	InPlan     Reason = "InPlan"     // the write agrees with the plan
	Restored   Reason = "Restored"   // the plan's value was put back
	Assigned   Reason = "Assigned"   // a cluster that is not in the plan has a replica now
	Pinned     Reason = "Pinned"     // a person's pin decided
	Immutable  Reason = "Immutable"  // an immutable Secret cannot be rewritten, nor a size be given that Kubernetes would refuse
	NoPlan     Reason = "NoPlan"     // there is no plan to enforce
	StalePlan  Reason = "StalePlan"  // the plan's digest does not match, and the last good one is enforced, as it is for five minutes after its ConfigMap was deleted; or it stopped every replica too long ago to hold them
	Observing  Reason = "Observing"  // the mode, or break-glass, lets every write pass but one to data.plan
	Unmanaged  Reason = "Unmanaged"  // the object opted out, or is none of ballast's
	Faulted    Reason = "Faulted"    // ballast failed and let the write pass unchanged
	PinAdded   Reason = "PinAdded"   // an edit of the plan's rows became pins
	PinRefused Reason = "PinRefused" // a pin that cannot be
	PlanKept   Reason = "PlanKept"   // data.plan was put back
)

// Reasons lists the closed set, for metrics that show every label from the start.
func Reasons() []Reason {
	return []Reason{InPlan, Restored, Assigned, Pinned, Immutable, NoPlan, StalePlan, Observing, Unmanaged, Faulted,
		PinAdded, PinRefused, PlanKept}
}

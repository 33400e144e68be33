package plan

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
	Unmanaged  Reason = "Unmanaged"  // the object opted out
	Faulted    Reason = "Faulted"    // ballast failed and let the write pass unchanged
	PinAdded   Reason = "PinAdded"   // an edit of the plan's rows became pins
	PinRefused Reason = "PinRefused" // a pin that cannot be
	PlanKept   Reason = "PlanKept"   // data.plan was put back
)

// Reasons lists the closed set, for metrics that show every label from the start.
func Reasons() []Reason {
	return []Reason{InPlan, Restored, Assigned, Pinned, Immutable, NoPlan, StalePlan, Observing, Unmanaged, Faulted, PinAdded, PinRefused, PlanKept}
}

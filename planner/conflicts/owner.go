package conflicts

import (
	"cmp"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/planner/patchable"
	"ballast/planner/plan"
)

// The annotations by which a Lease says whose it is.
const (
	AnnotationPlan        = plan.Group + "/plan"         // namespace/name of the plan ConfigMap
	AnnotationPlannerUser = plan.Group + "/planner-user" // whom the webhook lets write that plan
)

// DefaultGrace is how long a target stays its owner's after the Lease was last held: its pods may be on their way to
// another node, which takes Kubernetes five minutes to begin and an autoscaler some more to end.
const DefaultGrace = 10 * time.Minute

// defaultLease is what a Lease is taken to last that does not say.
const defaultLease = 15 * time.Second

// maxLease is the longest that a Lease is believed to last: planners write 15 s, and no option makes it more.
const maxLease = 5 * time.Minute

// Bounded is a Lease as far as it can be true, of which this version was seen first at that time: nobody renewed it
// or took it later than that, or for longer than maxLease. Whoever may write Leases would have a target nobody's for
// years otherwise.
func Bounded(lease *coordinationv1.Lease, seen time.Time) *coordinationv1.Lease {
	if lease == nil {
		return nil
	}
	lease = lease.DeepCopy()
	s := &lease.Spec
	if s.RenewTime != nil && s.RenewTime.After(seen) {
		s.RenewTime = &metav1.MicroTime{Time: seen}
	}
	if s.AcquireTime != nil && s.AcquireTime.After(seen) { // whoever leads writes it on
		s.AcquireTime = &metav1.MicroTime{Time: seen}
	}
	if most := int32(maxLease / time.Second); s.LeaseDurationSeconds != nil && *s.LeaseDurationSeconds > most {
		s.LeaseDurationSeconds = &most
	}
	return lease
}

// Owner is an instance of ballast on a target: what it plans with, and what its Lease says of it. Instances with the
// same plan and user are replicas of one installation.
type Owner struct {
	Plan        string `json:"plan"` // namespace/name
	PlannerUser string `json:"plannerUser"`

	Identity string    `json:"identity,omitempty"` // empty: nobody holds the Lease
	Since    time.Time `json:"since,omitzero"`     // when it took or gave up the Lease
	Seen     time.Time `json:"seen,omitzero"`      // when it last wrote it
	Expires  time.Time `json:"expires,omitzero"`   // when it holds the Lease no more, unless it writes it again
	Until    time.Time `json:"until,omitzero"`     // when the target is anybody's then
}

// Judge says whose a target is by its Lease, and whether that is another installation than self: one with another plan
// or another user, which holds the Lease or did so less than grace ago. A Lease that names no plan is an older
// version's and nobody's in particular. It is foreign up to Until, and not from then on.
func Judge(lease *coordinationv1.Lease, self Owner, grace time.Duration, now time.Time) (owner Owner, foreign bool) {
	if lease == nil {
		return Owner{}, false
	}
	s := lease.Spec
	owner = Owner{Plan: lease.Annotations[AnnotationPlan], PlannerUser: lease.Annotations[AnnotationPlannerUser]}
	lasts := defaultLease
	if s.LeaseDurationSeconds != nil {
		lasts = time.Duration(*s.LeaseDurationSeconds) * time.Second
	}
	if s.HolderIdentity != nil {
		owner.Identity = *s.HolderIdentity
	}
	if s.AcquireTime != nil {
		owner.Since = patchable.WithinJSON(s.AcquireTime.Time)
	}
	if s.RenewTime != nil {
		owner.Seen = patchable.WithinJSON(s.RenewTime.Time)
	}
	owner.Expires = owner.Seen.Add(lasts)
	owner.Until = owner.Expires.Add(grace)
	same := owner.Plan == self.Plan && owner.PlannerUser == self.PlannerUser
	mine := self.Identity != "" && owner.Identity == self.Identity
	return owner, owner.Plan != "" && !same && !mine && now.Before(owner.Until)
}

// Refusal says to people who owns the target, and what they can do. Whoever may write Leases can forge all of it, the
// holder and its time too, so that only the deletion of the Lease ends every claim.
func (o Owner) Refusal(self Owner, lease types.NamespacedName, now time.Time) string {
	who := fmt.Sprintf("%q, which plans in ConfigMap %q as %q", cmp.Or(o.Identity, "an instance"), o.Plan,
		o.PlannerUser)
	mend := fmt.Sprintf("this instance would plan in %q as %q, so it stands by and writes nothing; take one of the two out, or give this one another target", self.Plan, self.PlannerUser)
	end := fmt.Sprintf("by deleting the Lease, which a planner makes anew: kubectl -n %s delete lease %s",
		lease.Namespace, lease.Name)
	if o.Identity != "" && now.Before(o.Expires) {
		return fmt.Sprintf("Lease %q is held by %s, since %s: %s. If no such planner runs, end its claim %s",
			lease, who, o.Since.UTC().Format(time.RFC3339), mend, end)
	}
	return fmt.Sprintf("Lease %q was held until %s by %s: %s. Unless that one comes back this one leads from %s on, or at once if you end its claim %s",
		lease, o.Seen.UTC().Format(time.RFC3339), who, mend, o.Until.UTC().Format(time.RFC3339), end)
}

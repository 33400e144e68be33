package planner

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"ballast/planner/config"
	"ballast/planner/conflicts"
	"ballast/planner/telemetry"
)

// leaseTimeout bounds a call for the Lease: half of the ten seconds in which a leader has to renew it, so that one call
// that hangs does not end its term.
const leaseTimeout = 5 * time.Second

// newOwner makes the Lease that planners of one installation elect their leader by, and that keeps those of any other
// away from the target.
func (a *plannerApp) newOwner(c config.PlannerConfig) (*conflicts.Lock, error) {
	cfg := rest.AddUserAgent(rest.CopyConfig(a.rest), "leader-election")
	cfg.Timeout = leaseTimeout
	// Whoever may write Leases brings times that JSON does not have: one that is read so is a Lease that nobody takes
	// any more.
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	leases, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", cfg.Host, err)
	}
	return conflicts.NewLock(conflicts.LockOptions{
		Client: leases,
		Lease:  types.NamespacedName{Namespace: c.Target.Namespace, Name: "ballast-" + a.target.Name},
		Self: conflicts.Owner{
			Plan:        c.Target.Namespace + "/" + c.Plan.ConfigMap,
			PlannerUser: a.user,
			Identity:    a.options.identity + "_" + string(uuid.NewUUID()), // a pod that comes back under its name is another one
		},
		Grace: a.options.grace,
		Now:   time.Now,
		Tell:  func(refusal string) { a.tellOwner(c, refusal) },
	}), nil
}

// tellOwner says on the workload and on this installation's plan that the target is another one's.
func (a *plannerApp) tellOwner(c config.PlannerConfig, refusal string) {
	if refusal == "" {
		a.log.Info("the target is nobody else's any more")
		return
	}
	a.log.Info("the target is another installation's; standing by", "reason", refusal)
	newEmitter(a.manager.GetEventRecorder("ballast-planner"), c)(a.found, telemetry.Event{
		Type: corev1.EventTypeWarning, Reason: "OwnedElsewhere", Message: refusal, Workload: true})
}

// ownsTarget is the readiness of leader and standby: nobody takes over from an installation that owns the target.
func (a *plannerApp) ownsTarget(*http.Request) error { return a.owner.Ready() }

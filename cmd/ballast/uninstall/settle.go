package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/planner/conflicts"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
)

// leads is for how long after its Lease was seen to be renewed last a planner is believed to be there: a rolling update
// of it takes less.
const leads = time.Minute

// heartbeat is a Lease as it was read last. Its times are of the leader's clock, and this machine's may be another:
// only that it changes shows that somebody leads.
type heartbeat struct {
	renewed metav1.MicroTime
	seen    time.Time // when it was first read so
}

// beats reports whether the Lease was renewed within that time, as far as can be told yet.
func (h *heartbeat) beats(lease *coordinationv1.Lease, now time.Time) bool {
	renewed := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{})
	if h.seen.IsZero() || !renewed.Equal(&h.renewed) {
		h.renewed, h.seen = renewed, now
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "") != "" && now.Sub(h.seen) < leads
}

// thawWithin is how long the freeze may take to go where the command ends without success.
const thawWithin = 10 * time.Second

// underWay reports whether a rollout goes on that a planner will end.
func (o *options) underWay(ctx context.Context, c client.Client, doc configmap.Document, workload string) (bool, error) {
	if doc.Plan == nil || doc.Plan.Rollout == nil {
		return false, nil
	}
	if stands := doc.BreakGlass && !doc.Plan.StopsAll(); stands { // a planner goes no further under break-glass
		return false, nil
	}
	var lease coordinationv1.Lease
	err := c.Get(ctx, client.ObjectKey{Namespace: o.cluster.Namespace, Name: "ballast-" + workload}, &lease)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for a planner that leads: %w", err)
	}
	if of := lease.Annotations[conflicts.AnnotationPlan]; of != "" && of != o.cluster.Namespace+"/"+o.plan {
		return false, nil // another installation's, which ends no rollout of this one
	}
	return o.heartbeat.beats(&lease, o.now()), nil
}

// settled is the workload once the rollout under way has ended, and nothing begins after it. Where that fails, what
// goes on goes on as before.
func (o *options) settled(ctx context.Context, c client.Client, workload string) (plan.Target, discover.Workload, error) {
	target, w, err := func() (target plan.Target, w discover.Workload, err error) {
		if err = o.settle(ctx, c, workload); err != nil {
			return target, w, fmt.Errorf("waiting for the rollout under way: %w", err)
		}
		target, w, goesOn, err := o.target(ctx, c)
		if err == nil && goesOn {
			err = errors.New("another rollout began meanwhile: run uninstall again")
		}
		return target, w, err
	}()
	if err == nil {
		return target, w, nil
	}
	return target, w, o.thawed(ctx, c, err)
}

// thawed takes the freeze of uninstall back, and says where it cannot. A freeze that nobody ends keeps failovers away,
// too.
func (o *options) thawed(ctx context.Context, c client.Client, err error) error {
	thaw, cancel := context.WithTimeout(context.WithoutCancel(ctx), thawWithin) // the command's own time may be over
	defer cancel()
	if failed := o.maps().Thaw(thaw, c); failed != nil {
		return errors.Join(err, fmt.Errorf("%w\n%s", failed, o.freezeStays()))
	}
	o.cluster.OwesNothing()
	return err
}

func (o *options) freezeStays() string {
	return fmt.Sprintf("the freeze of uninstall may still stand, under which nothing begins, a failover neither: see `ballast status -n %s`, "+
		"and end it with `ballast resume -n %[1]s --plan-configmap %s`", o.cluster.Namespace, o.plan)
}

// settle has the rollout under way end, and nothing begin after it: a wave comes to its end, what restarts goes on to
// its own, and replicas that rollout.x0y stopped come back. Nobody would do so afterwards.
func (o *options) settle(ctx context.Context, c client.Client, workload string) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var last *plan.Rollout
	err := wait.PollUntilContextCancel(ctx, o.every, true, func(ctx context.Context) (bool, error) {
		doc, err := connect.ReadDocument(ctx, c, o.config())
		if err != nil {
			return false, err
		}
		goesOn, err := o.underWay(ctx, c, doc, workload)
		if err != nil || !goesOn {
			return !goesOn, err
		}
		if vanished(ctx, c, doc) {
			return true, nil
		}
		last = doc.Plan.Rollout
		if wish := o.wishOf(doc); wish != "" {
			return false, errors.New(wish)
		}
		o.cluster.Owe(thawWithin, o.freezeStays()) // an earlier run's freeze, too
		if !doc.Paused {
			return false, o.maps().Freeze(ctx, c)
		}
		return false, nil
	})
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		err = fmt.Errorf("it did not end within %s and is at %s, in mode %s: see `ballast status`, and run uninstall again, "+
			"with a longer --timeout if need be", o.timeout, last.Stage, last.Mode)
	}
	return err
}

// wishOf says what a person asked for that goes on under a freeze, move after move; empty: nothing.
func (o *options) wishOf(doc configmap.Document) string {
	cordons, _ := people.ParseCordons(doc.Cordon) // what cannot be read empties nothing
	emptied := slices.ContainsFunc(cordons, func(c people.Cordon) bool { return o.now().Before(c.Until) })
	switch {
	case doc.Rollback != "":
		return "a rollback goes on, which no freeze ends: wait for it, or take it back with `ballast rollback --off`, and run uninstall again"
	case emptied:
		return "replicas are emptied as a person asked, which no freeze ends: wait for it, " +
			"or take it back with `ballast evacuate <replica> --off`, and run uninstall again"
	}
	return ""
}

package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/planner/conflicts"
	"ballast/planner/plan"
)

// leads is for how long after its Lease was renewed last a planner is believed to be there: a rolling update of it takes
// less.
const leads = time.Minute

// thawWithin is how long the freeze may take to go where the command ends without success.
const thawWithin = 10 * time.Second

// frozenFor is why it is frozen meanwhile, for those who look.
const frozenFor = "ballast uninstall"

// underWay reports whether a rollout goes on that a planner will end.
func (o *options) underWay(ctx context.Context, c client.Client, doc plan.Document, workload string) (bool, error) {
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
	held := ptr.Deref(lease.Spec.HolderIdentity, "") != ""
	renewed := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{})
	return held && o.now().Sub(renewed.Time) < leads, nil
}

// settle has the rollout under way end, and nothing begin after it: a wave comes to its end, what restarts goes on to its own,
// and replicas that rollout.x0y stopped come back. Nobody would do so afterwards.
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
		last = doc.Plan.Rollout
		if wish := o.wishOf(doc); wish != "" {
			return false, errors.New(wish)
		}
		if !doc.Paused {
			return false, o.freeze(ctx, c)
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
	thaw, end := context.WithTimeout(context.WithoutCancel(ctx), thawWithin)
	defer end()
	return errors.Join(err, o.thaw(thaw, c)) // what goes on goes on as before
}

// wishOf says what a person asked for that goes on under a freeze, move after move; empty: nothing.
func (o *options) wishOf(doc plan.Document) string {
	cordons, _ := plan.ParseCordons(doc.Cordon) // what cannot be read empties nothing
	emptied := slices.ContainsFunc(cordons, func(c plan.Cordon) bool { return o.now().Before(c.Until) })
	switch {
	case doc.Rollback != "":
		return "a rollback goes on, which no freeze ends: wait for it, or take it back with `ballast rollback --off`, and run uninstall again"
	case emptied:
		return "replicas are emptied as a person asked, which no freeze ends: wait for it, " +
			"or take it back with `ballast evacuate <replica> --off`, and run uninstall again"
	}
	return ""
}

// freeze keeps the planner from beginning anything after the rollout that ends.
func (o *options) freeze(ctx context.Context, c client.Client) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster.Namespace, Name: o.plan}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true",%q:%q}}}`, plan.AnnotationPaused, plan.AnnotationPausedReason, frozenFor)
	return client.IgnoreNotFound(c.Patch(ctx, cm, client.RawPatch("application/merge-patch+json", patch)))
}

// thaw ends that freeze, and no other: the next installation that goes on with this plan must decide.
func (o *options) thaw(ctx context.Context, c client.Client) error {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: o.cluster.Namespace, Name: o.plan}, cm); err != nil {
		return client.IgnoreNotFound(err)
	}
	if cm.Annotations[plan.AnnotationPausedReason] != frozenFor {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null,%q:null}}}`, plan.AnnotationPaused, plan.AnnotationPausedReason)
	return client.IgnoreNotFound(c.Patch(ctx, cm, client.RawPatch("application/merge-patch+json", patch)))
}

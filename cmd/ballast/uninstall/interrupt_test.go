package uninstall

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/plan"
)

// frozenBy is the reason of the freeze in force; empty: there is none.
func frozenBy(t *testing.T, c client.Client) string {
	t.Helper()
	cm := &corev1.ConfigMap{}
	fixture.MustDo(t, c.Get(context.Background(), client.ObjectKey{Namespace: "argocd", Name: "ballast-plan"}, cm))
	return cm.Annotations[plan.AnnotationPausedReason]
}

// TestAnInterruptLeavesNoFreezeBehind, however slow the API server is.
func TestAnInterruptLeavesNoFreezeBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &options{plan: "ballast-plan", history: "ballast-history", timeout: 5 * time.Minute, every: time.Second, now: time.Now}
		o.cluster.Namespace = "argocd"
		fast := leading(t, o, time.Now(), 0)
		slowly := func(ctx context.Context) error {
			select {
			case <-time.After(1500 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		slow := interceptor.NewClient(fast.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				return errors.Join(slowly(ctx), c.Get(ctx, key, object, options...))
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if err := slowly(ctx); err != nil {
					return err
				}
				return c.Patch(ctx, object, patch, options...)
			},
		})
		cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
			_, _, err := o.settled(cmd.Context(), slow, fixture.ControllerName)
			return err
		}}
		namespace := o.cluster.Namespace
		o.cluster.Register(cmd)
		o.cluster.Namespace = namespace
		ctx, interrupt := context.WithCancel(t.Context())
		frozen := ""
		time.AfterFunc(20*time.Second, func() { frozen = frozenBy(t, fast); interrupt() })
		err := fixture.RunLine(ctx, cmd, "ballast uninstall")
		if left := frozenBy(t, fast); frozen != "ballast uninstall" || left != "" {
			t.Errorf("frozen by %q before the interrupt, and by %q when the command ends with %v", frozen, left, err)
		}
		<-time.After(time.Minute) // of the bubble's clock
	})
}

// TestABreakGlassThatIsRefusedLeavesNoFreezeBehind, and where the freeze stays that is said.
func TestABreakGlassThatIsRefusedLeavesNoFreezeBehind(t *testing.T) {
	for name, all := range map[string]bool{"only the break-glass is refused": false, "nothing can be written any more": true} {
		t.Run(name, func(t *testing.T) {
			o := &options{plan: "ballast-plan", history: "ballast-history", timeout: time.Minute, every: time.Millisecond, now: func() time.Time { return fixture.Noon }}
			o.cluster.Namespace = "argocd"
			site := stoppedSite(t, 4, 4, "argocd")
			holds(t, site, o.plan, nil)
			fixture.MustDo(t, o.maps().Freeze(t.Context(), site)) // under which a rollout ended
			var said strings.Builder
			c := interceptor.NewClient(site.(client.WithWatch), interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				body, err := patch.Data(object)
				fixture.MustDo(t, err)
				if all || strings.Contains(string(body), plan.AnnotationEnforcement) {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, o.plan, errors.New("a policy says no"))
				}
				return c.Patch(ctx, object, patch, options...)
			}})
			target, w, goesOn, err := o.target(t.Context(), c)
			if err != nil || goesOn {
				t.Fatalf("a rollout goes on: %t, %v", goesOn, err)
			}
			err = o.carryOut(t.Context(), c, o.steps(target, w)[:1], &said)
			left := frozenBy(t, site)
			const stays = "the freeze of uninstall may still stand, under which nothing begins, a failover neither: see `ballast status -n argocd`, " +
				"and end it with `ballast resume -n argocd --plan-configmap ballast-plan`"
			if err == nil || strings.Contains(err.Error(), stays) != all || (left != "") != all {
				t.Errorf("frozen by %q after %v", left, err)
			}
		})
	}
}

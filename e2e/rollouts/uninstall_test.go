package rollouts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// underWay is nil in the midst of a rollout of that mode: while a wave's clusters move, or while no replica is to run.
func underWay(m mode, p *site.Plan, set *appsv1.StatefulSet) error {
	switch {
	case p == nil || p.Rollout == nil:
		return errors.New("no rollout is under way")
	case m == x0y && *set.Spec.Replicas > 0:
		return fmt.Errorf("%d replicas run at stage %s", *set.Spec.Replicas, p.Rollout.Stage)
	case m == live && (p.Rollout.Stage != "Moving" || len(p.Rollout.Moves) == 0):
		return fmt.Errorf("no wave is under way at stage %s", p.Rollout.Stage)
	}
	return nil
}

func envOf(set *appsv1.StatefulSet) string {
	containers := set.Spec.Template.Spec.Containers
	env := containers[slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == fleet.Workload })].Env
	return env[slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == fleet.ReplicasEnv })].Value
}

// uninstall takes ballast out in the midst of a rollout to that many replicas, and keeps the plan for an installation to come. The
// rollout ends or goes back first: replicas run, the env is theirs, and each cluster has the owner that the plan names.
func (w *world) uninstall(t *testing.T, m mode, replicas int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sets := w.Client.AppsV1().StatefulSets(w.Fleet.Namespace)
	before, err := sets.Get(ctx, fleet.Workload, metav1.GetOptions{})
	must(t, err)
	changes, err := sets.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + fleet.Workload, ResourceVersion: before.ResourceVersion})
	must(t, err)
	seen := make(chan []*appsv1.StatefulSet)
	go func() {
		var all []*appsv1.StatefulSet
		for event := range changes.ResultChan() {
			if set, is := event.Object.(*appsv1.StatefulSet); is {
				all = append(all, set)
			}
		}
		seen <- all
	}()
	must(t, w.Configure(ctx, w.config(m, replicas)))
	must(t, site.Poll(ctx, func(ctx context.Context) error {
		p, err := w.Plan(ctx)
		set, setErr := sets.Get(ctx, fleet.Workload, metav1.GetOptions{})
		if err = cmp.Or(err, setErr); err != nil {
			return err
		}
		return underWay(m, p, set)
	}))
	out, _, err := w.RunBallast(ctx, w.Plane.KubeconfigPath(), "uninstall", "--yes", "--keep-plan")
	must(t, err)
	t.Log(out)
	w.isOut(ctx, t, int(*before.Spec.Replicas), replicas)
	changes.Stop()
	for _, set := range <-seen {
		if env := envOf(set); env == "0" || env == "" {
			t.Errorf("the env was %q beside %d replicas", env, *set.Spec.Replicas)
		}
		if m == live && *set.Spec.Replicas < min(*before.Spec.Replicas, int32(replicas)) {
			t.Errorf("the workload had %d replicas", *set.Spec.Replicas)
		}
	}
}

// isOut wants what is left of ballast to be a plan at rest, of either number of replicas, that the next installation enforces.
func (w *world) isOut(ctx context.Context, t *testing.T, from, to int) {
	t.Helper()
	p, err := w.Plan(ctx)
	must(t, err)
	set, err := w.Client.AppsV1().StatefulSets(w.Fleet.Namespace).Get(ctx, fleet.Workload, metav1.GetOptions{})
	must(t, err)
	has := int(*set.Spec.Replicas)
	if p == nil || p.Rollout != nil || p.Replicas != has {
		t.Fatalf("the workload has %d replicas beside the plan %+v; want as many, and no rollout", has, p)
	}
	if env := envOf(set); has != from && has != to || env != strconv.Itoa(has) {
		t.Errorf("the workload has %d replicas and env %s, want %d or %d of both", has, env, from, to)
	}
	for _, name := range []string{"enforcement", "paused"} {
		if value := p.Annotation(name); value != "" {
			t.Errorf("%s is %q in the plan that is kept", name, value)
		}
	}
	_, err = w.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "ballast."+w.Fleet.Namespace, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the webhook configuration is there: %v", err)
	}
	must(t, w.stamped(ctx, *p))
	must(t, site.Poll(ctx, func(ctx context.Context) error {
		return cmp.Or(w.Ready(ctx, has), w.ownedAs(ctx, w.rows(p)))
	}))
}

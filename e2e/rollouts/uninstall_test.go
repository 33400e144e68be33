package rollouts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// shape is what a workload asks for.
type shape struct {
	replicas int
	env      string // ARGOCD_CONTROLLER_REPLICAS, empty where there is none
	version  string // of the object
}

func shapeOf(object runtime.Object) (s shape, is bool) {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		return shape{int(*o.Spec.Replicas), envIn(o.Spec.Template), o.ResourceVersion}, true
	case *appsv1.Deployment:
		return shape{int(*o.Spec.Replicas), envIn(o.Spec.Template), o.ResourceVersion}, true
	}
	return shape{}, false
}

func envOf(set *appsv1.StatefulSet) string { return envIn(set.Spec.Template) }

func envIn(pods corev1.PodTemplateSpec) string {
	containers := pods.Spec.Containers
	env := containers[slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == fleet.Workload })].Env
	if i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == fleet.ReplicasEnv }); i >= 0 {
		return env[i].Value
	}
	return ""
}

// shape is the workload's as it stands.
func (w *world) shape(ctx context.Context, m mode) (shape, error) {
	var object runtime.Object
	var err error
	if m == deployment {
		object, err = w.Client.AppsV1().Deployments(w.Fleet.Namespace).Get(ctx, fleet.Workload, metav1.GetOptions{})
	} else {
		object, err = w.StatefulSet(ctx)
	}
	if err != nil {
		return shape{}, fmt.Errorf("getting the workload: %w", err)
	}
	s, _ := shapeOf(object)
	return s, nil
}

// shapes watches the workload from that version on. The answer ends the watch, and is each shape that it had.
func (w *world) shapes(ctx context.Context, m mode, from shape) (func() []shape, error) {
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + fleet.Workload, ResourceVersion: from.version}
	var changes watch.Interface
	var err error
	if m == deployment {
		changes, err = w.Client.AppsV1().Deployments(w.Fleet.Namespace).Watch(ctx, options)
	} else {
		changes, err = w.Client.AppsV1().StatefulSets(w.Fleet.Namespace).Watch(ctx, options)
	}
	if err != nil {
		return nil, fmt.Errorf("watching the workload: %w", err)
	}
	seen := make(chan []shape)
	go func() {
		var all []shape
		for event := range changes.ResultChan() {
			if s, is := shapeOf(event.Object); is {
				all = append(all, s)
			}
		}
		seen <- all
	}()
	return func() []shape { changes.Stop(); return <-seen }, nil
}

// underWay is nil in the midst of a rollout of that mode: while a wave's clusters move, while no replica is to run, or while pods
// are replaced.
func (w *world) underWay(ctx context.Context, m mode, p *site.Plan, now shape) error {
	if p == nil || p.Rollout == nil {
		return errors.New("no rollout is under way")
	}
	stage := p.Rollout.Stage
	switch m {
	case x0y:
		if now.replicas > 0 {
			return fmt.Errorf("%d replicas run at stage %s", now.replicas, stage)
		}
	case live:
		if stage != "Moving" || len(p.Rollout.Moves) == 0 {
			return fmt.Errorf("no wave is under way at stage %s", stage)
		}
	case defaults, deployment:
		if stage != "Scaling" || now.replicas != p.Rollout.Replicas || w.Ready(ctx, now.replicas) == nil {
			return fmt.Errorf("no pod of %d replicas is being replaced at stage %s", now.replicas, stage)
		}
	}
	return nil
}

// uninstall takes ballast out in the midst of a rollout to that many replicas, and keeps the plan for an installation to come. The
// rollout ends or goes back first: replicas run, the env is theirs, and each cluster has the owner that the plan names.
func (w *world) uninstall(t *testing.T, m mode, replicas int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	before, err := w.shape(ctx, m)
	must(t, err)
	seen, err := w.shapes(ctx, m, before)
	must(t, err)
	defer func() {
		if t.Failed() {
			t.Log(w.LastWords(context.WithoutCancel(ctx), 20))
		}
	}()
	must(t, w.Reconfigure(ctx, w.config(m, replicas)))
	must(t, site.Poll(ctx, func(ctx context.Context) error {
		p, err := w.Plan(ctx)
		now, shapeErr := w.shape(ctx, m)
		if err = cmp.Or(err, shapeErr); err != nil {
			return err
		}
		return w.underWay(ctx, m, p, now)
	}))
	out, _, err := w.RunBallast(ctx, w.Plane.KubeconfigPath(), "uninstall", "--yes", "--keep-plan")
	must(t, err)
	if t.Log(out); !strings.Contains(out, "\n- break-glass: ") || !strings.HasPrefix(out, "- a rollout is under way: it ends first") {
		t.Error("it does not say that the rollout ends first")
	}
	w.isOut(ctx, t, m, before.replicas, replicas)
	for _, s := range seen() {
		if m == deployment && s.env != "" {
			t.Errorf("the env, which a Deployment does not have, was %q beside %d replicas", s.env, s.replicas)
		}
		if m != deployment && (s.env == "0" || s.env == "") {
			t.Errorf("the env was %q beside %d replicas", s.env, s.replicas)
		}
		if m != x0y && s.replicas < min(before.replicas, replicas) {
			t.Errorf("the workload had %d replicas", s.replicas)
		}
	}
}

// isOut wants what is left of ballast to be a plan at rest, of either number of replicas, that the next installation enforces.
func (w *world) isOut(ctx context.Context, t *testing.T, m mode, from, to int) {
	t.Helper()
	p, err := w.Plan(ctx)
	must(t, err)
	now, err := w.shape(ctx, m)
	must(t, err)
	has := now.replicas
	if p == nil || p.Rollout != nil || p.Replicas != has {
		t.Fatalf("the workload has %d replicas beside the plan %+v; want as many, and no rollout", has, p)
	}
	env := strconv.Itoa(has)
	if m == deployment {
		env = ""
	}
	if has != from && has != to || now.env != env {
		t.Errorf("the workload has %d replicas and env %q, want %d or %d, and env %q", has, now.env, from, to, env)
	}
	for _, name := range []string{"enforcement", "paused"} {
		if value := p.Annotation(name); value != "" {
			t.Errorf("%s is %q in the plan that is kept", name, value)
		}
	}
	must(t, w.left(ctx, "configmap/ballast-history", "configmap/"+site.PlanConfigMap))
	must(t, w.stamped(ctx, *p))
	if m == deployment {
		w.resync(ctx, t, has)
	}
	must(t, site.Poll(ctx, func(ctx context.Context) error {
		return cmp.Or(w.Ready(ctx, has), w.ownedAs(ctx, w.rows(p)))
	}))
}

// resync wakes the owner of each cluster, once each slot is a running pod's: without ballast that is what Argo CD's resync does, which
// is an hour apart here.
func (w *world) resync(ctx context.Context, t *testing.T, replicas int) {
	t.Helper()
	must(t, site.Poll(ctx, func(ctx context.Context) error {
		for replica := range replicas {
			pod, err := w.Holder(ctx, replica)
			if err == nil {
				_, err = w.Client.CoreV1().Pods(w.Fleet.Namespace).Get(ctx, pod, metav1.GetOptions{})
			}
			if err != nil {
				return fmt.Errorf("who holds slot %d: %w", replica, err)
			}
		}
		return nil
	}))
	for _, c := range w.Clusters {
		must(t, w.Nudge(ctx, c.Name))
	}
}

// left is nil where nothing of ballast is there but what is named.
func (w *world) left(ctx context.Context, want ...string) error {
	out, _, err := w.Plane.Kubectl(ctx, "", "-n", w.Fleet.Namespace, "get", "-l", "app.kubernetes.io/part-of=ballast",
		"--ignore-not-found", "-o", "name",
		"deployments,services,serviceaccounts,roles,rolebindings,configmaps,poddisruptionbudgets,networkpolicies,priorityclasses,"+
			"certificates,issuers,validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,clusterrolebindings")
	if err != nil {
		return err
	}
	got := strings.Fields(out)
	if slices.Sort(got); !slices.Equal(got, want) {
		return fmt.Errorf("of ballast there is %q, want %q", got, want)
	}
	_, err = w.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "ballast."+w.Fleet.Namespace, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the webhook configuration is there: %w", cmp.Or(err, errors.New("it was read")))
	}
	_, err = w.Client.CoordinationV1().Leases(w.Fleet.Namespace).Get(ctx, "ballast-"+fleet.Workload, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the planner's Lease is there: %w", cmp.Or(err, errors.New("it was read")))
	}
	return nil
}

// again is the next installation, in that mode: it goes on with the plan that was kept, and enforces it.
func (w *world) again(t *testing.T, m mode) {
	t.Helper()
	kept, err := w.Plan(t.Context())
	must(t, err)
	cluster := w.Clusters[0].Name
	enforced := func(ctx context.Context, p site.Plan) error {
		if p.Revision < kept.Revision {
			t.Errorf("revision %d follows %d", p.Revision, kept.Revision)
		}
		if err := w.SetShard(ctx, cluster, (p.Clusters[cluster].Replica+1)%kept.Replicas); err != nil {
			return err
		}
		return cmp.Or(w.stamped(ctx, p), w.leaderShows(ctx, "ballast_enforcement_up 1")) // or the planner alone mends it
	}
	c := w.drive(t, goal{replicas: kept.Replicas, unlevel: true, reached: enforced}, func(ctx context.Context) error {
		return cmp.Or(w.Configure(ctx, w.patient(m, kept.Replicas)), w.Available(ctx), site.Poll(ctx, w.ownershipKnown))
	})
	restarted := 0
	if kept.ControllerReplicas != kept.Replicas { // uninstall made the env the replicas, and the plan that is kept has its own
		restarted = kept.Replicas
	}
	w.note(t, m, "installed again", c).restarted(t, restarted, 1)
	for name, was := range w.rows(kept) {
		if c.after[name] != was {
			t.Errorf("cluster %q is of replica %d, and was kept on %d", name, c.after[name], was)
		}
	}
}

// forget takes what was kept, too.
func (w *world) forget(t *testing.T) {
	t.Helper()
	before, err := w.Shards(t.Context())
	must(t, err)
	_, _, err = w.RunBallast(t.Context(), w.Plane.KubeconfigPath(), "uninstall", "--yes")
	must(t, err)
	must(t, w.left(t.Context()))
	after, err := w.Shards(t.Context())
	must(t, err)
	for name, was := range before {
		if was == "" || after[name] != was {
			t.Errorf("secret %q carries shard %q, and %q before", name, after[name], was)
		}
	}
	must(t, site.Poll(t.Context(), func(ctx context.Context) error {
		planners, err := w.Pods(ctx, "planner")
		webhooks, webhookErr := w.Pods(ctx, "webhook")
		if err = cmp.Or(err, webhookErr); err == nil && len(planners)+len(webhooks) > 0 {
			err = fmt.Errorf("%d pods of planners and %d of webhooks are there", len(planners), len(webhooks))
		}
		return err
	}))
}

// amidRestart takes ballast out while pods are replaced, on the way to the other one of 2 and 3 replicas.
func amidRestart(m mode) step {
	return step{string(m) + " is taken out amid a restart", func(t *testing.T, w *world) {
		if w.algorithm == "consistent-hashing" { // under which live begins nothing while it has no Secret
			w.noInCluster(t)
		}
		now, err := w.shape(t.Context(), m)
		must(t, err)
		w.uninstall(t, m, 5-now.replicas)
	}}
}

// Package workload finds the application-controller's StatefulSet or Deployment, and reads what its pod template says.
package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/patchable"
	"ballast/planner/plan"
)

// found is a workload that may be the application-controller.
type found struct {
	object   client.Object
	workload discover.Workload
	pod      *corev1.PodTemplateSpec
}

// FindTarget fills in what the target leaves empty, and says how the workload stands. Without a name it is the one
// StatefulSet or Deployment with the labels that every installation sets; none or several are an error that lists what
// is there. Where a plan is of one that fits, it is that one and no other, whatever somebody puts beside it or in its
// place.
func FindTarget(ctx context.Context, r client.Reader, target plan.Target, of *plan.Plan) (plan.Target, discover.Workload, error) {
	all, err := listWorkloads(ctx, r, target)
	if err != nil {
		return plan.Target{}, discover.Workload{}, err
	}
	fits := slices.DeleteFunc(slices.Clone(all), func(f found) bool {
		if target.Name != "" {
			return f.workload.Name != target.Name
		}
		l := f.object.GetLabels()
		return l["app.kubernetes.io/part-of"] != "argocd" ||
			l["app.kubernetes.io/component"] != "application-controller"
	})
	fits, beside, err := thePlans(of, target, fits, all)
	if err != nil {
		return plan.Target{}, discover.Workload{}, err
	}
	if len(fits) != 1 {
		return plan.Target{}, discover.Workload{}, notOne(target, fits, all)
	}
	w, err := fits[0].read(target.Container, of)
	if err != nil {
		return plan.Target{}, discover.Workload{}, err
	}
	for _, c := range fits[0].pod.Spec.Containers {
		if c.Name != w.Container {
			continue
		}
		if err := follow(ctx, r, &w, c); err != nil {
			return plan.Target{}, discover.Workload{}, err
		}
	}
	if len(beside) > 0 {
		w.Beside = workloadNames(beside)
	}
	return plan.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Container: w.Container}, w, nil
}

// thePlans is the workload that a plan is of, alone of those that fit, and the others. Whoever may create a workload
// must neither take the fleet over by it, nor leave nobody in charge; nor who takes the labels off by which it was
// found: then it is known by what it runs or, where nothing else fits, by its name. A plan of what the target rules out
// says nothing.
func thePlans(of *plan.Plan, target plan.Target, fits, all []found) (its, beside []found, err error) {
	if of == nil {
		return fits, nil, nil
	}
	admits := func(asked, has string) bool { return asked == "" || asked == has }
	if !admits(target.Kind, of.Target.Kind) || !admits(target.Name, of.Target.Name) {
		return fits, nil, nil
	}
	ours := func(f found) bool { return is(f.workload, of.Target) }
	others := func(f found) bool { return !ours(f) }
	its, beside = slices.DeleteFunc(slices.Clone(fits), others), slices.DeleteFunc(fits, ours)
	if len(its) == 0 {
		alone := len(beside) == 0
		its = slices.DeleteFunc(slices.Clone(all), func(f found) bool { return others(f) || !alone && !runsController(f.pod.Spec.Containers) })
	}
	if len(its) == 0 {
		return nil, nil, fmt.Errorf("finding the application-controller in %q: the plan is of %s %s, which is not there or lacks Argo CD's labels; would fit: %s; set target.kind and target.name if another is the one",
			target.Namespace, of.Target.Kind, of.Target.Name, workloadNames(beside))
	}
	return its, beside, nil
}

func notOne(target plan.Target, fits, all []found) error {
	what := "with the labels app.kubernetes.io/part-of=argocd and app.kubernetes.io/component=application-controller"
	if target.Name != "" {
		what = fmt.Sprintf("called %q", target.Name)
	}
	kind := cmp.Or(target.Kind, "StatefulSet or Deployment")
	if len(fits) > 1 {
		return fmt.Errorf("finding the application-controller in %q: %d fit: %s; set target.kind and target.name",
			target.Namespace, len(fits), workloadNames(fits))
	}
	return missing(fmt.Sprintf("finding the application-controller in %q: no %s %s; there are: %s; set target.kind and target.name",
		target.Namespace, kind, what, workloadNames(all)))
}

// missing is that no workload fits.
type missing string

func (m missing) Error() string { return string(m) }

// IsMissing reports whether FindTarget found no workload that fits, rather than several, or none that it could read.
func IsMissing(err error) bool {
	var none missing
	return errors.As(err, &none)
}

// IsGone reports whether there is no such workload any more.
func IsGone(ctx context.Context, r client.Reader, t plan.Target) (bool, error) {
	var object client.Object = &appsv1.StatefulSet{}
	if t.Kind == plan.Deployment {
		object = &appsv1.Deployment{}
	}
	err := r.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, object)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// mostNames is how many workloads are named to people.
const mostNames = 10

func workloadNames(fs []found) string {
	var ns []string
	for _, f := range fs {
		ns = append(ns, f.workload.Kind+" "+f.workload.Name)
	}
	slices.Sort(ns)
	if more := len(ns) - mostNames; more > 0 {
		ns = append(ns[:mostNames], fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(ns, ", "), "none")
}

func listWorkloads(ctx context.Context, r client.Reader, target plan.Target) ([]found, error) {
	var all []found
	if target.Kind != plan.Deployment {
		var sets appsv1.StatefulSetList
		if err := r.List(ctx, &sets, client.InNamespace(target.Namespace)); err != nil {
			return nil, fmt.Errorf("listing StatefulSets in %q: %w", target.Namespace, err)
		}
		for i := range sets.Items {
			all = append(all, fromStatefulSet(&sets.Items[i]))
		}
	}
	if target.Kind != plan.StatefulSet {
		var deployments appsv1.DeploymentList
		if err := r.List(ctx, &deployments, client.InNamespace(target.Namespace)); err != nil {
			return nil, fmt.Errorf("listing Deployments in %q: %w", target.Namespace, err)
		}
		for i := range deployments.Items {
			all = append(all, fromDeployment(&deployments.Items[i]))
		}
	}
	return all, nil
}

func fromStatefulSet(s *appsv1.StatefulSet) found {
	first := 0
	if s.Spec.Ordinals != nil {
		first = int(s.Spec.Ordinals.Start)
	}
	return found{object: s, pod: &s.Spec.Template, workload: discover.Workload{
		Kind: plan.StatefulSet, Namespace: s.Namespace, Name: s.Name, UID: string(s.UID),
		Replicas:      asked(s.Spec.Replicas),
		ReadyReplicas: int(s.Status.ReadyReplicas), UpdatedReplicas: int(s.Status.UpdatedReplicas),
		CurrentReplicas: int(s.Status.Replicas),
		CurrentRevision: s.Status.CurrentRevision, UpdateRevision: s.Status.UpdateRevision,
		Generation: s.Generation, ObservedGeneration: s.Status.ObservedGeneration, NoText: !patchable.IsText(s),
		FirstOrdinal: first,
	}}
}

func fromDeployment(d *appsv1.Deployment) found {
	return found{object: d, pod: &d.Spec.Template, workload: discover.Workload{
		Kind: plan.Deployment, Namespace: d.Namespace, Name: d.Name, UID: string(d.UID),
		Replicas:      asked(d.Spec.Replicas),
		ReadyReplicas: int(d.Status.ReadyReplicas), UpdatedReplicas: int(d.Status.UpdatedReplicas),
		CurrentReplicas: int(d.Status.Replicas),
		Generation:      d.Generation, ObservedGeneration: d.Status.ObservedGeneration, NoText: !patchable.IsText(d),
	}}
}

// asked is the number that a workload asks for; absent it is the API server's default.
func asked(n *int32) int {
	if n == nil {
		return 1
	}
	return min(int(*n), discover.MostReplicas)
}

// is reports whether the workload is that target's.
func is(w discover.Workload, t plan.Target) bool { return w.Kind == t.Kind && w.Name == t.Name }

// read adds what the container says; an empty name finds it.
func (f found) read(container string, of *plan.Plan) (discover.Workload, error) {
	w := f.workload
	w.RestartedAt = f.pod.Annotations["kubectl.kubernetes.io/restartedAt"]
	w.Unmanaged = f.object.GetAnnotations()[plan.AnnotationUnmanaged] == "true"
	c, err := f.container(container, of)
	if err != nil {
		if of == nil || !is(w, of.Target) || of.Target.Container == "" {
			return discover.Workload{}, fmt.Errorf("reading %s %q: %w", w.Kind, w.Name, err)
		}
		without(&w, container, *of)
		return w, nil
	}
	w.Container = c.Name
	if value, set := env(c, discover.EnvReplicas); set {
		w.EnvReplicas = &value
	}
	w.EnvMixed, w.EnvUnknown = mixed(c, discover.EnvReplicas), elsewhere(c, discover.EnvReplicas)
	w.Algorithm, _ = setting(c, flagAlgorithm, discover.EnvAlgorithm)
	dynamic, _ := setting(c, flagDynamic, discover.EnvDynamic)
	w.DynamicDistribution, _ = strconv.ParseBool(dynamic)
	if namespaces, set := setting(c, flagNamespaces, envNamespaces); set {
		w.ApplicationNamespaces = &namespaces
	}
	w.Resources, w.FixedShard = resourcesOf(c), fixedShard(c)
	return w, nil
}

// container is the controller's, by its name or, without one, by what it runs, as the webhook finds it. Where none
// stands out it is the plan's, if the workload is: whoever may add a container must not leave nobody in charge.
func (f found) container(name string, of *plan.Plan) (corev1.Container, error) {
	containers := f.pod.Spec.Containers
	named := func(name string) int {
		return slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	}
	ours := of != nil && is(f.workload, of.Target)
	if name != "" && named(name) < 0 && !ours {
		return corev1.Container{}, fmt.Errorf("it has no container %q, only %s; mend target.container", name,
			containerNames(containers))
	}
	at, err := named(name), error(nil)
	if at < 0 { // without a name, or where somebody renamed the container of a workload that is planned for
		at, err = FindContainer(containers)
	}
	if at < 0 && ours {
		at = named(of.Target.Container)
	}
	if at < 0 {
		return corev1.Container{}, err
	}
	return containers[at], nil
}

// without is the plan's workload whose pod template has no container that is the controller's any more: whoever may
// write it must not leave nobody in charge. Its env and size are taken for what the plan holds, and are left alone; all
// else goes on.
func without(w *discover.Workload, container string, of plan.Plan) {
	w.Container, w.ContainerGone, w.DynamicDistribution = cmp.Or(container, of.Target.Container), true,
		w.Kind == plan.Deployment
	if of.ControllerReplicas > 0 {
		value := strconv.Itoa(of.ControllerReplicas)
		w.EnvReplicas = &value
	}
	w.Resources = of.Resources
}

// Differ reports whether an update that a watch tells of changes anything that is planned with: of a workload, its
// managed fields and other annotations run no cycle.
func Differ(before, after any) bool {
	switch a := after.(type) {
	case *appsv1.StatefulSet:
		b, ok := before.(*appsv1.StatefulSet)
		return !ok || fromStatefulSet(a).differs(fromStatefulSet(b))
	case *appsv1.Deployment:
		b, ok := before.(*appsv1.Deployment)
		return !ok || fromDeployment(a).differs(fromDeployment(b))
	}
	return secrets.SecretsDiffer(before, after)
}

// differs compares all of the pods' template: of what containers say, more is read than one list of fields could name.
func (f found) differs(from found) bool {
	a, b := f.object.GetAnnotations(), from.object.GetAnnotations()
	return f.workload != from.workload || a[plan.AnnotationUnmanaged] != b[plan.AnnotationUnmanaged] ||
		!maps.Equal(f.object.GetLabels(), from.object.GetLabels()) || !apiequality.Semantic.DeepEqual(f.pod, from.pod)
}

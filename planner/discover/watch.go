package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/plan"
)

// Argo CD's ConfigMaps and what of them is read.
const (
	configMapSettings = "argocd-cm"
	configMapParams   = "argocd-cmd-params-cm"
	keyInCluster      = "cluster.inClusterEnabled"
	keyAlgorithm      = "controller.sharding.algorithm"
)

// Transform strips a Secret before the informer of a cache keeps it, of those that a selector chooses: credentials, last-applied and
// managed fields never stay in memory. Of labels it keeps those that the selector asks for, and those of that name for
// partition.groups. What is planned with is packed, for FromSecret to read. What is no Secret passes as it is.
func Transform(selector labels.Selector, groups ...string) func(any) (any, error) {
	requirements, _ := selector.Requirements()
	var shared sharedLabels
	return func(obj any) (any, error) { return transform(obj, requirements, groups, &shared) }
}

func transform(obj any, asked labels.Requirements, groups []string, shared *sharedLabels) (any, error) {
	s, ok := obj.(*corev1.Secret)
	if !ok || isPacked(s) {
		return obj, nil
	}
	return packed(FromSecret(s).withLabels(s.Labels, groups), s, shared.of(keptLabels(s.Labels, asked))), nil
}

// keptLabels are those that the cache is asked for: a Secret may have thousands.
func keptLabels(all map[string]string, asked labels.Requirements) map[string]string {
	var kept map[string]string
	for _, r := range asked {
		value, found := all[r.Key()]
		if !found {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[r.Key()] = value
	}
	return kept
}

// sharedLabels has Secrets with the same labels share one map: nearly all have the same, and a map takes more than the
// rest of a small Secret does. Nobody writes to what a cache holds.
type sharedLabels struct {
	mu   sync.Mutex
	last map[string]string
}

func (s *sharedLabels) of(kept map[string]string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(s.last, kept) {
		s.last = kept
	}
	return s.last
}

// Differ reports whether an update that a watch tells of changes anything that is planned with: a Secret's other keys
// and labels, a workload's managed fields or annotations and what an informer tells again every few hours run no cycle.
func Differ(before, after any) bool {
	switch a := after.(type) {
	case *corev1.Secret:
		b, ok := before.(*corev1.Secret)
		return !ok || FromSecret(a) != FromSecret(b) || !maps.Equal(a.Labels, b.Labels) // what is packed has few of them
	case *appsv1.StatefulSet:
		b, ok := before.(*appsv1.StatefulSet)
		return !ok || fromStatefulSet(a).differs(fromStatefulSet(b))
	case *appsv1.Deployment:
		b, ok := before.(*appsv1.Deployment)
		return !ok || fromDeployment(a).differs(fromDeployment(b))
	}
	return true
}

// differs compares all of the pods' template: of what containers say, more is read than one list of fields could name.
func (f found) differs(from found) bool {
	a, b := f.object.GetAnnotations(), from.object.GetAnnotations()
	return f.workload != from.workload || a[plan.AnnotationUnmanaged] != b[plan.AnnotationUnmanaged] ||
		!maps.Equal(f.object.GetLabels(), from.object.GetLabels()) || !apiequality.Semantic.DeepEqual(f.pod, from.pod)
}

// ReadInput reads what Discover needs of Argo CD's namespace, but for InClusterOwner and AcceptDiscovery, which others
// know. Of more Secrets than are planned those that are known come first; of their labels those of the groups' names are
// kept. Without argocd-cm, or without its key, the in-cluster is enabled, as Argo CD has it.
func ReadInput(ctx context.Context, r client.Reader, namespace string, selector labels.Selector, known Known, groups ...string) (Input, error) {
	in := Input{Namespace: namespace}
	var secrets corev1.SecretList
	// Nothing of the list is written to or outlives this call but strings: a copy of all would take as much again.
	if err := r.List(ctx, &secrets, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return Input{}, fmt.Errorf("listing cluster secrets in %q: %w", namespace, err)
	}
	in.Secrets, in.LeftOut = known.choose(secrets.Items, mostSecrets, groups...)
	settings, err := readConfigMap(ctx, r, namespace, configMapSettings)
	if err != nil {
		return Input{}, err
	}
	in.InClusterEnabled = settings[keyInCluster] != "false"
	params, err := readConfigMap(ctx, r, namespace, configMapParams)
	if err != nil {
		return Input{}, err
	}
	in.Algorithm = params[keyAlgorithm]
	return in, nil
}

func readConfigMap(ctx context.Context, r client.Reader, namespace, name string) (map[string]string, error) {
	var cm corev1.ConfigMap
	if err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading ConfigMap %q in %q: %w", name, namespace, err)
	}
	return cm.Data, nil
}

// found is a workload that may be the application-controller.
type found struct {
	object   client.Object
	workload Workload
	pod      *corev1.PodTemplateSpec
}

// FindTarget fills in what the target leaves empty, and says how the workload stands. Without a name it is the one
// StatefulSet or Deployment with the labels that every installation sets; none or several are an error that lists what
// is there. Where a plan is of one that fits, it is that one and no other, whatever somebody puts beside it or in its
// place.
func FindTarget(ctx context.Context, r client.Reader, target plan.Target, of *plan.Plan) (plan.Target, Workload, error) {
	all, err := listWorkloads(ctx, r, target)
	if err != nil {
		return plan.Target{}, Workload{}, err
	}
	fits := slices.DeleteFunc(slices.Clone(all), func(f found) bool {
		if target.Name != "" {
			return f.workload.Name != target.Name
		}
		l := f.object.GetLabels()
		return l["app.kubernetes.io/part-of"] != "argocd" || l["app.kubernetes.io/component"] != "application-controller"
	})
	fits, beside, err := thePlans(of, target, fits, all)
	if err != nil {
		return plan.Target{}, Workload{}, err
	}
	if len(fits) != 1 {
		return plan.Target{}, Workload{}, notOne(target, fits, all)
	}
	w, err := fits[0].read(target.Container, of)
	if err != nil {
		return plan.Target{}, Workload{}, err
	}
	for _, c := range fits[0].pod.Spec.Containers {
		if c.Name != w.Container {
			continue
		}
		if err := w.follow(ctx, r, c); err != nil {
			return plan.Target{}, Workload{}, err
		}
	}
	if len(beside) > 0 {
		w.Beside = workloadNames(beside)
	}
	return plan.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Container: w.Container}, w, nil
}

// thePlans is the workload that a plan is of, alone of those that fit, and the others. Whoever may create a workload
// must neither take the fleet over by it, nor leave nobody in charge; nor who takes the labels off by which it was found: then it is
// known by what it runs or, where nothing else fits, by its name. A plan of what the target rules out says nothing.
func thePlans(of *plan.Plan, target plan.Target, fits, all []found) (its, beside []found, err error) {
	if of == nil {
		return fits, nil, nil
	}
	admits := func(asked, has string) bool { return asked == "" || asked == has }
	if !admits(target.Kind, of.Target.Kind) || !admits(target.Name, of.Target.Name) {
		return fits, nil, nil
	}
	ours := func(f found) bool { return f.workload.is(of.Target) }
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
		return fmt.Errorf("finding the application-controller in %q: %d fit: %s; set target.kind and target.name", target.Namespace, len(fits), workloadNames(fits))
	}
	return missing(fmt.Sprintf("finding the application-controller in %q: no %s %s; there are: %s; set target.kind and target.name", target.Namespace, kind, what, workloadNames(all)))
}

// missing is that no workload fits.
type missing string

func (m missing) Error() string { return string(m) }

// IsMissing reports whether FindTarget found no workload that fits, rather than several, or none that it could read.
func IsMissing(err error) bool {
	var none missing
	return errors.As(err, &none)
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
	return found{object: s, pod: &s.Spec.Template, workload: Workload{
		Kind: plan.StatefulSet, Namespace: s.Namespace, Name: s.Name, UID: string(s.UID), Replicas: asked(s.Spec.Replicas),
		ReadyReplicas: int(s.Status.ReadyReplicas), UpdatedReplicas: int(s.Status.UpdatedReplicas), CurrentReplicas: int(s.Status.Replicas),
		CurrentRevision: s.Status.CurrentRevision, UpdateRevision: s.Status.UpdateRevision,
		Generation: s.Generation, ObservedGeneration: s.Status.ObservedGeneration, NoText: !plan.IsText(s), FirstOrdinal: first,
	}}
}

func fromDeployment(d *appsv1.Deployment) found {
	return found{object: d, pod: &d.Spec.Template, workload: Workload{
		Kind: plan.Deployment, Namespace: d.Namespace, Name: d.Name, UID: string(d.UID), Replicas: asked(d.Spec.Replicas),
		ReadyReplicas: int(d.Status.ReadyReplicas), UpdatedReplicas: int(d.Status.UpdatedReplicas), CurrentReplicas: int(d.Status.Replicas),
		Generation: d.Generation, ObservedGeneration: d.Status.ObservedGeneration, NoText: !plan.IsText(d),
	}}
}

// MostReplicas is as many replicas as a workload is believed to ask for, twice what maxReplicas may be. Whoever may scale it may write
// two thousand million, for which no planner has the memory.
const MostReplicas = 2000

// asked is the number that a workload asks for; absent it is the API server's default.
func asked(n *int32) int {
	if n == nil {
		return 1
	}
	return min(int(*n), MostReplicas)
}

// is reports whether the workload is that target's.
func (w Workload) is(t plan.Target) bool { return w.Kind == t.Kind && w.Name == t.Name }

// read adds what the container says; an empty name finds it.
func (f found) read(container string, of *plan.Plan) (Workload, error) {
	w := f.workload
	w.RestartedAt = f.pod.Annotations["kubectl.kubernetes.io/restartedAt"]
	w.Unmanaged = f.object.GetAnnotations()[plan.AnnotationUnmanaged] == "true"
	c, err := f.container(container, of)
	if err != nil {
		if of == nil || !w.is(of.Target) || of.Target.Container == "" {
			return Workload{}, fmt.Errorf("reading %s %q: %w", w.Kind, w.Name, err)
		}
		w.without(container, *of)
		return w, nil
	}
	w.Container = c.Name
	if value, set := env(c, EnvReplicas); set {
		w.EnvReplicas = &value
	}
	w.EnvMixed, w.EnvUnknown = mixed(c, EnvReplicas), elsewhere(c, EnvReplicas)
	w.Algorithm, _ = setting(c, flagAlgorithm, EnvAlgorithm)
	dynamic, _ := setting(c, flagDynamic, EnvDynamic)
	w.DynamicDistribution, _ = strconv.ParseBool(dynamic)
	if namespaces, set := setting(c, flagNamespaces, envNamespaces); set {
		w.ApplicationNamespaces = &namespaces
	}
	w.Resources, w.FixedShard = resourcesOf(c), fixedShard(c)
	return w, nil
}

// container is the controller's, by its name or, without one, by what it runs, as the webhook finds it. Where none stands out it is the plan's, if the workload is:
// whoever may add a container must not leave nobody in charge.
func (f found) container(name string, of *plan.Plan) (corev1.Container, error) {
	containers := f.pod.Spec.Containers
	named := func(name string) int {
		return slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	}
	ours := of != nil && f.workload.is(of.Target)
	if name != "" && named(name) < 0 && !ours {
		return corev1.Container{}, fmt.Errorf("it has no container %q, only %s; mend target.container", name, containerNames(containers))
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

// without is the plan's workload whose pod template has no container that is the controller's any more: whoever may write it must not leave
// nobody in charge. Its env and size are taken for what the plan holds, and are left alone; all else goes on.
func (w *Workload) without(container string, of plan.Plan) {
	w.Container, w.ContainerGone, w.DynamicDistribution = cmp.Or(container, of.Target.Container), true, w.Kind == plan.Deployment
	if of.ControllerReplicas > 0 {
		value := strconv.Itoa(of.ControllerReplicas)
		w.EnvReplicas = &value
	}
	w.Resources = of.Resources
}

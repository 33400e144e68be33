package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/conflicts"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/status"
	"ballast/planner/store"
)

// statusWorld is Argo CD's namespace at noon, as its API server has it: a test changes it, and asks for the status.
type statusWorld struct {
	plan      plan.Plan
	people    map[string]string // annotations beside the plan
	pins      string
	shards    map[string]int // of the Secrets, where they differ from the plan
	pods      []*corev1.Pod
	workload  client.Object
	config    string
	lease     *coordinationv1.Lease
	said      *status.Status // by the leader; nil: it said nothing yet
	objects   []client.Object
	forbidden []string // resources that may not be read
}

// quietWorld is a fleet that stands as its plan says.
func quietWorld() *statusWorld {
	w := &statusWorld{plan: steered(nil), said: well(), shards: map[string]int{}, config: "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\nmode: Enforce\n"}
	w.people = map[string]string{plan.AnnotationDecidedAt: "2026-11-20T11:40:00Z", plan.AnnotationDecidedBy: "planner-0", plan.AnnotationReason: "moves 2 of 7 clusters"}
	w.lease = leaseOf("argocd/ballast-plan", w.plan.PlannerUser)
	w.stands(3, 16)
	for r := range 3 {
		w.pods = append(w.pods, controllerPod(fmt.Sprintf("%s-%d", controllerName, r)))
	}
	return w
}

func leaseOf(planMap, user string) *coordinationv1.Lease {
	holder, renewed := "planner-0_1", metav1.NewMicroTime(noon.Add(-3*time.Second))
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-" + controllerName,
		Annotations: map[string]string{conflicts.AnnotationPlan: planMap, conflicts.AnnotationPlannerUser: user}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}}
}

// controllerTemplate is a pod's, with the env that was given.
func controllerTemplate(env ...corev1.EnvVar) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/name": controllerName}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller", Image: "argocd", Env: env,
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}}}}}}
}

// stands makes the workload a StatefulSet of so many replicas with that env, all of them ready.
func (w *statusWorld) stands(replicas int32, env int) {
	template := controllerTemplate(corev1.EnvVar{Name: plan.EnvReplicas, Value: strconv.Itoa(env)})
	w.workload = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: controllerName},
		Spec:   appsv1.StatefulSetSpec{Replicas: &replicas, Template: template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}},
		Status: appsv1.StatefulSetStatus{Replicas: replicas, ReadyReplicas: replicas, UpdatedReplicas: replicas}}
}

func controllerPod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: plan.StatefulSet, Name: controllerName, Controller: &yes}}},
		Spec: controllerTemplate().Spec,
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "application-controller", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-time.Hour))}}}}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func notReady(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func killed(times int32, ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		s := &p.Status.ContainerStatuses[0]
		s.RestartCount, s.State.Running.StartedAt = times, metav1.NewTime(noon.Add(-ago))
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled"}
	}
}

// clustered makes the fleet a Deployment whose clusters are distributed dynamically, by these claims of its pods.
func (w *statusWorld) clustered(pods []string, claims string) {
	three, dynamic := int32(3), corev1.EnvVar{Name: "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION", Value: "true"}
	w.plan.Target.Kind, w.plan.ControllerReplicas = plan.Deployment, 0
	w.workload = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: controllerName}, Spec: appsv1.DeploymentSpec{Replicas: &three, Template: controllerTemplate(dynamic)},
		Status: appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 3, UpdatedReplicas: 3}}
	w.pods = nil
	for _, name := range pods {
		w.pods = append(w.pods, controllerPod(name, func(p *corev1.Pod) {
			p.Labels = map[string]string{"pod-template-hash": "abc"}
			p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "ReplicaSet", controllerName+"-abc"
			p.Spec.Containers[0].Env = []corev1.EnvVar{dynamic}
		}))
	}
	w.objects = append(w.objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: ownership.ClaimsConfigMap}, Data: map[string]string{ownership.ClaimsKey: claims}})
}

// client serves the world.
func (w *statusWorld) client(t *testing.T) client.Client {
	t.Helper()
	cm, err := planMapOf(w.plan, w.pins, w.people)
	mustDo(t, err)
	objects := slices.Concat([]client.Object{cm, w.workload}, w.secrets(), w.objects)
	if w.config != "" {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-config"}, Data: map[string]string{"config.yaml": w.config}})
	}
	if w.lease != nil {
		objects = append(objects, w.lease)
	}
	for _, p := range w.pods {
		objects = append(objects, p)
	}
	built := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(w.refusals()).Build()
	if w.said != nil {
		w.say(t, built)
	}
	return built
}

// secrets are the clusters', as the plan has them but for what differs.
func (w *statusWorld) secrets() []client.Object {
	var objects []client.Object
	for _, name := range slices.Sorted(maps.Keys(w.plan.Clusters)) {
		shard := w.plan.Clusters[name].Replica
		if other, differs := w.shards[name]; differs {
			shard = other
		}
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name, Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			Data: map[string][]byte{"name": []byte(name), "server": []byte("https://" + name), "shard": []byte(strconv.Itoa(shard))}})
	}
	return objects
}

// well is what a leader says of a fleet at rest, twelve seconds ago.
func well() *status.Status {
	at := func(ago time.Duration) time.Time { return noon.Add(-ago) }
	return &status.Status{Leader: "planner-0_1", LookedAt: at(12 * time.Second), Revision: 17, Budget: budgetOf("1 more cluster may move now: made 0 of 1 within 1h, 0 of 1 within 24h", 1),
		Conditions: []status.Condition{
			{Type: status.Planning, Status: status.True, Reason: "Measured", LastTransitionTime: at(3 * time.Hour)},
			{Type: status.Enforced, Status: status.True, Reason: "Held", LastTransitionTime: at(26 * time.Hour)},
			{Type: status.Progressing, Status: status.False, Reason: "AtRest", LastTransitionTime: at(20 * time.Minute)},
			{Type: status.Degraded, Status: status.False, Reason: "AsPlanned", LastTransitionTime: at(26 * time.Hour)},
		}}
}

func budgetOf(message string, left int) *status.Budget {
	return &status.Budget{Message: message, Left: &left}
}

// turns sets a condition of what the leader says, a minute and a half ago.
func (w *statusWorld) turns(kind status.Type, to status.State, reason status.Reason, message string) {
	for i, c := range w.said.Conditions {
		if c.Type == kind {
			w.said.Conditions[i] = status.Condition{Type: kind, Status: to, Reason: reason, Message: message, LastTransitionTime: noon.Add(-90 * time.Second)}
		}
	}
}

// say writes what the leader says, and which clusters it knows, as it does.
func (w *statusWorld) say(t *testing.T, c client.Client) {
	t.Helper()
	s := store.New(store.Options{Client: c, Reader: c, Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history"})
	mustDo(t, s.WriteStatus(t.Context(), *w.said))
	_, err := s.WriteHistory(t.Context(), store.History{}, noon.Add(-2*time.Minute))
	mustDo(t, err)
}

// refusals are what the API server says where a right is missing, and where nobody installed KEDA.
func (w *statusWorld) refusals() interceptor.Funcs {
	refused := func(c client.Client, o runtime.Object) error {
		if u, ok := o.(*unstructured.UnstructuredList); ok {
			return &meta.NoKindMatchError{GroupKind: u.GroupVersionKind().GroupKind()}
		}
		gvk, err := c.GroupVersionKindFor(o)
		if err != nil {
			return err
		}
		what := strings.ToLower(strings.TrimSuffix(gvk.Kind, "List")) + "s"
		if slices.Contains(w.forbidden, what) {
			return apierrors.NewForbidden(schema.GroupResource{Group: gvk.Group, Resource: what}, "", errors.New("no"))
		}
		return nil
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if slices.Contains(w.forbidden, key.Name) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New("no"))
			}
			if err := refused(c, o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := refused(c, list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}
}

func (w *statusWorld) look(t *testing.T) overview {
	t.Helper()
	o := &statusOptions{cluster: clusterOptions{namespace: "argocd"}, plan: "ballast-plan", config: "ballast-config", now: func() time.Time { return noon }}
	seen, err := o.read(t.Context(), w.client(t))
	mustDo(t, err)
	return seen.overview()
}

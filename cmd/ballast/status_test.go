package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner"
	"ballast/planner/change"
	"ballast/planner/failover"
	"ballast/planner/neighbour"
	"ballast/planner/ownership"
	"ballast/planner/plan"
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
	saved     *planner.Changes // what the leader remembers; nil: it saved nothing yet
	objects   []client.Object
	forbidden []string // resources that may not be read
}

// quietWorld is a fleet that stands as its plan says.
func quietWorld() *statusWorld {
	w := &statusWorld{plan: steered(nil), saved: &planner.Changes{}, shards: map[string]int{}, config: "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\nmode: Enforce\n"}
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
		Annotations: map[string]string{neighbour.AnnotationPlan: planMap, neighbour.AnnotationPlannerUser: user}},
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
	if w.saved != nil {
		w.save(t, built)
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

// save writes the history as the leader does, two minutes ago.
func (w *statusWorld) save(t *testing.T, c client.Client) {
	t.Helper()
	part, err := json.Marshal(w.saved)
	mustDo(t, err)
	packed, err := store.Pack(part)
	mustDo(t, err)
	s := store.New(store.Options{Client: c, Reader: c, Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history"})
	_, err = s.WriteHistory(t.Context(), store.History{Parts: map[string][]byte{"changes.json.gz": packed}}, noon.Add(-2*time.Minute))
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

func (w *statusWorld) look(t *testing.T) status {
	t.Helper()
	o := &statusOptions{cluster: clusterOptions{namespace: "argocd"}, plan: "ballast-plan", config: "ballast-config", now: func() time.Time { return noon }}
	seen, err := o.read(t.Context(), w.client(t))
	mustDo(t, err)
	return seen.status()
}

// TestStatusGolden: each state, as people and as machines read it.
func TestStatusGolden(t *testing.T) {
	for name, change := range map[string]func(*statusWorld){
		"quiet":                func(*statusWorld) {},
		"live-wave":            liveWave,
		"live-grows":           liveGrows,
		"x0y-draining":         x0yDraining,
		"tripped-and-cordoned": trippedAndCordoned,
		"deployment-silent":    deploymentSilent,
		"unwell-and-orphaned":  unwellAndOrphaned,
		"owned-by-another":     ownedByAnother,
		"nothing-beside-is-seen": func(w *statusWorld) {
			w.forbidden = []string{"pods", "leases", "horizontalpodautoscalers", "poddisruptionbudgets", "ballast-history", "ballast-config"}
		},
		"before-the-first-history": func(w *statusWorld) { w.saved, w.lease, w.config = nil, nil, "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := quietWorld()
			change(w)
			s := w.look(t)
			var table, text bytes.Buffer
			mustDo(t, s.write(&table))
			e := json.NewEncoder(&text)
			e.SetIndent("", "  ")
			mustDo(t, e.Encode(s))
			golden(t, "status/"+name, table.String()+"--- json\n"+text.String())
		})
	}
}

// liveWave is the second wave of an elected plan: one Secret is not written yet, and three clusters come after.
func liveWave(w *statusWorld) {
	w.plan.Clusters["prod-us"], w.plan.Clusters["dev"] = plan.Row{Replica: 2, Load: "0.35"}, plan.Row{Replica: 0, Load: "0.02"}
	w.shards["dev"] = 2
	w.plan.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: noon.Add(-80 * time.Second), From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 3, ControllerReplicas: 16,
		Wave: 2, Waves: 4, Moves: map[string]int{"prod-us": 2, "dev": 0}, Was: map[string]int{"prod-us": 1, "dev": 2}}
	w.saved = &planner.Changes{Cause: change.Balance, Counted: noon.Add(-80 * time.Second), Ledger: change.Ledger{{At: noon.Add(-10 * time.Minute), Moves: 1, Cause: change.Drain}, {At: noon.Add(-80 * time.Second), Moves: 2, Cause: change.Balance}},
		Target: map[string]int{"prod-us": 2, "dev": 0, "lab": 1, "stage-eu": 0, "prod-ap": 1}}
	w.config += "change: {moves: {rate: [{percent: 50, period: 1h}, {percent: 100, period: 24h}]}}\nrollout: {live: {maxMovesPerWave: 2}, stageTimeout: 20m}\n"
}

// liveGrows waits for the fourth pod.
func liveGrows(w *statusWorld) {
	w.plan.Replicas = 4
	w.plan.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Scaling, Since: noon.Add(-11 * time.Minute), From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 4, ControllerReplicas: 16}
	w.stands(4, 16)
	w.workload.(*appsv1.StatefulSet).Status.ReadyReplicas = 3
	w.pods = append(w.pods, controllerPod(controllerName+"-3", notReady))
	w.saved.Target = map[string]int{"lab": 3}
}

// x0yDraining waits for the last pod to stop.
func x0yDraining(w *statusWorld) {
	w.plan.Replicas = 0
	w.plan.Rollout = &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: noon.Add(-20 * time.Second), From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 4, ControllerReplicas: 4,
		Moves: map[string]int{"prod-us": 3, "stage-us": 3, "prod-ap": 3, "lab": 1, "dev": 0, "stage-eu": 1}}
	w.plan.ControllerReplicas = 3
	w.stands(0, 3)
	w.workload.(*appsv1.StatefulSet).Status.Replicas = 1
	w.pods = []*corev1.Pod{controllerPod(controllerName+"-0", func(p *corev1.Pod) {
		at := metav1.NewTime(noon.Add(-20 * time.Second))
		p.DeletionTimestamp, p.Finalizers = &at, []string{"kubernetes.io/test"}
	})}
	w.config += "rollout: {x0y: {}}\n"
}

// trippedAndCordoned has everything that people and ballast itself may say on the plan ConfigMap.
func trippedAndCordoned(w *statusWorld) {
	maps.Copy(w.people, map[string]string{
		plan.AnnotationTripped: `cluster "dev" has no owner since the wave of 11:50`, plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "alice", plan.AnnotationPausedReason: "a sale\nand more",
		plan.AnnotationEnforcement: "off", plan.AnnotationRollback: "14", plan.AnnotationCordon: "2=2026-11-20T13:30:00Z,0=2026-11-20T11:59:59Z,x=1",
	})
	w.pins = "stage-eu: 2\nlab: 99\n"
	w.saved = &planner.Changes{Ledger: change.Ledger{{At: noon.Add(-30 * time.Minute), Moves: 1, Cause: change.Balance}}, Trip: &change.Trip{At: noon, Reason: change.Orphaned, Why: "dev"}}
	eight := int32(8)
	all := intstr.FromString("100%")
	w.objects = []client.Object{
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "grow"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: plan.StatefulSet, Name: controllerName}, MaxReplicas: eight}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "keep"}, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": controllerName}}}},
	}
}

// deploymentSilent has a controller without a heartbeat, a slot that nobody took and a pod that has none.
func deploymentSilent(w *statusWorld) {
	names := []string{controllerName + "-abc-aaaaa", controllerName + "-abc-bbbbb", controllerName + "-abc-ccccc"}
	w.clustered(names, fmt.Sprintf(`[{"ShardNumber":0,"ControllerName":%q,"HeartbeatTime":"2026-11-20T11:59:56Z"},{"ShardNumber":1,"ControllerName":%q,"HeartbeatTime":"2026-11-20T11:58:50Z"},{"ShardNumber":2,"ControllerName":"","HeartbeatTime":null}]`, names[0], names[1]))
	w.saved.Replicas = failover.Memory{Looked: noon.Add(-2 * time.Minute), Replicas: map[int]failover.History{0: {Pod: names[0]}, 1: {Pod: names[1]}, 2: {Down: noon.Add(-8 * time.Minute)}}}
}

// unwellAndOrphaned has what the leader knows of pods and owners, a minute of it too young to count.
func unwellAndOrphaned(w *statusWorld) {
	w.pods[1] = controllerPod(controllerName+"-1", killed(4, 5*time.Minute))
	w.pods = w.pods[:2]
	w.workload.(*appsv1.StatefulSet).Status.ReadyReplicas = 2
	w.saved.Replicas = failover.Memory{Looked: noon.Add(-2 * time.Minute), Rolled: noon.Add(-time.Hour), Replicas: map[int]failover.History{
		0: {Pod: controllerName + "-0"}, 1: {Pod: controllerName + "-1", Count: 4, OOM: noon.Add(-5 * time.Minute)}, 2: {Pod: controllerName + "-2", Down: noon.Add(-8 * time.Minute)}}}
	w.saved.Ownership = ownership.Memory{Last: map[string]int{"lab": 2, "dev": 2},
		Lost:    map[string]time.Time{"lab": noon.Add(-20 * time.Minute), "prod-ap": noon.Add(-25 * time.Hour), "dev": noon.Add(-3 * time.Minute)},
		Doubled: map[string]time.Time{"prod-eu": noon.Add(-4 * time.Minute), "stage-us": noon.Add(-2*time.Minute - time.Second)}}
	w.saved.Ledger = change.Ledger{{At: noon.Add(-30 * time.Minute), Moves: 1, Cause: change.Failover}}
}

func ownedByAnother(w *statusWorld) {
	w.lease = leaseOf("other/ballast-plan", "system:serviceaccount:other:ballast-planner")
}

func TestStatusEndsAsItDidBefore(t *testing.T) {
	drifted := quietWorld()
	drifted.shards["dev"] = 1
	got := drifted.look(t)
	var steps []string
	for _, d := range got.Drift {
		steps = append(steps, d.String())
	}
	if diff := cmp.Diff([]string{"shard of dev: 1 -> 2 (Drifted)"}, steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var table bytes.Buffer
	mustDo(t, (&status{PlanError: "the plan does not match its digest annotation"}).write(&table))
	if want := "There is no plan in force. the plan does not match its digest annotation\n"; table.String() != want {
		t.Errorf("without a plan it prints %q, want %q", table.String(), want)
	}
	o := &statusOptions{output: "yaml"}
	if err := o.run(t.Context(), &table); err == nil || err.Error() != `--output: "yaml" is neither table nor json` {
		t.Errorf("another form: %v", err)
	}
}

func TestStatusNeedsSecretsAndWorkloads(t *testing.T) {
	w := quietWorld()
	w.forbidden = []string{"secrets"}
	o := &statusOptions{cluster: clusterOptions{namespace: "argocd"}, plan: "ballast-plan", config: "ballast-config", now: time.Now}
	_, err := o.read(t.Context(), w.client(t))
	if err == nil || !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "plan needs get and list on secrets, configmaps, statefulsets and deployments in \"argocd\"") {
		t.Errorf("got %v", err)
	}
}

func TestSpansAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1499 * time.Millisecond: "1s", 80 * time.Second: "1m20s", 2 * time.Hour: "2h", time.Minute: "1m", 10 * time.Minute: "10m",
		time.Hour + time.Second: "1h0m1s", 26*time.Hour + 5*time.Minute + 9*time.Second: "26h5m", 24 * time.Hour: "24h",
	} {
		if got := short(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
}

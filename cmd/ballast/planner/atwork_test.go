package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
)

// ofWork are the metrics of TestAPlannerAtWorkShowsItsSteps.
func ofWork() []string {
	return []string{"ballast_planner_steps_total", "ballast_change_blocked_timestamp_seconds",
		"ballast_replicas_blocked", "ballast_size_blocked"}
}

// TestAPlannerAtWorkShowsItsSteps: what waits for a write, and for a change that the rules of change keep waiting.
func TestAPlannerAtWorkShowsItsSteps(t *testing.T) {
	server, prometheusURL := fleetOfTwo(t)
	c, err := client.New(server, client.Options{})
	fixture.MustDo(t, err)
	fixture.MustDo(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "c",
		Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
		StringData: map[string]string{"name": "c", "server": "https://c.example", "config": "{}"}}))
	registry := prometheus.NewRegistry()
	startConfigured(t, server, "planner-a", fmt.Sprintf(`apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
mode: Enforce
poll: {prometheus: {url: %q, metrics: [{id: apps, query: apps, noData: "0", match: {label: dest_server, to: server}}]}}
index: {pNorm: {p: "1", weights: {apps: "1"}}}
partition: {lpt: {}, capacity: "0.2"}
evaluate: {none: {}}
change: {out: {mode: "Off"}, up: {mode: "Off"}}
size: {policies: [{name: ours, rules: [{list: requests, resource: memory, base: 512Mi, slope: 8Mi, input: clusters, max: 4Gi}]}]}
`, prometheusURL), registry)
	names := ofWork()
	got, shown := map[string][]string{}, showing(t, registry, names...)
	for _, name := range names[2:] {
		for _, m := range shown[name].GetMetric() {
			got[name] = append(got[name], fmt.Sprint(m.GetLabel()[0].GetValue(), " ", m.GetLabel()[1].GetValue(), " ", m.GetGauge().GetValue()))
		}
	}
	want := map[string][]string{"ballast_replicas_blocked": {"out UpdatePolicy 1"}, "ballast_size_blocked": {"up UpdatePolicy 2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
}

// TestAPlannerShowsMovesThatWait for a mode of change.moves that lets none begin.
func TestAPlannerShowsMovesThatWait(t *testing.T) {
	server, prometheusURL := fleetOfTwo(t)
	c, err := client.New(server, client.Options{})
	fixture.MustDo(t, err)
	set := steady(t, c)
	addPod(t, c, set, 0, ready())
	addPod(t, c, set, 1, ready())
	registry := prometheus.NewRegistry()
	startConfigured(t, server, "planner-a", fmt.Sprintf(`apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
mode: Enforce
interval: 10s
poll: {prometheus: {url: %q, timeout: 5s, metrics: [{id: apps, query: apps, match: {label: dest_server, to: server}}]}}
index: {pNorm: {p: "1", weights: {apps: "1"}}}
partition: {lpt: {}, replicas: 2}
evaluate: {none: {}}
change: {moves: {mode: "Off"}}
rollout: {default: {}}
`, prometheusURL), registry)
	shown := showing(t, registry, ofMoves()...)
	if diff := cmp.Diff([]string{"UpdatePolicy 1"}, valuesOf(shown["ballast_moves_blocked"])); diff != "" {
		t.Errorf("moves that wait (-want +got):\n%s", diff)
	}
}

// ofMoves are the metrics of TestAPlannerShowsMovesThatWait.
func ofMoves() []string { return []string{"ballast_moves_blocked"} }

// ofRollout are the metrics of TestAPlannerShowsItsRolloutAndWhoIsUnwell.
func ofRollout() []string {
	return []string{"ballast_ownership_unwell_replicas", "ballast_planner_rollout_stage", "ballast_planner_rollout_wave"}
}

// valuesOf are a gauge's series, by their labels' values.
func valuesOf(f *dto.MetricFamily) (all []string) {
	for _, m := range f.GetMetric() {
		var words []string
		for _, l := range m.GetLabel() {
			words = append(words, l.GetValue())
		}
		all = append(all, fmt.Sprint(strings.Join(words, " "), " ", m.GetGauge().GetValue()))
	}
	return all
}

// TestAPlannerShowsItsRolloutAndWhoIsUnwell: it takes over in the first of two waves, and a pod was killed for its memory.
func TestAPlannerShowsItsRolloutAndWhoIsUnwell(t *testing.T) {
	server, prometheusURL := fleetOfTwo(t)
	c, err := client.New(server, client.Options{})
	fixture.MustDo(t, err)
	set := steady(t, c)
	addPod(t, c, set, 0, ready())
	addPod(t, c, set, 1, killed())
	isInAWave(t, c)
	registry := prometheus.NewRegistry()
	startConfigured(t, server, "planner-a", fmt.Sprintf(`apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
mode: Enforce
poll: {prometheus: {url: %q, metrics: [{id: apps, query: apps, match: {label: dest_server, to: server}}]}}
index: {pNorm: {p: "1", weights: {apps: "1"}}}
`, prometheusURL), registry)
	got, shown := map[string][]string{}, showing(t, registry, ofRollout()...)
	for _, name := range ofRollout() {
		got[name] = valuesOf(shown[name])
	}
	want := map[string][]string{"ballast_ownership_unwell_replicas": {"OOMKilled 1"}, "ballast_planner_rollout_stage": {"Moving 1"},
		"ballast_planner_rollout_wave": {"expected 2", "present 1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// steady is the workload once its status says that no pod is replaced.
func steady(t *testing.T, c client.Client) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	fixture.MustDo(t, c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, set))
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: 2, ReadyReplicas: 2,
		CurrentReplicas: 2, UpdatedReplicas: 2, CurrentRevision: "one", UpdateRevision: "one"}
	fixture.MustDo(t, c.Status().Update(t.Context(), set))
	return set
}

// addPod gives a replica its pod, on a node.
func addPod(t *testing.T, c client.Client, set *appsv1.StatefulSet, replica int, status corev1.PodStatus) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "argocd", Name: fmt.Sprintf("%s-%d", set.Name, replica), Labels: set.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}},
		Spec: set.Spec.Template.Spec}
	pod.Spec.NodeName = "node-a"
	fixture.MustDo(t, c.Create(t.Context(), pod))
	pod.Status = status
	fixture.MustDo(t, c.Status().Update(t.Context(), pod))
}

// ready is a pod that works.
func ready() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
}

// killed is a pod that was killed for its memory a minute ago.
func killed() corev1.PodStatus {
	status, ended := ready(), metav1.NewTime(time.Now().Add(-time.Minute))
	status.ContainerStatuses = []corev1.ContainerStatus{{Name: "application-controller", RestartCount: 1,
		State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ended}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", FinishedAt: ended}}}}
	return status
}

// isInAWave writes a plan of ballast's own key: a is about to move, the first of two waves.
func isInAWave(t *testing.T, c client.Client) {
	t.Helper()
	st := store.New(store.Options{Client: c, Reader: c, Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history",
		Key: store.KeyName("ballast-plan")})
	fixture.MustDo(t, st.Unseal(t.Context()))
	before, err := st.Read(t.Context())
	fixture.MustDo(t, err)
	at := plan.Count{Replicas: 2, ControllerReplicas: 16}
	p := plan.Plan{Mode: plan.Enforce, PlannerUser: "admin",
		Target:   plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: fixture.ControllerName, Container: "application-controller"},
		Replicas: 2, ControllerReplicas: 16, MaxReplicas: 16, Clusters: map[string]plan.Row{"a": {Replica: 1}, "b": {Replica: 1}},
		Rollout: &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: time.Now().UTC().Truncate(time.Second), From: at,
			Replicas: 2, ControllerReplicas: 16, Wave: 1, Waves: 2, Moves: map[string]int{"a": 0}}}
	_, err = st.WritePlan(t.Context(), before, p, 0, configmap.Meta{})
	fixture.MustDo(t, err)
}

// TestEachMetricIsShownByAPlannerThatRuns: what one that is quiet need not show, another of these tests waits for, and nothing else.
func TestEachMetricIsShownByAPlannerThatRuns(t *testing.T) {
	elsewhere := slices.Sorted(slices.Values(slices.Concat(ofBusy(), ofWork(), ofMoves(), ofRollout())))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(absent())), elsewhere); diff != "" {
		t.Errorf("(-absent in a quiet one +shown by another):\n%s", diff)
	}
}

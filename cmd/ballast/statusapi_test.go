package main

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/cycle"
	"ballast/planner/plan"
	"ballast/planner/status"
	"ballast/planner/store"
)

// showsWhatIsUnderWay: status reads a real API server with the rights of whoever asks, and names what those do not reach.
func showsWhatIsUnderWay(t *testing.T, s *steerSite) {
	p := wave(17, 1, map[string]int{"dev": 0}, map[string]int{"dev": 0})
	p.Rollout.Since = time.Now().UTC().Truncate(time.Second)
	s.plans(t, p, cordonAnnotation("2=2126-11-20T17:00:00Z"))
	s.keeps(t, steered(nil))
	s.fleet(t, p)
	said := well()
	said.Rollout = &status.Rollout{Stage: plan.Moving, Since: p.Rollout.Since, Waits: "replica 0 is not ready", Deadline: p.Rollout.Since.Add(10 * time.Minute), After: 1}
	kept := store.New(store.Options{Client: s.planner, Reader: s.planner, Namespace: "argocd", Plan: "ballast-plan"})
	mustDo(t, kept.WriteStatus(t.Context(), *said))
	out, _ := works(t, s.alice, "", "status", "-o", "json")
	var got overview
	mustDo(t, json.Unmarshal([]byte(out), &got))
	want := &underWay{Mode: plan.ModeLive, Stage: plan.Moving, Since: p.Rollout.Since, Deadline: p.Rollout.Since.Add(10 * time.Minute), From: plan.Count{Replicas: 3, ControllerReplicas: 16},
		To: plan.Count{Replicas: 3, ControllerReplicas: 16}, Wave: 1, Waves: 2, Moves: []cycle.Move{{Cluster: "dev", From: 2, To: 0}}, After: 1, Waits: "replica 0 is not ready"}
	if diff := cmp.Diff(want, got.Rollout); diff != "" {
		t.Errorf("the rollout (-want +got):\n%s", diff)
	}
	wantPods := []podStatus{{Replica: 0, Name: controllerName + "-0", Claimed: true, MemoryLimit: 2 << 30, Clusters: 2, Load: "0.51"}}
	if diff := cmp.Diff(wantPods, got.Pods); diff != "" {
		t.Errorf("the pods (-want +got):\n%s", diff)
	}
	if len(got.Cordons) != 1 || got.Cordons[0].Replica != 2 || got.Cordons[0].Clusters != 3 || len(got.Neighbours) != 1 || len(got.Unseen) > 0 {
		t.Errorf("cordons %v, neighbours %v, unseen %v", got.Cordons, got.Neighbours, got.Unseen)
	}
	erin := s.granted("erin", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"statefulsets", "deployments"}, Verbs: []string{"get", "list"}})
	holds(t, first(works(t, erin, "", "status")), "Rollout  live, Moving, wave 1 of about 2 since ", "dev: 2 -> 0", "Cordon   replica 2 until 2126-11-20T17:00:00Z", "3 clusters still there",
		"Budget   1 more cluster may move now", "  Planning     True ", "it waits: replica 0 is not ready", "Unseen   not visible to you: leases.coordination.k8s.io, pods, horizontalpodautoscalers.autoscaling, poddisruptionbudgets.policy")
}

// fleet is a workload of three replicas, of which one has a pod that is not ready, an autoscaler of it, and the clusters.
func (s *steerSite) fleet(t *testing.T, p plan.Plan) {
	t.Helper()
	w := quietWorld()
	w.plan = p
	for _, o := range append(w.secrets(), w.workload, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "grow"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: plan.StatefulSet, Name: controllerName}, MaxReplicas: 8}}) {
		s.makes(t, o)
	}
	w.pods[0].OwnerReferences[0].UID = w.workload.GetUID()
	s.makes(t, w.pods[0])
}

// makes creates an object until the test ends.
func (s *steerSite) makes(t *testing.T, o client.Object) {
	t.Helper()
	mustDo(t, s.planner.Create(t.Context(), o))
	t.Cleanup(func() { mustDo(t, s.planner.Delete(context.Background(), o, client.GracePeriodSeconds(0))) })
}

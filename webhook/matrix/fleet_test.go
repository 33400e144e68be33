package matrix

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

// fleet is the plan of the matrix: the clusters c-00 to c-99 on replica 3 of 4.
func fleet(kind string, revision int64) plan.Plan {
	p := plan.Plan{
		Revision: revision, Mode: plan.Enforce, PlannerUser: planner,
		Target:   plan.Target{Kind: kind, Namespace: namespace, Name: workload, Container: "application-controller"},
		Replicas: 4, ControllerReplicas: 16, MaxReplicas: 16, Clusters: map[string]plan.Row{},
	}
	for i := range 100 {
		p.Clusters["c-"+string(rune('0'+i/10))+string(rune('0'+i%10))] = plan.Row{Replica: 3, Load: "0.01"}
	}
	p.Clusters["known"] = plan.Row{Replica: 2, Load: "0.01", Server: plan.ServerHash("https://known.example")}
	return p
}

// fleetOf is the plan of the matrix with more clusters, of names of 69 characters.
func fleetOf(n int, revision int64) plan.Plan {
	p := fleet(plan.StatefulSet, revision)
	for i := len(p.Clusters); i < n; i++ {
		name := fmt.Sprintf("cluster-%s-%05d", strings.Repeat("x", 55), i)
		p.Clusters[name] = plan.Row{Replica: i % 4, Load: "0.000123", Server: plan.ServerHash(name)}
	}
	return p
}

// document is a plan ConfigMap as the planner writes it.
func document(t testing.TB, p plan.Plan, pins string) *unstructured.Unstructured {
	t.Helper()
	text, err := codec.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{plan.KeyPlan: text}
	if pins != "" {
		data[plan.KeyPins] = pins
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": map[string]any{
		"name": planName, "namespace": namespace, "annotations": map[string]any{
			plan.AnnotationRevision: strconv.FormatInt(p.Revision, 10), plan.AnnotationDigest: plan.Digest(text), plan.AnnotationReason: "the test says so",
		}}}}
}

// decide puts a plan in force as the planner does, anew, and waits for the webhook to have it.
func (s *site) decide(t testing.TB, p plan.Plan, pins string) {
	t.Helper()
	err := s.dynamic(t, s.admin).Resource(configMaps).Namespace(namespace).Delete(context.Background(), planName, metav1.DeleteOptions{})
	if err == nil {
		eventually(t, "the deletion of the plan", s.planAway)
	}
	if _, err := s.dynamic(t, s.planner).Resource(configMaps).Namespace(namespace).Create(context.Background(), document(t, p, pins), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the plan at the webhook", func() bool {
		view := s.source.State().View
		return !s.planAway() && view.Plan.Revision == p.Revision && view.Plan.Target == p.Target
	})
}

// planAway reports whether the webhook knows that the plan ConfigMap is not there, whose plan it enforces for a while.
func (s *site) planAway() bool {
	state := s.source.State()
	return state.View == nil || !state.Missing.IsZero()
}

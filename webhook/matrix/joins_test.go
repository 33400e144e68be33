package matrix

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"ballast/planner/plan"
)

// templateChanges: the env that a plan waits for comes with the first write that changes the pod template, as the API server words
// such writes, and stays with all that follow; a write of anything else leaves the template, and so the pods, as they are.
func (s *site) templateChanges(t *testing.T) {
	p := fleet(plan.StatefulSet, 1)
	p.ControllerReplicas, p.NextControllerReplicas = 4, 0
	s.decide(t, p, "")
	at := s.dynamic(t, s.person).Resource(statefulSets).Namespace(namespace)
	made := controller(plan.StatefulSet, 4, "4")
	made.SetName(workload)
	if _, err := at.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.remove(statefulSets)(t, workload) })
	stands, err := at.Get(t.Context(), workload, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	template, _, err := unstructured.NestedMap(stands.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	original, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	p.Revision, p.NextControllerReplicas = 2, 16
	s.decide(t, p, "")
	const before, after = "A=1 " + plan.EnvReplicas + "=4 B=2 ", "A=1 " + plan.EnvReplicas + "=16 B=2 "
	generation := int64(1)
	for _, step := range []struct {
		name, patch, want string
		kind              types.PatchType
		rolls             bool
	}{
		{"an annotation", `{"metadata":{"annotations":{"a":"b"}}}`, before, types.MergePatchType, false},
		{"a label", `{"metadata":{"labels":{"a":"b"}}}`, before, types.StrategicMergePatchType, false},
		{"replicas", `{"spec":{"replicas":9}}`, before, types.MergePatchType, false},
		{"the env alone", `{"spec":{"template":{"spec":{"containers":[{"name":"renamed","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"7"}]}]}}}}`,
			before, types.StrategicMergePatchType, false},
		{"kubectl rollout restart", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-26T09:00:00Z"}}}}}`,
			after, types.StrategicMergePatchType, true},
		{"an annotation after it", `{"metadata":{"annotations":{"a":"c"}}}`, after, types.MergePatchType, false},
		{"the old env", `{"spec":{"template":{"spec":{"containers":[{"name":"renamed","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"4"}]}]}}}}`,
			after, types.StrategicMergePatchType, false},
		{"the pod template of before, by a JSON patch as kubectl rollout undo has it", `[{"op":"replace","path":"/spec/template","value":` + string(original) + `}]`,
			after, types.JSONPatchType, true},
		{"an image", `{"spec":{"template":{"spec":{"containers":[{"name":"renamed","image":"c"}]}}}}`, after, types.StrategicMergePatchType, true},
	} {
		stored, err := at.Patch(t.Context(), workload, step.kind, []byte(step.patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if step.rolls {
			generation++
		}
		if got := envOf(stored); got != step.want || stored.GetGeneration() != generation {
			t.Errorf("%s: the env is %q, want %q; the generation %d, want %d", step.name, got, step.want, stored.GetGeneration(), generation)
		}
	}
}

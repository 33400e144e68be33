package workloadpatch

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ballast/planner/diff"
	"ballast/planner/plan"
)

// TestWorkloadOps: whatever somebody made of the workload, its replicas are written.
func TestWorkloadOps(t *testing.T) {
	beyond := metav1.NewTime(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	five, env := 5, 4
	step := diff.PatchWorkload{Replicas: &five, ControllerReplicas: &env, Resources: plan.Resources{Requests: map[string]string{"cpu": "2"}}}
	head := []Op{{"test", "/metadata/uid", "u"}, {"test", "/metadata/generation", 7}}
	replicas := Op{"add", "/spec/replicas", 5}
	own := []Op{{"add", "/spec/template/spec/containers/1/env", []map[string]string{{"name": plan.EnvReplicas, "value": "4"}}},
		{"add", "/spec/template/spec/containers/1/resources/requests", map[string]string{"cpu": "2"}}}
	for name, test := range map[string]struct {
		change func(*Workload)
		step   diff.PatchWorkload
		want   []Op
		err    string
	}{
		"as it is": {func(*Workload) {}, step, append(append(head[:2:2], replicas), own...), ""},
		"without its container, and the fleet is stopped": {func(w *Workload) {
			w.Template.Spec.Containers[1].Name, w.Replicas = "other", ptr.To(int32(0))
		}, step, append(head[:2:2], replicas), ""},
		"without its container, and the fleet runs": {func(w *Workload) {
			w.Template.Spec.Containers[1].Name, w.Replicas = "other", ptr.To(int32(3))
		}, step, nil, `finding container "main" in the workload's pod template: there is none`},
		"without its container, and nothing else to write": {func(w *Workload) { w.Template.Spec.Containers[1].Name = "other" }, diff.PatchWorkload{ControllerReplicas: &env}, nil,
			`finding container "main" in the workload's pod template: there is none`},
		"with a time that JSON does not have in its status": {func(w *Workload) {
			w.Status = appsv1.StatefulSetStatus{Conditions: []appsv1.StatefulSetCondition{{LastTransitionTime: beyond}}}
		}, diff.PatchWorkload{Replicas: &five}, append(head[:2:2], replicas, Op{"add", "/status", struct{}{}}), ""},
		"with such times in its template": {func(w *Workload) {
			w.Template.ObjectMeta = metav1.ObjectMeta{CreationTimestamp: beyond, DeletionTimestamp: &beyond, ManagedFields: []metav1.ManagedFieldsEntry{{Time: &beyond}}}
		}, diff.PatchWorkload{Replicas: &five}, append(head[:2:2], replicas, Op{"add", "/spec/template/metadata/creationTimestamp", nil},
			Op{"add", "/spec/template/metadata/deletionTimestamp", nil}, Op{"add", "/spec/template/metadata/managedFields", nil}), ""},
		"with such times, and nothing to write": {func(w *Workload) { w.Template.CreationTimestamp = beyond }, diff.PatchWorkload{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := Workload{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 7}, Status: appsv1.StatefulSetStatus{}, Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy"}, {Name: "main"}}}}}
			test.change(&w)
			got, err := w.Ops("main", test.step)
			if err != nil && err.Error() != test.err || err == nil && test.err != "" {
				t.Errorf("%v, want %q", err, test.err)
			}
			if diff := cmp.Diff(indented(t, test.want), indented(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResourceOpsKeepWhatIsNotTheirs(t *testing.T) {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "example.com/gpu": resource.MustParse("1")}}}
	want := []Op{{"add", "/r/limits", map[string]string{"memory": "4Gi"}}, {"add", "/r/requests/example.com~1gpu", "2"}, {"add", "/r/requests/memory", "2Gi"}}
	got := resourceOps(c, "/r", plan.Resources{Requests: map[string]string{"cpu": "1000m", "memory": "2Gi", "example.com/gpu": "2"}, Limits: map[string]string{"memory": "4Gi"}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func indented(t *testing.T, ops []Op) string {
	t.Helper()
	b, err := json.MarshalIndent(ops, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

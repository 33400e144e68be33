package apply

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	head := []op{{"test", "/metadata/uid", "u"}, {"test", "/metadata/generation", 7}}
	replicas := op{"add", "/spec/replicas", 5}
	own := []op{{"add", "/spec/template/spec/containers/1/env", []map[string]string{{"name": plan.EnvReplicas, "value": "4"}}},
		{"add", "/spec/template/spec/containers/1/resources/requests", map[string]string{"cpu": "2"}}}
	for name, test := range map[string]struct {
		change func(*controller)
		step   diff.PatchWorkload
		want   []op
		err    string
	}{
		"as it is": {func(*controller) {}, step, append(append(head[:2:2], replicas), own...), ""},
		"without its container, and the fleet is stopped": {func(w *controller) {
			w.Template.Spec.Containers[1].Name, w.Replicas = "other", ptr.To(int32(0))
		}, step, append(head[:2:2], replicas), ""},
		"without its container, and the fleet runs": {func(w *controller) {
			w.Template.Spec.Containers[1].Name, w.Replicas = "other", ptr.To(int32(3))
		}, step, nil, `finding container "main" in the workload's pod template: there is none`},
		"without its container, and nothing else to write": {func(w *controller) { w.Template.Spec.Containers[1].Name = "other" }, diff.PatchWorkload{ControllerReplicas: &env}, nil,
			`finding container "main" in the workload's pod template: there is none`},
		"with a time that JSON does not have in its status": {func(w *controller) {
			w.Status = appsv1.StatefulSetStatus{Conditions: []appsv1.StatefulSetCondition{{LastTransitionTime: beyond}}}
		}, diff.PatchWorkload{Replicas: &five}, append(head[:2:2], replicas, op{"add", "/status", struct{}{}}), ""},
		"with such times in its template": {func(w *controller) {
			w.Template.ObjectMeta = metav1.ObjectMeta{CreationTimestamp: beyond, DeletionTimestamp: &beyond, ManagedFields: []metav1.ManagedFieldsEntry{{Time: &beyond}}}
		}, diff.PatchWorkload{Replicas: &five}, append(head[:2:2], replicas, op{"add", "/spec/template/metadata/creationTimestamp", nil},
			op{"add", "/spec/template/metadata/deletionTimestamp", nil}, op{"add", "/spec/template/metadata/managedFields", nil}), ""},
		"with such times, and nothing to write": {func(w *controller) { w.Template.CreationTimestamp = beyond }, diff.PatchWorkload{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := controller{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 7}, Status: appsv1.StatefulSetStatus{}, Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy"}, {Name: "main"}}}}}
			test.change(&w)
			got, err := workloadOps(w, "main", test.step)
			if err != nil && err.Error() != test.err || err == nil && test.err != "" {
				t.Errorf("%v, want %q", err, test.err)
			}
			if diff := cmp.Diff(indented(t, test.want), indented(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPodOfATimeThatJSONDoesNotHaveIsSized by a patch without what the API server could not read back.
func TestAPodOfATimeThatJSONDoesNotHaveIsSized(t *testing.T) {
	beyond := metav1.NewTime(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	size := plan.Resources{Requests: map[string]string{"cpu": "2"}}
	const spec = `"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}`
	for name, test := range map[string]struct {
		pod  corev1.Pod
		want string
	}{
		"as it is":      {corev1.Pod{}, `{"metadata":{"uid":"u"},` + spec + `}`},
		"its status":    {corev1.Pod{Status: corev1.PodStatus{StartTime: &beyond}}, `{"metadata":{"uid":"u"},` + spec + `,"status":null}`},
		"its managers'": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Time: &beyond}}}}, `{"metadata":{"managedFields":[{}],"uid":"u"},` + spec + `}`},
	} {
		test.pod.UID = "u"
		got, err := sizePatch(&test.pod, "main", size)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %v\n%s, want\n%s", name, err, got, test.want)
		}
	}
}

func indented(t *testing.T, ops []op) string {
	t.Helper()
	b, err := json.MarshalIndent(ops, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

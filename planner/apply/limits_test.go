package apply

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/diff"
	"ballast/planner/plan"
)

// TestALowerMemoryLimitKeepsNothingElseFromChanging: Kubernetes 1.33 refuses it, and with it all that is asked for beside it. The rest is
// asked for without it, and the API server is known for an hour.
func TestALowerMemoryLimitKeepsNothingElseFromChanging(t *testing.T) {
	yes, clock := true, clocktesting.NewFakeClock(start)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "c-0", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "c", Controller: &yes}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("8Gi")}}}}}}
	var asked []string
	at := field.NewPath("spec", "containers").Index(0).Child("resources", "limits").Key("memory")
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "c-0", field.ErrorList{
		field.Forbidden(at, "memory limits cannot be decreased unless resizePolicy is RestartContainer")})
	c := fake.NewClientBuilder().WithObjects(pod).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, _ client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			body, _ := patch.Data(nil)
			if asked = append(asked, string(body)); len(asked) == 1 {
				return refusal
			}
			return nil
		}}).Build()
	a := New(Options{Client: c, Reader: c, Clock: clock})
	target := plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "c", Container: "application-controller"}
	size := plan.Resources{Requests: map[string]string{"cpu": "2"}, Limits: map[string]string{"memory": "4Gi"}}
	r := a.Apply(t.Context(), target, []diff.Step{diff.PatchPod{Pod: "c-0", Size: size}}).Results[0]
	const of = `{"metadata":{"uid":""},"spec":{"containers":[{"name":"application-controller","resources":`
	want := []string{of + `{"limits":{"memory":"4Gi"},"requests":{"cpu":"2"}}}]}}`, of + `{"requests":{"cpu":"2"}}}]}}`}
	if diff := cmp.Diff(want, asked); diff != "" || r.Outcome != Applied {
		t.Errorf("%s %v, asked for (-want +got):\n%s", r.Outcome, r.Err, diff)
	}
	for after, want := range map[time.Duration]bool{0: true, time.Hour - time.Second: true, time.Hour: false} {
		clock.SetTime(start.Add(after))
		if got := a.KeepsLimits(); got != want {
			t.Errorf("%s later it is known: %v, want %v", after, got, want)
		}
	}
	clock.SetTime(start)
	asked = nil
	r = a.Apply(t.Context(), target, []diff.Step{diff.PatchPod{Pod: "c-0", Size: plan.Resources{Limits: size.Limits}}}).Results[0]
	if r.Outcome != Refused {
		t.Errorf("the limit alone: %s %v, want Refused", r.Outcome, r.Err)
	}
}

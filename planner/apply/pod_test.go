package apply

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/diff"
	"ballast/planner/plan"
)

// TestAPodIsNotTriedWhereTheAPIServerCannot: an API server before 1.33 answers 404 to the path, which says nothing of the
// pod. It is asked once, for all pods, and again after an hour.
func TestAPodIsNotTriedWhereTheAPIServerCannot(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err  error
		want string // outcomes of two pods, one after the other, an hour later one of them again
	}{
		"no such path":   {apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", pods, "c-0", "404 page not found", 0, true), "Refused: has no pods/resize, Deferred, Refused: has no pods/resize"},
		"no such pod":    {apierrors.NewNotFound(pods, "c-0"), "Refused: it is gone, Refused: it is gone, Refused: it is gone"},
		"a refusal":      {apierrors.NewForbidden(pods, "c-0", errors.New("quota")), "Failed, Failed, Failed"},
		"no words of it": {nil, "Applied, Applied, Applied"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(start)
			yes, asked := true, 0
			of := func(name string) *corev1.Pod {
				return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "c", Controller: &yes}}},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}}
			}
			c := fake.NewClientBuilder().WithObjects(of("c-0"), of("c-1")).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, _ client.Client, sub string, _ client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
					asked++
					body, err := patch.Data(nil)
					if want := `{"metadata":{"uid":""},"spec":{"containers":[{"name":"application-controller","resources":{"requests":{"cpu":"2"}}}]}}`; sub != "resize" || err != nil || string(body) != want {
						t.Errorf("%s %s %v", sub, body, err)
					}
					return test.err
				}}).Build()
			a := New(Options{Client: c, Reader: c, Clock: clock, Concurrency: 1})
			target := plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "c", Container: "application-controller"}
			var said []string
			for _, pod := range []string{"c-0", "c-1", "c-0"} {
				if len(said) == 2 {
					clock.Step(time.Hour)
				}
				r := a.Apply(t.Context(), target, []diff.Step{diff.PatchPod{Pod: pod, Size: plan.Resources{Requests: map[string]string{"cpu": "2"}}}}).Results[0]
				words := string(r.Outcome)
				for _, why := range []string{"has no pods/resize", "it is gone"} {
					if r.Outcome == Refused && strings.Contains(r.Err.Error(), why) {
						words += ": " + why
					}
				}
				if r.Outcome == Deferred && !r.Until.Equal(start.Add(time.Hour)) {
					t.Errorf("until %s", r.Until)
				}
				said = append(said, words)
			}
			if got := strings.Join(said, ", "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if want := 3 - strings.Count(test.want, "Deferred"); asked != want {
				t.Errorf("asked %d times, want %d", asked, want)
			}
		})
	}
}

func TestMaySize(t *testing.T) {
	yes, now := true, metav1.Now()
	size := plan.Resources{Requests: map[string]string{"cpu": "2"}}
	target := plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "c", Container: "application-controller"}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"as it was seen": {func(*corev1.Pod) {}, ""},
		"made anew":      {func(p *corev1.Pod) { p.UID = "uid-2" }, "it is another one than was looked at"},
		"being deleted":  {func(p *corev1.Pod) { p.DeletionTimestamp = &now }, "it is being deleted"},
		"another's":      {func(p *corev1.Pod) { p.OwnerReferences = nil }, "it is no pod of the workload's any more"},
		"opted out":      {func(p *corev1.Pod) { p.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} }, "it is annotated as unmanaged"},
		"no container":   {func(p *corev1.Pod) { p.Spec.Containers[0].Name = "a" }, `it has no container "application-controller"`},
		"another class": {func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} },
			"its quality of service would be Burstable and no longer BestEffort: let the pod template ask for something of what the size names"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "c-0", UID: "uid-1", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "c", Controller: &yes}}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}}
			test.change(p)
			at := 0
			if p.Spec.Containers[0].Name != target.Container {
				at = -1
			}
			if diff := cmp.Diff(test.want, maySize(p, target, at, diff.PatchPod{Pod: "c-0", UID: "uid-1", Size: size})); diff != "" {
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

func TestSizeManager(t *testing.T) {
	at := func(minute int) *metav1.Time {
		m := metav1.NewTime(start.Add(time.Duration(minute) * time.Minute))
		return &m
	}
	for want, entries := range map[string][]metav1.ManagedFieldsEntry{
		"": {{Manager: "kubelet", Subresource: "status", Time: at(1)},
			{Manager: plan.FieldManager, Subresource: "resize", Time: at(2)}, {Manager: "kubectl", Time: at(3)}},
		"vpa": {{Manager: "vpa", Subresource: "resize", Time: at(2)}, {Manager: "kubectl", Subresource: "resize", Time: at(1)}, {Manager: "x", Subresource: "resize"}},
	} {
		if got := sizeManager(entries); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

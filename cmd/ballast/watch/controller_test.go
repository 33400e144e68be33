package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestAFoundWorkloadStaysFound: nobody hides it by its labels, nor by another beside it; one that takes its place is found.
func TestAFoundWorkloadStaysFound(t *testing.T) {
	set := func(name string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "argocd", Labels: map[string]string{
				"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"}},
			Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "argocd-application-controller", Command: []string{"argocd-application-controller"}}}}}},
		}
	}
	c := fake.NewClientBuilder().WithObjects(set("ac")).Build()
	w := &watcher{reader: c, namespace: "argocd"}
	finds := func(when, want string) {
		t.Helper()
		target, found, err := w.controller(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if diff := cmp.Diff([]string{want, want}, []string{target.Name, found.Name}); diff != "" {
			t.Errorf("%s: found (-want +got):\n%s", when, diff)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	finds("at first", "ac")
	must(c.Create(t.Context(), set("bc")))
	finds("with another beside it", "ac")
	var bare appsv1.StatefulSet
	must(c.Get(t.Context(), types.NamespacedName{Namespace: "argocd", Name: "ac"}, &bare))
	bare.Labels = nil
	must(c.Update(t.Context(), &bare))
	finds("without its labels, and another that has them", "ac")
	must(c.Delete(t.Context(), set("bc")))
	finds("without its labels", "ac")
	must(c.Delete(t.Context(), &bare))
	must(c.Create(t.Context(), set("cc")))
	finds("in its place", "cc")
}

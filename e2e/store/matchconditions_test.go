package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/hooked"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
)

// TestWithoutMatchConditionsOthersAreLeftAlone: an API server that knows no matchConditions, or an installation that lost them,
// asks about every ConfigMap and workload of the namespace. What is not ballast's is stored as it was written.
func TestWithoutMatchConditionsOthersAreLeftAlone(t *testing.T) {
	site := hooked.Start(t, hooked.Options{})
	as := site.As(hooked.Planner)
	s := store.New(store.Options{Client: as, Reader: as, Namespace: hooked.Namespace, Plan: hooked.PlanConfigMap, History: "ballast-history"})
	if _, err := s.WritePlan(t.Context(), store.Snapshot{}, newPlan(), 0, configmap.Meta{Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	site.Webhooks(func(w *admissionregistration.MutatingWebhook) { w.MatchConditions = nil })
	before := site.Asked()
	hooked.Eventually(t, "every ConfigMap is asked about", func() bool {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: "probe"}}
		return site.Admin.Create(t.Context(), cm, client.DryRunAll) == nil && site.Asked() > before
	})
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: hooked.Namespace, Name: name, Annotations: map[string]string{"note": "kept"}}
	}
	labels := map[string]string{"app": "redis"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "redis", Image: "redis", Env: []corev1.EnvVar{{Name: plan.EnvReplicas, Value: "7"}}}}}}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta("argocd-cm"), Data: map[string]string{"url": "https://argocd"}},
		&corev1.ConfigMap{ObjectMeta: meta("argocd-tls-certs-cm")},
		&corev1.ConfigMap{ObjectMeta: meta("mine"), Data: map[string]string{"pins": "hello: 99999999", "plan": "theirs"}},
		&appsv1.StatefulSet{ObjectMeta: meta("redis"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](7), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}},
	} {
		asked, want := site.Asked(), said(o)
		if err := site.As("alice").Create(t.Context(), o); err != nil {
			t.Errorf("%s: %v", o.GetName(), err)
		}
		if diff := cmp.Diff(want, said(o)); diff != "" {
			t.Errorf("%s (-written +stored):\n%s", o.GetName(), diff)
		}
		if site.Asked() == asked {
			t.Errorf("%s: the webhook was not asked, so that this shows nothing", o.GetName())
		}
	}
}

// said is what a writer says of an object.
func said(o client.Object) map[string]any {
	out := map[string]any{"annotations": o.GetAnnotations()}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		out["data"] = o.Data
	case *appsv1.StatefulSet:
		out["replicas"], out["env"] = *o.Spec.Replicas, o.Spec.Template.Spec.Containers[0].Env
	}
	return out
}

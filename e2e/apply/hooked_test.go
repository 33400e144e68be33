package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/hooked"
	"ballast/planner/apply"
	"ballast/planner/diff"
	"ballast/planner/plan"
)

// TestTheShippedPoliciesLetTheApplierWork as the planner's ServiceAccount, with its own rights: every kind of step, on a
// StatefulSet and on a Deployment, with the env as a value, by reference and absent.
func TestTheShippedPoliciesLetTheApplierWork(t *testing.T) {
	site := hooked.Start(t, hooked.Options{})
	planner := site.As(hooked.Planner)
	meta := metav1.ObjectMeta{Namespace: hooked.Namespace, Name: "argocd-application-controller", Labels: map[string]string{"app": "controller"}}
	for name, env := range map[string][]corev1.EnvVar{
		"a value":     {{Name: "A", Value: "a"}, {Name: plan.EnvReplicas, Value: "1"}, {Name: "B", Value: "b"}},
		"a reference": {{Name: plan.EnvReplicas, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Key: "b"}}}},
		"none":        {{Name: "A", Value: "a"}},
		"no env":      nil,
	} {
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "sidecar", Image: "sidecar"}, {Name: "application-controller", Image: "argocd", Env: env}}}}
		selector := &metav1.LabelSelector{MatchLabels: meta.Labels}
		set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1)), Selector: selector, Template: template}}
		deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: selector, Template: template}}
		for kind, o := range map[string]client.Object{plan.StatefulSet: set, plan.Deployment: deployment} {
			t.Run(kind+" "+name, func(t *testing.T) {
				works(t, site.Admin, apply.New(apply.Options{Client: planner, Reader: planner}), kind, o)
			})
			t.Run(kind+" "+name+", beside what is no text", func(t *testing.T) {
				o := o.DeepCopyObject().(client.Object)
				o.SetResourceVersion("")
				o.SetAnnotations(map[string]string{"note": "\xff"})
				switch w := o.(type) {
				case *appsv1.StatefulSet:
					w.Spec.Template.Spec.Containers[0].Args = []string{"\xfe"}
				case *appsv1.Deployment:
					w.Spec.Template.Spec.Containers[1].Args = []string{"\xfe"}
				}
				works(t, site.Admin, apply.New(apply.Options{Client: planner, Reader: planner}), kind, o)
			})
		}
	}
}

func works(t *testing.T, admin client.Client, applier *apply.Applier, kind string, workload client.Object) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: "prod-eu", Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}, Annotations: map[string]string{"note": "\xff"}},
		Data:       map[string][]byte{"server": []byte("https://10.0.0.1"), "config": []byte("{}")},
	}
	for _, o := range []client.Object{workload, secret} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := admin.Delete(t.Context(), o); err != nil {
				t.Error(err)
			}
		}()
	}
	target := plan.Target{Kind: kind, Namespace: hooked.Namespace, Name: workload.GetName(), Container: "application-controller"}
	report := applier.Apply(t.Context(), target, []diff.Step{
		diff.PatchWorkload{Replicas: ptr(3)}, diff.PatchWorkload{ControllerReplicas: ptr(16)}, diff.PatchWorkload{RestartedAt: "2026-11-20T12:00:00Z"},
		diff.PatchWorkload{Replicas: ptr(4), ControllerReplicas: ptr(4), RestartedAt: "2026-11-20T13:00:00Z"}, diff.PatchShard{Secret: secret.Name, Shard: 2},
	})
	for _, r := range report.Results {
		if r.Outcome != apply.Applied {
			t.Errorf("%v: %s %v", r.Step, r.Outcome, r.Err)
		}
	}
	replicas, template := read(t, admin, workload)
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, e := range template.Spec.Containers[1].Env {
		env[e.Name] = e.Value
	}
	got := []any{*replicas, env[plan.EnvReplicas], template.Annotations, string(secret.Data[plan.ShardKey])}
	want := []any{int32(4), "4", map[string]string{restartedAt: "2026-11-20T13:00:00Z"}, "2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// read is what stands of a workload that a test made.
func read(t *testing.T, c client.Client, workload client.Object) (*int32, corev1.PodTemplateSpec) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(workload), workload); err != nil {
		t.Fatal(err)
	}
	switch w := workload.(type) {
	case *appsv1.StatefulSet:
		return w.Spec.Replicas, w.Spec.Template
	case *appsv1.Deployment:
		return w.Spec.Replicas, w.Spec.Template
	}
	t.Fatalf("%T is no workload", workload)
	return nil, corev1.PodTemplateSpec{}
}

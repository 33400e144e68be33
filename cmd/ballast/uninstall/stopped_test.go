package uninstall

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

// TestUninstallLeavesNoWorkloadStopped: in the midst of x0y nothing is taken out, and a plan that names another namespace's
// workload is not followed there.
func TestUninstallLeavesNoWorkloadStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas  int32
		planned   int
		glass     string
		namespace string
		says      string
	}{
		"x0y has stopped every replica": {0, 0, "", "argocd", "kubectl -n argocd scale statefulset argocd-application-controller --replicas=4, and run uninstall again"},
		"another namespace's workload":  {4, 4, "", "prod", `the plan names a workload of namespace "prod", and no plan of "argocd" does: delete ConfigMap "ballast-plan"`},
		"x0y is about to stop them": {4, 0, "", "argocd", "rollout.x0y stops every replica of StatefulSet argocd-application-controller at this moment, and nobody would bring them back: " +
			"wait until `ballast status` shows no rollout; where no planner runs any more, kubectl -n argocd annotate configmap ballast-plan ballast.argoproj.io/enforcement=off, and run uninstall again"},
		"people brought them back": {4, 0, "off", "argocd", ""},
		"four replicas run":        {4, 4, "", "argocd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{plan: "ballast-plan", history: "ballast-history", timeout: time.Second, every: time.Millisecond, now: time.Now}
			o.cluster.Namespace = "argocd"
			c := stoppedSite(t, tc.replicas, tc.planned, tc.namespace)
			if tc.glass != "" {
				fixture.MustDo(t, o.maps().Enforcement(t.Context(), c, &tc.glass))
			}
			target, _, _, err := o.target(t.Context(), c)
			if tc.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				var set appsv1.StatefulSet
				fixture.MustDo(t, c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set))
				set.Spec.Replicas = ptr.To[int32](0) // it stops meanwhile
				fixture.MustDo(t, c.Update(t.Context(), &set))
				if _, _, err := o.alignEnv(t.Context(), c, target); err == nil || !strings.Contains(err.Error(), "has no replicas, and nobody would bring them back") {
					t.Errorf("the env is written for a workload that stopped: %v", err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want one with %q", err, tc.says)
			}
			var set appsv1.StatefulSet
			fixture.MustDo(t, c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set))
			if env := set.Spec.Template.Spec.Containers[0].Env[0].Value; env != "4" {
				t.Errorf("the env is %q", env)
			}
		})
	}
}

// stoppedSite is a namespace in the midst of x0y.
func stoppedSite(t *testing.T, replicas int32, planned int, namespace string) client.Client {
	t.Helper()
	labels := map[string]string{"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fixture.ControllerName, Labels: labels},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller",
				Env: []corev1.EnvVar{{Name: plan.EnvReplicas, Value: "4"}}}}}}}}
	text, err := codec.Encode(plan.Plan{Revision: 9, Mode: plan.Enforce, Target: plan.Target{Kind: plan.StatefulSet, Namespace: namespace, Name: fixture.ControllerName, Container: "application-controller"},
		Replicas: planned, ControllerReplicas: 4, MaxReplicas: 16, Clusters: map[string]plan.Row{"a": {Replica: 3}},
		Rollout: &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: fixture.Noon, From: plan.Count{Replicas: 4, ControllerReplicas: 4}, Replicas: 5, ControllerReplicas: 5}})
	fixture.MustDo(t, err)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-plan", Annotations: map[string]string{plan.AnnotationDigest: plan.Digest(text)}},
		Data: map[string]string{plan.KeyPlan: text}}
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(set, cm).Build()
}

package uninstall

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/uninstall/objects"
)

// TestWhereNothingOfBallastIsNoEnvIsWritten: it may be another cluster than the person means, and that is said before they answer. What is
// left of an installation is enough for its env to be set.
func TestWhereNothingOfBallastIsNoEnvIsWritten(t *testing.T) {
	of := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{objects.PartOf: "ballast"}}
	}
	for name, test := range map[string]struct {
		left client.Object
		env  string
	}{
		"nothing":                         {nil, "4"},
		"a history":                       {&corev1.ConfigMap{ObjectMeta: of("argocd", "ballast-history")}, "3"},
		"a status":                        {&corev1.ConfigMap{ObjectMeta: of("argocd", "ballast-plan-status")}, "3"},
		"a Lease":                         {fixture.LeaseOf("argocd/ballast-plan", "planner"), "3"},
		"a Service":                       {&corev1.Service{ObjectMeta: of("argocd", "ballast-webhook")}, "3"},
		"an account of another namespace": {&corev1.ServiceAccount{ObjectMeta: of("gitops", "ballast-planner")}, "4"},
		"what somebody labelled":          {&corev1.ConfigMap{ObjectMeta: of("argocd", "notes")}, "4"},
		"a ClusterRole of its name":       {&rbacv1.ClusterRole{ObjectMeta: of("", "ballast-planner.argocd")}, "3"},
		"a ClusterRole of another's":      {&rbacv1.ClusterRole{ObjectMeta: of("", "ballast-planner.gitops")}, "4"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{plan: "ballast-plan", history: "ballast-history", timeout: time.Minute, every: time.Millisecond, now: func() time.Time { return fixture.Noon }}
			o.cluster.Namespace = "argocd"
			c := stoppedSite(t, 3, 4, "argocd")
			settled(t, c)
			var set appsv1.StatefulSet
			key := client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}
			fixture.MustDo(t, c.Get(t.Context(), key, &set))
			set.UID, set.Generation = "the-workload", 1 // which a write is for
			fixture.MustDo(t, c.Update(t.Context(), &set))
			set.Status.ObservedGeneration = 1
			fixture.MustDo(t, c.Status().Update(t.Context(), &set))
			fixture.MustDo(t, c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-plan"}}))
			if test.left != nil {
				fixture.MustDo(t, c.Create(t.Context(), test.left))
			}
			var said strings.Builder
			target, w, _, err := o.agreed(t.Context(), c, strings.NewReader("y\n"), &said)
			fixture.MustDo(t, err)
			steps := o.steps(target, w)
			fixture.MustDo(t, o.carryOut(t.Context(), c, steps[1:2], &said))
			fixture.MustDo(t, c.Get(t.Context(), key, &set))
			if env := set.Spec.Template.Spec.Containers[0].Env[0].Value; env != test.env {
				t.Errorf("the env is %q, want %q", env, test.env)
			}
			first, step := "Nothing of ballast was found in argocd: ", "stays as it is, since nothing of ballast was found"
			if none := test.env == "4"; strings.HasPrefix(said.String(), first) != none || strings.HasSuffix(steps[1].what, step) != none {
				t.Errorf("the person hears %q", said.String())
			}
		})
	}
}

package configmaps

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestUninstallSaysWhatAFinalizerKeeps: a plan that is not gone is none that it says is gone.
func TestUninstallSaysWhatAFinalizerKeeps(t *testing.T) {
	m := Maps{Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history"}
	for name, test := range map[string]struct {
		plan, history []string
		want          string
	}{
		"none": {nil, nil, ""},
		"on the plan": {[]string{"example.org/stays"}, nil, `deleting ConfigMap "ballast-plan": it waits for its finalizers example.org/stays; ` +
			`where nobody is to take them off: kubectl -n argocd patch configmap ballast-plan --type=merge -p '{"metadata":{"finalizers":null}}'`},
		"on the history": {nil, []string{"example.org/stays", "example.org/too"}, `deleting ConfigMap "ballast-history": it waits for its finalizers example.org/stays, example.org/too; ` +
			`where nobody is to take them off: kubectl -n argocd patch configmap ballast-history --type=merge -p '{"metadata":{"finalizers":null}}'`},
	} {
		t.Run(name, func(t *testing.T) {
			meta := func(name string, finalizers []string) metav1.ObjectMeta {
				return metav1.ObjectMeta{Namespace: "argocd", Name: name, Finalizers: finalizers}
			}
			c := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{ObjectMeta: meta("ballast-plan", test.plan)}, &corev1.ConfigMap{ObjectMeta: meta("ballast-history", test.history)}).Build()
			got := ""
			if err := m.Delete(t.Context(), c); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

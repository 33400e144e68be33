package uninstall

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// TestUninstallRefusesAConfigMapThatIsNotItsOwn: a slip in a flag must not delete what Argo CD is configured by.
func TestUninstallRefusesAConfigMapThatIsNotItsOwn(t *testing.T) {
	const refused = `ConfigMap %q in "argocd" is no %s of ballast's, and uninstall would delete it: name the one that ` + "`plan`" + ` in ConfigMap ballast-config does ` +
		`with --%s; where this is the one and somebody spoiled it, delete it yourself, and run uninstall again`
	ofPlan, ofHistory := fmt.Sprintf(refused, "argocd-cm", "plan", "plan-configmap"), fmt.Sprintf(refused, "argocd-cm", "history", "history-configmap")
	ofStatus := fmt.Sprintf(refused, "ballast-plan-status", "status", "plan-configmap")
	revision := map[string]string{plan.AnnotationRevision: "7"}
	for name, test := range map[string]struct {
		as   string // the flag that names it
		cm   corev1.ConfigMap
		want string
	}{
		"settings":               {"plan", corev1.ConfigMap{Data: map[string]string{"url": "https://argocd"}}, ofPlan},
		"another's plan":         {"plan", corev1.ConfigMap{Data: map[string]string{plan.KeyPlan: "kind: Terraform"}}, ofPlan},
		"settings with pins":     {"plan", corev1.ConfigMap{Data: map[string]string{plan.KeyPins: "a: 1", "url": "https://argocd"}}, ofPlan},
		"nothing":                {"plan", corev1.ConfigMap{}, ofPlan},
		"a plan that is damaged": {"plan", corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: revision}, Data: map[string]string{plan.KeyPlan: "{"}}, ""},
		"pins before any plan":   {"plan", corev1.ConfigMap{Data: map[string]string{plan.KeyPins: "a: 1"}}, ""},
		"no history":             {"history", corev1.ConfigMap{Data: map[string]string{"url": "https://argocd"}}, ofHistory},
		"binary, no history":     {"history", corev1.ConfigMap{BinaryData: map[string][]byte{"key": []byte("x")}}, ofHistory},
		"an empty history":       {"history", corev1.ConfigMap{}, ""},
		"a history":              {"history", corev1.ConfigMap{BinaryData: map[string][]byte{store.PartWords: []byte("pins")}}, ""},
		"no status":              {"status", corev1.ConfigMap{Data: map[string]string{"url": "https://argocd"}}, ofStatus},
		"a status and more":      {"status", corev1.ConfigMap{Data: map[string]string{"status": "{}", "url": "https://argocd"}}, ofStatus},
		"a status":               {"status", corev1.ConfigMap{Data: map[string]string{"status": "{}"}}, ""},
		"a history that is gone": {"history", corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{plan: "ballast-plan", history: "ballast-history"}
			o.cluster.Namespace = "argocd"
			c := stoppedSite(t, 4, 4, "argocd")
			test.cm.Namespace = "argocd"
			switch {
			case test.as == "status":
				test.cm.Name = "ballast-plan-status"
			case test.cm.Name == "":
				test.cm.Name = "argocd-cm"
			}
			fixture.MustDo(t, c.Create(t.Context(), &test.cm))
			switch test.as {
			case "plan":
				o.plan = "argocd-cm"
			case "history":
				o.history = "argocd-cm"
			}
			_, _, _, err := o.target(t.Context(), c)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if test.want == "" && strings.Contains(got, "and uninstall would delete it") || test.want != "" && got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(&test.cm), &test.cm); err != nil {
				t.Error(err)
			}
		})
	}
}

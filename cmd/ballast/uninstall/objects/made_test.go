package objects

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ballast/cmd/ballast/fixture"
	"ballast/manifests/helmchart"
)

// TestEveryObjectOfTheManifestsIsKnown to uninstall by its kind and its name, as kustomize makes it of each component, or told to be of
// another installation.
func TestEveryObjectOfTheManifestsIsKnown(t *testing.T) {
	manifests, err := helmchart.Open(fixture.Checkout(t, "manifests"))
	fixture.MustDo(t, err)
	found, err := filepath.Glob(fixture.Checkout(t, "manifests", "components", "*"))
	fixture.MustDo(t, err)
	settings := helmchart.Settings{Namespace: "argocd", Workload: fixture.ControllerName, PlannerAccount: "ballast-planner", WebhookAccount: "ballast-webhook"}
	seen := map[string]bool{}
	for _, path := range found {
		component := "components/" + filepath.Base(path)
		if component == "components/retarget" { // which is in all that is built
			continue
		}
		objects, err := manifests.Build(settings, []string{"watch"}, []string{component, "watch/alerts"})
		fixture.MustDo(t, err)
		for _, object := range objects {
			u := unstructured.Unstructured{Object: object}
			seen[u.GetKind()+" "+u.GetName()] = true
			switch known := made(&u, strings.TrimSuffix(u.GetName(), ".argocd")); {
			case !isBallasts(&u):
				t.Errorf("%s: %s %q lacks ballast's label", component, u.GetKind(), u.GetName())
			case known == (u.GetName() == watching) && u.GetKind() != "Secret": // which goes by name
				t.Errorf("%s: %s %q is known to uninstall: %t", component, u.GetKind(), u.GetName(), known)
			}
		}
	}
	if len(seen) < 40 || !seen["ConfigMap ballast-dashboard"] || !seen["Deployment "+watching] {
		t.Errorf("only %d objects were seen", len(seen))
	}
}

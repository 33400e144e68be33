package version

import (
	"os"
	"regexp"
	"testing"
)

// What is said to be proven is what the end-to-end tests are built of.
func TestWhatIsProvenIsWhatTheTestsRunWith(t *testing.T) {
	for module, want := range map[string]struct{ file, version string }{
		`k8s\.io/kubernetes`:              {"../../../e2e/kube/go.mod", ProvenKubernetes},
		`github\.com/argoproj/argo-cd/v3`: {"../../../e2e/argocd/go.mod", ProvenArgoCD},
	} {
		text, err := os.ReadFile(want.file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^\s+` + module + ` v(\S+)`).FindSubmatch(text)
		if found == nil || string(found[1]) != want.version {
			t.Errorf("%s has %q of %s, and %q is said", want.file, found, module, want.version)
		}
	}
}

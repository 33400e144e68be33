package assets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestArgoCDSaysTheVersionThatItsModuleRequires(t *testing.T) {
	root, err := repoRoot()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "e2e", "argocd", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/argoproj/argo-cd/v3 " + argocdVersion + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("e2e/argocd/go.mod does not require %q", strings.TrimSpace(want))
	}
}

func TestHelmSaysTheVersionThatItsModuleRequires(t *testing.T) {
	root, err := repoRoot()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "e2e", "helm", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "helm.sh/helm/v3 " + helmVersion + " //"; !strings.Contains(string(mod), want) {
		t.Errorf("e2e/helm/go.mod does not require %q", want)
	}
}

func TestAChangeOfArgoCDsPartBuildsNothingElseAnew(t *testing.T) {
	e2e := t.TempDir()
	for _, module := range []string{"kube", "prometheus", "tools", "argocd/views"} {
		if err := os.MkdirAll(filepath.Join(e2e, module), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hash := func(s set) string {
		h, err := s.sourceHash(e2e)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	plane, argocd := hash(planeSet), hash(argocdSet())
	if err := os.WriteFile(filepath.Join(e2e, "argocd/views/main.go"), []byte("package main"), 0o600); err != nil {
		t.Fatal(err)
	}
	if hash(planeSet) != plane {
		t.Error("the control plane's hash follows Argo CD's part")
	}
	if hash(argocdSet()) == argocd {
		t.Error("the hash of Argo CD's part does not follow its sources")
	}
}

package canary

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"ballast/e2e/site"
)

// verbosity is the highest that the commands take.
const verbosity = 9

// install applies the shipped overlay with the highest verbosity and waits until the webhooks enforce.
func (w *world) install(ctx context.Context, mode string) {
	GinkgoHelper()
	_, _, err := w.Plane.KubectlStdin(ctx, strings.NewReader(w.manifests(mode)), "", "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// manifests are a person's own overlay over the shipped one: another configuration, and one argument more.
func (w *world) manifests(mode string) string {
	GinkgoHelper()
	dir := filepath.Join(w.Plane.Dir(), "canary-overlay")
	shipped, err := filepath.Abs("../../manifests/overlays/cert-manager")
	Expect(err).NotTo(HaveOccurred())
	base, err := filepath.Rel(dir, shipped)
	Expect(err).NotTo(HaveOccurred())
	k := types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{base},
		Patches:   []types.Patch{{Patch: w.config(mode)}},
	}
	for _, name := range []string{site.Planner, site.Webhook} {
		k.Patches = append(k.Patches, types.Patch{
			Patch:  fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--verbosity=%d"}]`, verbosity),
			Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: "Deployment"}, Name: name}},
		})
	}
	text, err := yaml.Marshal(k)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o644)).To(Succeed())
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	Expect(err).NotTo(HaveOccurred())
	all, err := built.AsYaml()
	Expect(err).NotTo(HaveOccurred())
	return string(all)
}

func (w *world) config(mode string) string {
	GinkgoHelper()
	file, err := yaml.Marshal(w.Config(mode))
	Expect(err).NotTo(HaveOccurred())
	patch, err := yaml.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "ballast-config", Namespace: w.Fleet.Namespace},
		Data:       map[string]string{"config.yaml": string(file)},
	})
	Expect(err).NotTo(HaveOccurred())
	return string(patch)
}

package locks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

	"ballast/e2e/hooked"
)

// installation is a shipped overlay with shipped components, as a person puts them together.
type installation struct {
	Overlay    string
	Components []string
	Patches    []types.Patch
}

// documents builds an installation into its objects' texts.
func (w *world) documents(i installation) []string {
	GinkgoHelper()
	dir := filepath.Join(w.Plane.Dir(), "installation")
	shipped, err := filepath.Abs("../../manifests")
	Expect(err).NotTo(HaveOccurred())
	base, err := filepath.Rel(dir, shipped)
	Expect(err).NotTo(HaveOccurred())
	k := types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{filepath.Join(base, "overlays", i.Overlay)},
		Patches: append(i.Patches, types.Patch{Patch: w.configPatch()}, types.Patch{Patch: patientPatch(),
			Target: &types.Selector{ResId: resID("MutatingWebhookConfiguration", ".*")}}),
	}
	for _, c := range i.Components {
		k.Components = append(k.Components, filepath.Join(base, "components", c))
	}
	text, err := yaml.Marshal(k)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o644)).To(Succeed())
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	Expect(err).NotTo(HaveOccurred())
	all, err := built.AsYaml()
	Expect(err).NotTo(HaveOccurred())
	return strings.Split(string(all), "\n---\n")
}

func (w *world) configPatch() string {
	GinkgoHelper()
	file, err := yaml.Marshal(w.config())
	Expect(err).NotTo(HaveOccurred())
	patch, err := yaml.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "ballast-config", Namespace: w.Fleet.Namespace},
		Data:       map[string]string{"config.yaml": string(file)},
	})
	Expect(err).NotTo(HaveOccurred())
	return string(patch)
}

// patientPatch gives each webhook as long as the tests' others have: after the shipped 2 s a write passes as it is, which a busy machine
// may take for an answer. Where no webhook answers here, connections are refused, which waits for nothing.
func patientPatch() string {
	var ops []string
	for i := range webhooks {
		ops = append(ops, fmt.Sprintf(`{"op": "replace", "path": "/webhooks/%d/timeoutSeconds", "value": %d}`, i, hooked.Timeout))
	}
	return "[" + strings.Join(ops, ", ") + "]"
}

// install applies an installation, or of it the kinds that are named.
func (w *world) install(ctx context.Context, i installation, kinds ...string) {
	GinkgoHelper()
	docs := w.documents(i)
	if len(kinds) > 0 {
		docs = slices.DeleteFunc(docs, func(doc string) bool { return !slices.Contains(kinds, kindOf(doc)) })
		Expect(docs).NotTo(BeEmpty())
	}
	w.applyText(ctx, docs...)
}

func (w *world) applyText(ctx context.Context, docs ...string) {
	GinkgoHelper()
	_, _, err := w.Plane.KubectlStdin(ctx, strings.NewReader(strings.Join(docs, "\n---\n")), "", "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

func kindOf(doc string) string {
	var head metav1.TypeMeta
	Expect(yaml.Unmarshal([]byte(doc), &head)).To(Succeed())
	return head.Kind
}

func resID(kind, name string) resid.ResId { return resid.ResId{Gvk: resid.Gvk{Kind: kind}, Name: name} }

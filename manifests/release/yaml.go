package release

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// install renders what `kubectl apply -f` installs.
func install(o Options) error {
	for file, dir := range map[string]string{
		"install.yaml": "overlays/cert-manager", "install-self-signed.yaml": "overlays/self-signed",
		"install-watch.yaml": "watch",
	} {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
			filepath.Join(o.Checkout, "manifests", filepath.FromSlash(dir)))
		if err != nil {
			return fmt.Errorf("building %q: %w", dir, err)
		}
		text, err := built.AsYaml()
		if err != nil {
			return fmt.Errorf("building %q: %w", dir, err)
		}
		const image = "image: ballast:dev\n"
		if !strings.Contains(string(text), image) {
			return fmt.Errorf("building %q: no %q is in it", dir, image)
		}
		if err := o.write(file, []byte(strings.ReplaceAll(string(text), image, "image: "+o.Image+":"+o.Version+"\n"))); err != nil {
			return err
		}
	}
	return nil
}

// krew is the plugin's manifest: `kubectl ballast` is the binary under another name.
func krew(o Options, digests map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: ballast
spec:
  version: %q
  shortDescription: Keep an Argo CD fleet level
  description: |
    Says which application-controller of Argo CD owns which cluster, what each costs, who would move and why; what is missing for
    ballast (doctor), which clusters nobody reconciles (watch), and steers an installation: freeze, evacuate, rollback, uninstall.
  platforms:
`, "v"+chartVersion(o.Version))
	for _, platform := range slices.Sorted(maps.Keys(digests)) {
		system, arch, _ := strings.Cut(platform, "/")
		fmt.Fprintf(&b, `  - selector:
      matchLabels: {os: %s, arch: %s}
    uri: %s/%s
    sha256: %s
    bin: ballast
`, system, arch, strings.TrimSuffix(o.URL, "/"), o.archive(platform), digests[platform])
	}
	return b.String()
}

// Package helmchart makes the templates of manifests/chart out of the kustomize base and its components: what kustomize
// builds for marker names becomes a template by putting Helm's expressions in the place of the markers, and what a
// component changes becomes an `if` around the lines that it changes. Nothing of the chart's templates is written by
// hand but the notes and helpers.
package helmchart

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"ballast/manifests/folder"
)

// Settings are the four values that components/retarget puts everywhere.
type Settings struct {
	Namespace, Workload, PlannerAccount, WebhookAccount string
}

func (s Settings) literals() string {
	return fmt.Sprintf("  - namespace=%s\n  - workload=%s\n  - plannerServiceAccount=%s\n  - webhookServiceAccount=%s\n",
		s.Namespace, s.Workload, s.PlannerAccount, s.WebhookAccount)
}

// Object is one object that kustomize built.
type Object map[string]any

func (o Object) text(path ...string) string {
	var at any = map[string]any(o)
	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = m[key]
	}
	s, _ := at.(string)
	return s
}

// ID tells objects of one build apart.
func (o Object) ID() string {
	return o.text("apiVersion") + " " + o.text("kind") + " " + o.text("metadata", "namespace") + "/" +
		o.text("metadata", "name")
}

// Source is the folder manifests, in memory, so that a build needs no folder of its own in the checkout.
type Source struct{ files filesys.FileSystem }

const built = "/manifests/built"

// Open reads the kustomizations of the folder.
func Open(manifests string) (Source, error) {
	files := filesys.MakeFsInMemory()
	for _, name := range []string{"base", "components", "watch"} {
		read, err := folder.Read(filepath.Join(manifests, name))
		if err != nil {
			return Source{}, err
		}
		for file, text := range read {
			if err := files.WriteFile("/manifests/"+name+"/"+file, text); err != nil {
				return Source{}, fmt.Errorf("keeping %q: %w", file, err)
			}
		}
	}
	return Source{files}, nil
}

// Build runs kustomize over the base, those resources and those components, brought to the settings.
func (s Source) Build(settings Settings, resources, components []string) ([]Object, error) {
	var k strings.Builder
	k.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n")
	for _, name := range slices.Concat([]string{"base"}, resources) {
		k.WriteString("- ../" + name + "\n")
	}
	k.WriteString("configMapGenerator:\n- name: ballast-settings\n  behavior: merge\n  literals:\n" +
		settings.literals() + "components:\n")
	for _, name := range slices.Concat(components, []string{"components/retarget"}) {
		k.WriteString("- ../" + name + "\n")
	}
	if err := s.files.WriteFile(built+"/kustomization.yaml", []byte(k.String())); err != nil {
		return nil, fmt.Errorf("writing the kustomization: %w", err)
	}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(s.files, built)
	if err != nil {
		return nil, fmt.Errorf("building %q with %q: %w", resources, components, err)
	}
	var objects []Object
	for _, r := range result.Resources() {
		m, err := r.Map()
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", r.GetName(), err)
		}
		objects = append(objects, m)
	}
	return objects, nil
}

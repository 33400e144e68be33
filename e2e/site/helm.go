package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// Helm is ballast's chart as a release in Argo CD's namespace, by Helm's own command.
type Helm struct {
	Command string // as assets.BuildHelm made it
	Release string
}

// Install installs the chart from the checkout: values beside the configuration, which the chart gives its target.
func (h Helm) Install(ctx context.Context, s *Site, values, config map[string]any) error {
	dir := filepath.Join(s.Plane.Dir(), "helm")
	config = maps.Clone(config)
	for _, key := range []string{"apiVersion", "kind", "target"} {
		delete(config, key)
	}
	values = maps.Clone(values)
	values["config"] = config
	text, err := yaml.Marshal(values)
	if err != nil {
		return fmt.Errorf("marshalling the chart's values: %w", err)
	}
	file := filepath.Join(dir, "values.yaml")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(file, text, 0o644), h.writePatches(s, dir)); err != nil {
		return fmt.Errorf("writing the chart's values: %w", err)
	}
	return h.chart(ctx, s, "install", "--values="+file)
}

// Upgrade sets values of the chart, as key=value, and keeps the others.
func (h Helm) Upgrade(ctx context.Context, s *Site, set string) error {
	return h.chart(ctx, s, "upgrade", "--reuse-values", "--set="+set)
}

// Uninstall has Helm forget the release, and delete what there still is of it.
func (h Helm) Uninstall(ctx context.Context, s *Site) error {
	return h.run(ctx, s, "uninstall", h.Release)
}

func (h Helm) chart(ctx context.Context, s *Site, verb string, args ...string) error {
	manifests, err := manifests(ctx)
	if err != nil {
		return err
	}
	renderer := "--post-renderer=" + filepath.Join(s.Plane.Dir(), "helm", "patch")
	return h.run(ctx, s, append([]string{verb, h.Release, filepath.Join(manifests, "chart"), renderer}, args...)...)
}

// writePatches writes the program by which the release gets the site's patches, as an overlay would.
func (h Helm) writePatches(s *Site, dir string) error {
	kustomization, err := yaml.Marshal(types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{"rendered.yaml"}, Patches: s.Patches,
	})
	if err != nil {
		return fmt.Errorf("marshalling the kustomization: %w", err)
	}
	script := fmt.Sprintf("#!/bin/sh\ncat > %[1]s/rendered.yaml && exec %[2]s kustomize %[1]s\n", dir, s.kubectl)
	return errors.Join(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), kustomization, 0o644),
		os.WriteFile(filepath.Join(dir, "patch"), []byte(script), 0o755))
}

func (h Helm) run(ctx context.Context, s *Site, args ...string) error {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, h.Command, append(args, "--namespace="+s.Fleet.Namespace)...)
	dir := filepath.Join(s.Plane.Dir(), "helm")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Plane.KubeconfigPath(),
		"HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running helm %s: %w: %s", args[0], err, output.String())
	}
	return nil
}

package kubelet

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ballast/e2e/plane/identity"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// file is one file of a volume.
type file struct {
	data []byte
	mode fs.FileMode
}

// writeVolumes makes the container's mounts under the pod's folder. At the
// first time a missing source is an error; later it leaves what is there, as
// the kubelet does. A mount with a subPath is never refreshed, as there.
func (r *podRunner) writeVolumes(pod *corev1.Pod, c *corev1.Container, first bool) error {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("making the pod's folder: %w", err)
	}
	for _, m := range c.VolumeMounts {
		if m.SubPath != "" && !first {
			continue
		}
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			return fmt.Errorf("mounting %q: no volume %q", m.MountPath, m.Name)
		}
		files, err := r.content(pod.Namespace, &pod.Spec.Volumes[i])
		if err != nil && !first {
			continue
		}
		if err != nil {
			return fmt.Errorf("mounting %q: %w", m.MountPath, err)
		}
		if err := r.writeMount(m, files); err != nil {
			return fmt.Errorf("mounting %q: %w", m.MountPath, err)
		}
	}
	return nil
}

func (r *podRunner) writeMount(m corev1.VolumeMount, files map[string]file) error {
	path := filepath.Join(r.dir, m.MountPath)
	if f, ok := files[m.SubPath]; ok && m.SubPath != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return identity.ReplaceFile(path, f.data, f.mode)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	sum := digest(files)
	if files == nil || r.volumes[path] == sum {
		return nil
	}
	if err := swapFiles(path, files); err != nil {
		return err
	}
	r.volumes[path] = sum
	return nil
}

// content is what a volume holds; nil for those that begin empty. The token of
// a projected volume is left out: nothing can read it at its fixed path here,
// and the process has a kubeconfig.
func (r *podRunner) content(namespace string, v *corev1.Volume) (map[string]file, error) {
	switch {
	case v.Secret != nil:
		data, err := r.secret(namespace, v.Secret.SecretName, v.Secret.Optional)
		return project(data, v.Secret.Items, v.Secret.DefaultMode), err
	case v.ConfigMap != nil:
		data, err := r.configMap(namespace, v.ConfigMap.Name, v.ConfigMap.Optional)
		return project(data, v.ConfigMap.Items, v.ConfigMap.DefaultMode), err
	case v.Projected != nil:
		return r.projected(namespace, v.Projected)
	}
	return nil, nil
}

func (r *podRunner) projected(namespace string, p *corev1.ProjectedVolumeSource) (map[string]file, error) {
	files := map[string]file{}
	for _, s := range p.Sources {
		switch {
		case s.Secret != nil:
			data, err := r.secret(namespace, s.Secret.Name, s.Secret.Optional)
			if err != nil {
				return nil, err
			}
			maps.Copy(files, project(data, s.Secret.Items, p.DefaultMode))
		case s.ConfigMap != nil:
			data, err := r.configMap(namespace, s.ConfigMap.Name, s.ConfigMap.Optional)
			if err != nil {
				return nil, err
			}
			maps.Copy(files, project(data, s.ConfigMap.Items, p.DefaultMode))
		}
	}
	return files, nil
}

// project picks and renames the items, all keys if none are named.
func project(data map[string][]byte, items []corev1.KeyToPath, mode *int32) map[string]file {
	files := make(map[string]file, len(data))
	for key, value := range data {
		if len(items) == 0 {
			files[key] = file{data: value, mode: fs.FileMode(ptr.Deref(mode, 0o644))}
		}
	}
	for _, item := range items {
		if value, ok := data[item.Key]; ok {
			files[item.Path] = file{data: value, mode: fs.FileMode(ptr.Deref(item.Mode, ptr.Deref(mode, 0o644)))}
		}
	}
	return files
}

func digest(files map[string]file) string {
	h := sha256.New()
	for _, name := range sortedKeys(files) {
		fmt.Fprintf(h, "%q %o %d\n", name, files[name].mode, len(files[name].data))
		h.Write(files[name].data)
	}
	return string(h.Sum(nil))
}

// swapFiles replaces all files of a volume at once, by the kubelet's layout: a
// folder a version, the link ..data to the present one, and a link a file. What
// watches a mounted certificate relies on it.
func swapFiles(dir string, files map[string]file) error {
	version, err := os.MkdirTemp(dir, "..version-")
	if err != nil {
		return err
	}
	if err := os.Chmod(version, 0o755); err != nil {
		return err
	}
	for _, name := range sortedKeys(files) {
		path := filepath.Join(version, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name].data, files[name].mode); err != nil {
			return err
		}
	}
	data := filepath.Join(dir, "..data")
	old, _ := os.Readlink(data) // none at the first time
	if err := relink(filepath.Base(version), data); err != nil {
		return err
	}
	if err := linkFiles(dir, files); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, old))
}

// relink makes the link point elsewhere in one step.
func relink(target, link string) error {
	next := link + "_tmp"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	return os.Rename(next, link)
}

// linkFiles makes the links that are missing and removes those whose file is
// gone. A path of several parts is linked by its first.
func linkFiles(dir string, files map[string]file) error {
	want := map[string]bool{}
	for name := range files {
		want[firstPart(name)] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 && e.Name() != "..data" && !want[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for _, name := range sortedKeys(want) {
		link := filepath.Join(dir, name)
		if _, err := os.Lstat(link); err == nil {
			continue
		}
		if err := os.Symlink(filepath.Join("..data", name), link); err != nil {
			return err
		}
	}
	return nil
}

func firstPart(path string) string {
	for i := range len(path) {
		if path[i] == filepath.Separator {
			return path[:i]
		}
	}
	return path
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

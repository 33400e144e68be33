package kubelet

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// variables are a container's environment in the order of their definition; a
// later one of the same name wins.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if _, ok := v.values[name]; !ok {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *variables) list() []string {
	list := make([]string, 0, len(v.names))
	for _, name := range v.names {
		list = append(list, name+"="+v.values[name])
	}
	return list
}

// expand replaces $(NAME) where NAME is defined, and $$ by $: the syntax of a
// container's args and env.
func (v *variables) expand(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		if s[i+1] == '$' {
			b.WriteByte('$')
			i++
			continue
		}
		end := strings.IndexByte(s[i:], ')')
		if s[i+1] != '(' || end < 0 {
			b.WriteByte('$')
			continue
		}
		value, ok := v.values[s[i+2:i+end]]
		if !ok {
			value = s[i : i+end+1]
		}
		b.WriteString(value)
		i += end
	}
	return b.String()
}

// environment resolves envFrom and env. Paths under a mount become the real
// ones, and status.podIP the loopback address that the process listens on.
func (r *podRunner) environment(pod *corev1.Pod, c *corev1.Container, address string) (*variables, error) {
	v := &variables{values: map[string]string{}}
	for _, from := range c.EnvFrom {
		data, err := r.envFrom(pod.Namespace, from)
		if err != nil {
			return nil, err
		}
		for _, key := range sortedKeys(data) {
			v.set(from.Prefix+key, data[key])
		}
	}
	for _, e := range c.Env {
		value, found, err := r.envValue(pod, c, e, address)
		if err != nil {
			return nil, fmt.Errorf("resolving variable %q: %w", e.Name, err)
		}
		if found {
			v.set(e.Name, r.rewrite(c, v.expand(value)))
		}
	}
	return v, nil
}

func (r *podRunner) envFrom(namespace string, from corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case from.ConfigMapRef != nil:
		files, err := r.configMap(namespace, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		return texts(files), err
	case from.SecretRef != nil:
		files, err := r.secret(namespace, from.SecretRef.Name, from.SecretRef.Optional)
		return texts(files), err
	}
	return nil, nil
}

func texts(files map[string][]byte) map[string]string {
	data := make(map[string]string, len(files))
	for k, v := range files {
		data[k] = string(v)
	}
	return data
}

// envValue tells with found whether an optional source was there.
func (r *podRunner) envValue(pod *corev1.Pod, c *corev1.Container, e corev1.EnvVar, address string) (value string, found bool, err error) {
	from := e.ValueFrom
	switch {
	case from == nil:
		return e.Value, true, nil
	case from.FieldRef != nil:
		value, err = fieldValue(pod, from.FieldRef.FieldPath, address)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = resourceValue(c, from.ResourceFieldRef)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		files, err := r.configMap(pod.Namespace, ref.Name, ref.Optional)
		return pick(files, ref.Key, ref.Optional, err)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		files, err := r.secret(pod.Namespace, ref.Name, ref.Optional)
		return pick(files, ref.Key, ref.Optional, err)
	}
	return "", false, nil
}

func pick(files map[string][]byte, key string, optional *bool, err error) (string, bool, error) {
	if err != nil {
		return "", false, err
	}
	value, ok := files[key]
	if !ok && !ptr.Deref(optional, false) {
		return "", false, fmt.Errorf("finding key %q: there is none", key)
	}
	return string(value), ok, nil
}

func fieldValue(pod *corev1.Pod, path, address string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return pod.Status.HostIP, nil
	case "status.podIP", "status.podIPs":
		return address, nil
	}
	for prefix, values := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			return values[strings.TrimSuffix(rest, "']")], nil
		}
	}
	return "", fmt.Errorf("reading field %q: it is not known here", path)
}

// resourceValue is a limit or request in units of the divisor, rounded up. An
// unset limit is the node's size, as in the kubelet.
func resourceValue(c *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := map[string]corev1.ResourceList{"limits": c.Resources.Limits, "requests": c.Resources.Requests}[kind]
	q, ok := list[corev1.ResourceName(name)]
	if !ok && kind == "limits" {
		q, ok = nodeSize[corev1.ResourceName(name)]
	}
	if !ok && kind != "requests" {
		return "", fmt.Errorf("reading resource %q: it is not known here", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	return strconv.FormatInt(int64(math.Ceil(q.AsApproximateFloat64()/divisor.AsApproximateFloat64())), 10), nil
}

// nodeSize is what stages.yaml gives each node.
var nodeSize = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("64"),
	corev1.ResourceMemory: resource.MustParse("256Gi"),
}

// arguments are the command's words after the first, which is the binary, and
// the args.
func (r *podRunner) arguments(c *corev1.Container, env *variables) []string {
	words := slices.Concat(c.Command[min(1, len(c.Command)):], c.Args)
	for i, w := range words {
		words[i] = r.rewrite(c, env.expand(w))
	}
	return words
}

// rewrite puts the pod's folder before every path that lies on a mount. A mount
// counts only as a whole path: /etc/ballast does not match in /etc/ballast2
// nor in /my/etc/ballast.
func (r *podRunner) rewrite(c *corev1.Container, s string) string {
	mounts := slices.Clone(c.VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return cmp.Compare(len(b.MountPath), len(a.MountPath)) })
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 0
		if i == 0 || !pathByte(s[i-1]) {
			n = mountAt(mounts, s[i:])
		}
		if n == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(filepath.Join(r.dir, s[i:i+n]))
		i += n
	}
	return b.String()
}

// mountAt is the length of the mount path that the text begins with, 0 if none.
func mountAt(mounts []corev1.VolumeMount, s string) int {
	for _, m := range mounts {
		path := strings.TrimSuffix(m.MountPath, "/")
		rest, ok := strings.CutPrefix(s, path)
		if ok && path != "" && (rest == "" || rest[0] == '/' || !pathByte(rest[0])) {
			return len(path)
		}
	}
	return 0
}

func pathByte(c byte) bool {
	return c == '/' || c == '.' || c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c &&
		c <= 'Z'
}

// configMap is a ConfigMap's content; nothing if it is optional and absent.
func (r *podRunner) configMap(namespace, name string, optional *bool) (map[string][]byte, error) {
	m, err := r.kubelet.configMaps.ConfigMaps(namespace).Get(name)
	if err != nil {
		return nil, missing(err, "config map", name, optional)
	}
	files := make(map[string][]byte, len(m.Data)+len(m.BinaryData))
	for k, v := range m.Data {
		files[k] = []byte(v)
	}
	for k, v := range m.BinaryData {
		files[k] = v
	}
	return files, nil
}

func (r *podRunner) secret(namespace, name string, optional *bool) (map[string][]byte, error) {
	s, err := r.kubelet.secrets.Secrets(namespace).Get(name)
	if err != nil {
		return nil, missing(err, "secret", name, optional)
	}
	return s.Data, nil
}

func missing(err error, kind, name string, optional *bool) error {
	if apierrors.IsNotFound(err) && ptr.Deref(optional, false) {
		return nil
	}
	return fmt.Errorf("getting %s %q: %w", kind, name, err)
}

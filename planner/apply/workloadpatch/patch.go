// Package workloadpatch says what to write to the workload so that it is as a step wants it, and nothing else of it.
package workloadpatch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/diff"
	"ballast/planner/patchable"
	"ballast/planner/plan"
)

// restartedAtAnnotation is what `kubectl rollout restart` writes into a pod template.
const restartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

// Op is an operation of a JSON patch (RFC 6902).
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Workload is the part of a StatefulSet or Deployment that a step touches.
type Workload struct {
	metav1.ObjectMeta
	Replicas *int32
	Template corev1.PodTemplateSpec
	Object   client.Object // all of it
	Status   any
}

// Ops are the operations that bring the workload to the step, in place and in the env's own order; none where
// it is there already. They hold for the very spec that was read: its generation is tested first.
func (w Workload) Ops(container string, s diff.PatchWorkload) ([]Op, error) {
	var ops []Op
	if s.Replicas != nil && (w.Replicas == nil || int(*w.Replicas) != *s.Replicas) {
		ops = append(ops, Op{"add", "/spec/replicas", *s.Replicas})
	}
	sized := len(s.Resources.Requests)+len(s.Resources.Limits) > 0
	if s.ControllerReplicas != nil || sized {
		index := slices.IndexFunc(w.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
		comesBack := len(ops) > 0 && ptr.Deref(w.Replicas, 1) == 0
		if index < 0 && !comesBack {
			return nil, fmt.Errorf("finding container %q in the workload's pod template: there is none", container)
		}
		if index >= 0 { // else a fleet at 0 comes back, whatever somebody made of the template; any other number goes with its env
			ops = append(ops, containerOps(w.Template.Spec.Containers[index], index, s)...)
		}
	}
	if s.RestartedAt != "" && w.Template.Annotations[restartedAtAnnotation] != s.RestartedAt {
		ops = append(ops, annotationOp(w.Template.Annotations, s.RestartedAt))
	}
	if len(ops) == 0 {
		return nil, nil
	}
	if few := patchable.FewManagers(w.ManagedFields); few != nil {
		ops = append(ops, Op{"replace", "/metadata/managedFields", few})
	}
	ops = append(ops, mendedTimes(w)...)
	return append([]Op{{"test", "/metadata/uid", w.UID}, {"test", "/metadata/generation", w.Generation}}, ops...), nil
}

// Merge is the strategic merge patch that does the same, for a workload that holds what is no text: a JSON patch would
// change that, too, which is not the planner's to do. Several entries of the env become one.
func (w Workload) Merge(container string, s diff.PatchWorkload) map[string]any {
	meta := map[string]any{"uid": w.UID, "resourceVersion": w.ResourceVersion}
	if few := patchable.FewManagers(w.ManagedFields); few != nil {
		meta["managedFields"] = few
	}
	podMeta, spec := map[string]any{}, map[string]any{}
	patch := map[string]any{"metadata": meta, "spec": spec}
	if s.Replicas != nil {
		spec["replicas"] = *s.Replicas
	}
	if s.RestartedAt != "" {
		podMeta["annotations"] = map[string]string{restartedAtAnnotation: s.RestartedAt}
	}
	for _, o := range mendedTimes(w) {
		if field, of := strings.CutPrefix(o.Path, "/spec/template/metadata/"); of {
			podMeta[field] = nil
		} else {
			patch["status"] = nil
		}
	}
	template := map[string]any{"metadata": podMeta}
	if at := slices.IndexFunc(w.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == container }); at >= 0 {
		its := map[string]any{"name": container, "resources": s.Resources}
		if s.ControllerReplicas != nil {
			its["env"] = envPatch(w.Template.Spec.Containers[at].Env, strconv.Itoa(*s.ControllerReplicas))
		}
		template["spec"] = map[string]any{"containers": []any{its}}
	}
	spec["template"] = template
	return patch
}

// envPatch gives the variable its value; a strategic merge patch knows the first of several entries alone.
func envPatch(stands []corev1.EnvVar, value string) []map[string]any {
	entry := map[string]any{"name": plan.EnvReplicas, "value": value, "valueFrom": nil}
	several := 0
	for _, e := range stands {
		if e.Name == plan.EnvReplicas {
			several++
		}
	}
	if several < 2 {
		return []map[string]any{entry}
	}
	return []map[string]any{{"$patch": "delete", "name": plan.EnvReplicas}, {"name": plan.EnvReplicas, "value": value}}
}

// containerOps are those of the container at a place.
func containerOps(c corev1.Container, index int, s diff.PatchWorkload) (ops []Op) {
	path := "/spec/template/spec/containers/" + strconv.Itoa(index)
	if s.ControllerReplicas != nil {
		ops = append(ops, envOps(c, path+"/env", strconv.Itoa(*s.ControllerReplicas))...)
	}
	return append(ops, resourceOps(c, path+"/resources", s.Resources)...)
}

// mendedTimes take out what holds a time that JSON does not have, in the status, which no such patch changes, and in
// what nobody needs of the template's metadata: the API server stores it for whoever brings it, and reads no patch of
// what has it.
func mendedTimes(w Workload) []Op {
	var ops []Op
	if patchable.HoldsBeyondJSON(w.Status) {
		ops = append(ops, Op{"add", "/status", struct{}{}})
	}
	m := &w.Template.ObjectMeta
	for _, field := range []struct {
		name string
		part any
	}{{"creationTimestamp", m.CreationTimestamp}, {"deletionTimestamp", m.DeletionTimestamp},
		{"managedFields", m.ManagedFields}} {
		if patchable.HoldsBeyondJSON(field.part) {
			ops = append(ops, Op{"add", "/spec/template/metadata/" + field.name, nil})
		}
	}
	return ops
}

// resourceOps write what a container is to ask for, and leave what else it asks for. The API server writes resources
// whether or not there are any.
func resourceOps(c corev1.Container, path string, want plan.Resources) []Op {
	var ops []Op
	for _, section := range []struct {
		name   string
		stands corev1.ResourceList
		values map[string]string
	}{{"limits", c.Resources.Limits, want.Limits}, {"requests", c.Resources.Requests, want.Requests}} {
		lacks := Unlike(section.stands, section.values)
		switch {
		case len(lacks) == 0:
		case len(section.stands) == 0:
			ops = append(ops, Op{"add", path + "/" + section.name, lacks})
		default:
			for _, name := range slices.Sorted(maps.Keys(lacks)) {
				ops = append(ops, Op{"add", path + "/" + section.name + "/" + patchable.Pointer(name), lacks[name]})
			}
		}
	}
	return ops
}

// Unlike is what of these quantities stands otherwise, or not at all.
func Unlike(stands corev1.ResourceList, want map[string]string) map[string]string {
	lacks := map[string]string{}
	for name, text := range want {
		has, there := stands[corev1.ResourceName(name)]
		q, err := plan.ReadQuantity(text)
		if !there || err != nil || has.Cmp(q) != 0 {
			lacks[name] = text
		}
	}
	return lacks
}

// envOps write the value into the entries that are there. A second entry of the name would break server-side apply
// (argo-helm#3732), and so would a new order.
func envOps(c corev1.Container, path, value string) []Op {
	entry := map[string]string{"name": plan.EnvReplicas, "value": value}
	var ops []Op
	found := false
	for i, e := range c.Env {
		if e.Name != plan.EnvReplicas {
			continue
		}
		found = true
		if e.ValueFrom != nil || e.Value != value {
			ops = append(ops, Op{"replace", path + "/" + strconv.Itoa(i), entry})
		}
	}
	switch {
	case found:
		return ops
	case len(c.Env) == 0:
		return []Op{{"add", path, []map[string]string{entry}}}
	}
	return []Op{{"add", path + "/-", entry}}
}

func annotationOp(annotations map[string]string, restartedAt string) Op {
	if len(annotations) == 0 {
		return Op{"add", "/spec/template/metadata/annotations", map[string]string{restartedAtAnnotation: restartedAt}}
	}
	return Op{"add", "/spec/template/metadata/annotations/" + patchable.Pointer(restartedAtAnnotation), restartedAt}
}

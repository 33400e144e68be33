package look

import (
	corev1 "k8s.io/api/core/v1"

	"slices"

	"ballast/planner/discover/workload"
	"ballast/planner/ownership/podlist"
	"ballast/planner/plan/podspec"
)

// PodTemplate is the workload's.
type PodTemplate struct {
	Spec corev1.PodSpec
	At   int // of the application-controller's container
}

// TemplateOf is a pod template whose controller's container has that name, else stands out as one; nil: none does.
func TemplateOf(spec corev1.PodSpec, container string) *PodTemplate {
	at := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if at < 0 {
		var err error
		if at, err = workload.FindContainer(spec.Containers); err != nil {
			return nil
		}
	}
	return &PodTemplate{Spec: spec, At: at}
}

// Controller is the container of the application-controller.
func (t PodTemplate) Controller() *corev1.Container { return &t.Spec.Containers[t.At] }

// Restarts are the resources whose change restarts the controller's container, as the template asks for.
func (t PodTemplate) Restarts() (names []string) {
	for _, p := range t.Controller().ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer {
			names = append(names, string(p.ResourceName))
		}
	}
	return names
}

// Size is what a pod of the template asks for.
func (t PodTemplate) Size() podspec.Size {
	return podlist.PodSize(&corev1.Pod{Spec: t.Spec}, t.Controller())
}

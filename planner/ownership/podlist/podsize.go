package podlist

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/printable"
)

// mostMessage is how much of a node's words is kept, in characters.
const mostMessage = 200

// sizeOf is how large a pod is, whose controller's container is that one; nil of a pod that is being deleted. What is
// kept of it is bounded, whatever somebody gave the pod.
func sizeOf(p *corev1.Pod, controller *corev1.Container) *observed.Size {
	if p.DeletionTimestamp != nil {
		return nil
	}
	s := &observed.Size{Asks: PodSize(p, controller), Unmanaged: p.Annotations[plan.AnnotationUnmanaged] == "true"}
	for _, policy := range controller.ResizePolicy {
		name := string(policy.ResourceName)
		if policy.RestartPolicy == corev1.RestartContainer && sized(name) && !slices.Contains(s.Restarts, name) {
			s.Restarts = append(s.Restarts, name)
		}
	}
	for i := range p.Status.ContainerStatuses {
		status := &p.Status.ContainerStatuses[i]
		if status.Name != controller.Name {
			continue
		}
		if r := status.Resources; r != nil {
			s.Has = plan.Resources{Requests: texts(r.Requests), Limits: texts(r.Limits)}
		}
		s.Allocated = texts(status.AllocatedResources)
	}
	for i := range p.Status.Conditions {
		readResize(s, &p.Status.Conditions[i])
	}
	return s
}

// readResize takes over what a condition says of a change. One that waits goes before one that the node is at.
func readResize(s *observed.Size, c *corev1.PodCondition) {
	if c.Status != corev1.ConditionTrue {
		return
	}
	var is observed.Resize
	switch {
	case c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible:
		is = observed.ResizeInfeasible
	case c.Type == corev1.PodResizePending:
		is = observed.ResizeDeferred
	case c.Type != corev1.PodResizeInProgress || s.Resize == observed.ResizeDeferred || s.Resize == observed.ResizeInfeasible:
		return
	case c.Reason == corev1.PodReasonError:
		is = observed.ResizeFailed
	default:
		is = observed.ResizeInProgress
	}
	s.Resize, s.Message, s.Since = is, printable.Text(c.Message, mostMessage), plan.WithinJSON(c.LastTransitionTime.Time)
}

// PodSize is what a pod asks for, whose controller's container is that one.
func PodSize(p *corev1.Pod, controller *corev1.Container) plan.PodSize {
	var own plan.Resources
	var others []plan.Resources
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			c := &list[i]
			asks := plan.Resources{Requests: texts(c.Resources.Requests), Limits: texts(c.Resources.Limits)}
			if c == controller {
				own = asks
				continue
			}
			others = append(others, asks)
		}
	}
	whole := p.Spec.Resources != nil && len(p.Spec.Resources.Requests)+len(p.Spec.Resources.Limits) > 0
	return plan.NewPodSize(own, others, whole)
}

// texts are the quantities of what changes without a restart, as Kubernetes writes them.
func texts(list corev1.ResourceList) map[string]string {
	var m map[string]string
	for name, q := range list {
		if !sized(string(name)) {
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[string(name)] = q.String()
	}
	return m
}

func sized(name string) bool {
	return name == string(corev1.ResourceCPU) || name == string(corev1.ResourceMemory)
}

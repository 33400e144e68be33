package podlist

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The memory limit is what the node has given the container, and where it does not tell what the pod asks for.
func TestTheMemoryLimitIsWhatTheNodeGave(t *testing.T) {
	limits := func(memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	}
	spec := &corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Limits: limits("4Gi")}}
	for name, test := range map[string]struct {
		status corev1.ContainerStatus
		want   int64
	}{
		"a raise that waits":   {corev1.ContainerStatus{Name: "c", Resources: &corev1.ResourceRequirements{Limits: limits("2Gi")}}, 2 << 30},
		"a lie":                {corev1.ContainerStatus{Name: "c", Resources: &corev1.ResourceRequirements{Limits: limits("1Pi")}}, 4 << 30},
		"more than a number":   {corev1.ContainerStatus{Name: "c", Resources: &corev1.ResourceRequirements{Limits: limits("1e20")}}, 4 << 30},
		"more in its suffix":   {corev1.ContainerStatus{Name: "c", Resources: &corev1.ResourceRequirements{Limits: limits("10E")}}, 4 << 30},
		"none, which is a lie": {corev1.ContainerStatus{Name: "c", Resources: &corev1.ResourceRequirements{Limits: limits("0")}}, 4 << 30},
		"less than none":       {corev1.ContainerStatus{Name: "c", Resources: &corev1.ResourceRequirements{Limits: limits("-1")}}, 4 << 30},
		"a node of before":     {corev1.ContainerStatus{Name: "c"}, 4 << 30},
		"no limit is told":     {corev1.ContainerStatus{Name: "c", Resources: &corev1.ResourceRequirements{}}, 4 << 30},
		"another container's":  {corev1.ContainerStatus{Name: "d", Resources: &corev1.ResourceRequirements{Limits: limits("2Gi")}}, 4 << 30},
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{test.status}}}
		if got := memoryLimit(p, spec); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	if got := memoryLimit(&corev1.Pod{}, &corev1.Container{Name: "c"}); got != 0 {
		t.Errorf("without a limit: %d", got)
	}
}

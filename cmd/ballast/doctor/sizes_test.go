package doctor

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"ballast/cmd/ballast/doctor/look"
	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/plan"
)

// sized gives every replica memory by its clusters.
func sized(s *look.Seen) {
	s.In.Config.Size = config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
		{List: config.Requests, Resource: "memory", Base: "1Gi", Slope: "256Mi", Input: config.InputClusters}}}}}
}

// guaranteed has pods whose class of service is Guaranteed.
func guaranteed(s *look.Seen) {
	sized(s)
	s.Pods.Spec.Containers[0].Resources.Limits = list("cpu", "1", "memory", "1Gi")
	same := list("cpu", "1", "memory", "1Gi")
	s.Pods.Controller().Resources = corev1.ResourceRequirements{Requests: same, Limits: same}
	of := map[string]string{"cpu": "1", "memory": "1Gi"}
	s.In.Workload.Resources = &plan.Resources{Requests: of, Limits: of}
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// Whatever keeps running pods from their size in place is a line with its mend, and so is that nothing does.
func TestWhatIsInTheWayOfSizesIsSaid(t *testing.T) {
	restarts := func(name corev1.ResourceName) corev1.ContainerResizePolicy {
		return corev1.ContainerResizePolicy{ResourceName: name, RestartPolicy: corev1.RestartContainer}
	}
	var said strings.Builder
	cases := map[string]func(*look.Seen){
		"no policies":                nil,
		"in place":                   sized,
		"by the template":            func(s *look.Seen) { sized(s); s.In.Config.Size.Apply, s.Resizes = config.Template, ptr.To(false) },
		"an older API server":        func(s *look.Seen) { sized(s); s.Kubernetes, s.Resizes = "v1.32.4", ptr.To(false) },
		"an API server that is mute": func(s *look.Seen) { sized(s); s.Resizes = nil },
		"no container":               func(s *look.Seen) { sized(s); s.Pods = nil },
		"restarts for memory": func(s *look.Seen) {
			sized(s)
			s.Pods.Controller().ResizePolicy = []corev1.ContainerResizePolicy{restarts("cpu"), restarts("memory")}
		},
		"restarts for cpu, which no policy names": func(s *look.Seen) {
			sized(s)
			s.Pods.Controller().ResizePolicy = []corev1.ContainerResizePolicy{restarts("cpu"),
				{ResourceName: "memory", RestartPolicy: corev1.NotRequired}}
		},
		"guaranteed": guaranteed,
		"no longer guaranteed": func(s *look.Seen) {
			guaranteed(s)
			s.In.Config.Size.Policies[0].Rules = append(s.In.Config.Size.Policies[0].Rules,
				config.SizeRule{List: config.Limits, Resource: "memory", Base: "4Gi"})
		},
		"best effort": func(s *look.Seen) {
			sized(s)
			s.Pods.Controller().Resources = corev1.ResourceRequirements{}
		},
		"resources of the pod as a whole": func(s *look.Seen) {
			sized(s)
			s.Pods.Spec.Resources = &corev1.ResourceRequirements{Limits: list("memory", "8Gi")}
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		s := healthy(t)
		if change := cases[name]; change != nil {
			change(s)
		}
		examined(s)
		all := checkSizes(s)
		for i := range all {
			all[i].Check = "sizes"
		}
		table, _ := fixture.Printed(t, report{Findings: all})
		said.WriteString("# " + name + "\n" + table + "\n")
	}
	fixture.Golden(t, "sizes", said.String())
}

package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/discover/workload"
	"ballast/planner/ownership/podlist"
	"ballast/planner/plan/podspec"
)

// podTemplate is the workload's.
type podTemplate struct {
	spec corev1.PodSpec
	at   int // of the application-controller's container
}

// templateOf is a pod template whose controller's container has that name, else stands out as one; nil: none does.
func templateOf(spec corev1.PodSpec, container string) *podTemplate {
	at := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if at < 0 {
		var err error
		if at, err = workload.FindContainer(spec.Containers); err != nil {
			return nil
		}
	}
	return &podTemplate{spec, at}
}

func (t podTemplate) controller() *corev1.Container { return &t.spec.Containers[t.at] }

// restarts are the resources whose change restarts the controller's container, as the template asks for.
func (t podTemplate) restarts() (names []string) {
	for _, p := range t.controller().ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer {
			names = append(names, string(p.ResourceName))
		}
	}
	return names
}

// size is what a pod of the template asks for.
func (t podTemplate) size() podspec.Size {
	return podlist.PodSize(&corev1.Pod{Spec: t.spec}, t.controller())
}

// hasResize is whether the API server has pods/resize; nil where that could not be seen.
func hasResize(d discovery.DiscoveryInterface, s *seen) *bool {
	list, err := d.ServerResourcesForGroupVersion("v1")
	if s.couldNot("what the API server has of pods", err) {
		return nil
	}
	has := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" })
	return &has
}

// checkSizes tells what would keep running pods from getting their size in place.
func (s *seen) checkSizes() (all []Finding) {
	conf := s.in.Config.Size
	switch {
	case len(conf.All()) == 0:
		return ok("size.policies has none, so sizes are as people write them")
	case conf.Apply == config.Template:
		return ok("size.apply: template: the pod template holds one size for all, and every pod restarts for another one")
	case s.resizes == nil:
		return unknown("whether the API server resizes running pods is not known", "see that it is Kubernetes 1.33 or later")
	case !*s.resizes:
		return warn(fmt.Sprintf("%s has no pods/resize: a running pod keeps its size, and has its own once it is made anew", s.kubernetes),
			"size: {apply: template}, or upgrade Kubernetes to 1.33 or later")
	case s.pods == nil:
		return unknown("the pod template shows no container of the application-controller", "target: {container: NAME} in the configuration")
	}
	named := map[string]bool{}
	for _, rule := range conf.Merged() {
		named[rule.Resource] = true
	}
	for _, name := range s.pods.restarts() {
		if named[name] {
			all = append(all, Finding{Result: Warning,
				Message: fmt.Sprintf("the pod template's resizePolicy restarts the container to change its %s, "+
					"so running pods keep what they have", name),
				Mend: fmt.Sprintf("take resourceName: %s out of its resizePolicy, or set restartPolicy: NotRequired", name)})
		}
	}
	if all = append(all, s.misfits()...); len(all) == 0 {
		return ok("running pods are resized in place: nothing of the pod template is in the way")
	}
	return all
}

// misfits are the sizes that a pod of the template cannot have while it runs, a line for each reason.
func (s *seen) misfits() (all []Finding) {
	if s.out.Sizing == nil {
		return nil
	}
	replicas, asks := map[string]int{}, s.pods.size()
	var order []string
	for _, r := range s.out.Sizing.Replicas {
		why := asks.Misfit(r.Wanted)
		if replicas[why]++; why != "" && replicas[why] == 1 {
			order = append(order, why)
		}
	}
	for _, why := range order {
		said, mend, _ := strings.Cut(why, ": ")
		all = append(all, Finding{Result: Warning, Mend: mend, Message: fmt.Sprintf(
			"while they run, pods of %s cannot have the size that the policies make: %s", say.Plural(replicas[why], "replica"), said)})
	}
	return all
}

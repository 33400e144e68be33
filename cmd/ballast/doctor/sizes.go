package doctor

import (
	"fmt"
	"strings"

	"ballast/cmd/ballast/doctor/finding"
	"ballast/cmd/ballast/doctor/look"
	"ballast/cmd/ballast/say"
	"ballast/planner/config"
)

// checkSizes tells what would keep running pods from getting their size in place.
func checkSizes(s *look.Seen) (all []finding.Finding) {
	conf := s.In.Config.Size
	switch {
	case len(conf.All()) == 0:
		return finding.Well("size.policies has none, so sizes are as people write them")
	case conf.Apply == config.Template:
		return finding.Well("size.apply: template: the pod template holds one size for all, and every pod restarts for another one")
	case s.Resizes == nil:
		return finding.Unknown.With("whether the API server resizes running pods is not known",
			"see that it is Kubernetes 1.33 or later")
	case !*s.Resizes:
		return finding.Warning.With(fmt.Sprintf("%s has no pods/resize: "+
			"a running pod keeps its size, and has its own once it is made anew", s.Kubernetes),
			"size: {apply: template}, or upgrade Kubernetes to 1.33 or later")
	case s.Pods == nil:
		return finding.Unknown.With("the pod template shows no container of the application-controller",
			"target: {container: NAME} in the configuration")
	}
	named := map[string]bool{}
	for _, rule := range conf.Merged() {
		named[rule.Resource] = true
	}
	for _, name := range s.Pods.Restarts() {
		if named[name] {
			all = append(all, finding.Warning.With(fmt.Sprintf("the pod template's resizePolicy restarts the container to change its %s, "+
				"so running pods keep what they have", name),
				fmt.Sprintf("take resourceName: %s out of its resizePolicy, or set restartPolicy: NotRequired",
					name))...)
		}
	}
	if all = append(all, misfits(s)...); len(all) == 0 {
		return finding.Well("running pods are resized in place: nothing of the pod template is in the way")
	}
	return all
}

// misfits are the sizes that a pod of the template cannot have while it runs, a line for each reason.
func misfits(s *look.Seen) (all []finding.Finding) {
	if s.Out.Sizing == nil {
		return nil
	}
	replicas, asks := map[string]int{}, s.Pods.Size()
	var order []string
	for _, r := range s.Out.Sizing.Replicas {
		why := asks.Misfit(r.Wanted)
		if replicas[why]++; why != "" && replicas[why] == 1 {
			order = append(order, why)
		}
	}
	for _, why := range order {
		said, mend, _ := strings.Cut(why, ": ")
		all = append(all, finding.Warning.With(fmt.Sprintf(
			"while they run, pods of %s cannot have the size that the policies make: %s",
			say.Plural(replicas[why], "replica"), said),
			mend)...)
	}
	return all
}

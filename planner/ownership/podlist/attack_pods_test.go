package podlist

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
)

// TestAPodThatNamesTheOwnerIsNone: whoever makes or patches a pod writes its ownerReferences, and the StatefulSet's controller
// leaves one alone whose name is none of its own. It must not stand for a replica: as a ready one it would keep a dead
// replica's clusters there, as one that is not it would keep a fleet stopped, and what it says of clusters is nobody's word.
func TestAPodThatNamesTheOwnerIsNone(t *testing.T) {
	named := func(name string) *corev1.Pod {
		p := newPod(controllerName + "-0")
		p.Name = name
		return p
	}
	for name, test := range map[string]struct {
		of   plan.Target
		pods []*corev1.Pod
		want []string
	}{
		"the StatefulSet's":      {target(plan.StatefulSet), []*corev1.Pod{named(controllerName + "-0"), named(controllerName + "-12")}, []string{controllerName + "-0", controllerName + "-12"}},
		"another name's":         {target(plan.StatefulSet), []*corev1.Pod{named("x-0"), named("0"), named("-0")}, nil},
		"a longer name's":        {target(plan.StatefulSet), []*corev1.Pod{named(controllerName + "-x-0"), named("x-" + controllerName + "-0")}, nil},
		"one with leading zeros": {target(plan.StatefulSet), []*corev1.Pod{named(controllerName + "-00")}, nil},
		"one beyond any number":  {target(plan.StatefulSet), []*corev1.Pod{named(controllerName + "-9223372036854775807"), named(controllerName + "-2147483647")}, nil},
		"the ReplicaSet's":       {target(plan.Deployment), []*corev1.Pod{newPod(controllerName + "-5b7cf-abcde")}, []string{controllerName + "-5b7cf-abcde"}},
		"another's ReplicaSet":   {target(plan.Deployment), []*corev1.Pod{newPod(controllerName+"-5b7cf-abcde", func(p *corev1.Pod) { p.Name = "x-abcde" })}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range test.pods {
				for _, seen := range list(t, test.of, p).Pods {
					got = append(got, seen.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

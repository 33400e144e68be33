package podlist

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func TestAPodsSizeIsRead(t *testing.T) {
	resize := func(kind corev1.PodConditionType, reason, message string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(noon())}
	}
	with := func(conditions ...corev1.PodCondition) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[1].Resources.Requests = quantities("cpu", "1")
			p.Status.Conditions = append(p.Status.Conditions, conditions...)
		}
	}
	one := podspec.Size{Controller: plan.Resources{Requests: map[string]string{"cpu": "1"}}, Others: []plan.Resources{{}}}
	after := func(is observed.Resize, words string) *observed.Size {
		return &observed.Size{Asks: one, Resize: is, Message: words, Since: noon()}
	}
	long := strings.Repeat("a", 300)
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   *observed.Size
	}{
		"what it asks for, and has": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = quantities("cpu", "500m", "memory", "64Mi")
			p.Spec.Containers[1].Resources = corev1.ResourceRequirements{Requests: quantities("cpu", "2000m", "memory", "6Gi", "ephemeral-storage", "1Gi"), Limits: quantities("memory", "8Gi")}
			p.Spec.InitContainers = []corev1.Container{{Name: "copy", Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "100m")}}}
			s := &p.Status.ContainerStatuses[1]
			s.Resources = &corev1.ResourceRequirements{Requests: quantities("cpu", "1", "memory", "2Gi"), Limits: quantities("memory", "4Gi")}
			s.AllocatedResources = quantities("cpu", "1", "memory", "2Gi")
		}, &observed.Size{
			Asks: podspec.Size{Controller: plan.Resources{Requests: map[string]string{"cpu": "2", "memory": "6Gi"}, Limits: map[string]string{"memory": "8Gi"}},
				Others: []plan.Resources{{Requests: map[string]string{"cpu": "600m", "memory": "64Mi"}, Limits: map[string]string{"cpu": "500m", "memory": "64Mi"}}, {}}},
			Has:       plan.Resources{Requests: map[string]string{"cpu": "1", "memory": "2Gi"}, Limits: map[string]string{"memory": "4Gi"}},
			Allocated: map[string]string{"cpu": "1", "memory": "2Gi"},
		}},
		"a pod that opted out": {func(p *corev1.Pod) {
			with()(p)
			p.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"}
		}, &observed.Size{Asks: one, Unmanaged: true}},
		"a container that restarts for memory": {func(p *corev1.Pod) {
			with()(p)
			p.Spec.Containers[1].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.NotRequired}, {ResourceName: "memory", RestartPolicy: corev1.RestartContainer}}
		}, &observed.Size{Asks: one, Restarts: []string{"memory"}}},
		"resources of the pod as a whole": {func(p *corev1.Pod) {
			with()(p)
			p.Spec.Resources = &corev1.ResourceRequirements{Limits: quantities("cpu", "4")}
		}, &observed.Size{Asks: podspec.Size{Controller: one.Controller, Others: one.Others, Whole: true}}},
		"deferred":            {with(resize(corev1.PodResizePending, "Deferred", "Node didn't have enough resource: cpu")), after(observed.ResizeDeferred, "Node didn't have enough resource: cpu")},
		"infeasible":          {with(resize(corev1.PodResizePending, "Infeasible", "more than it has")), after(observed.ResizeInfeasible, "more than it has")},
		"in progress":         {with(resize(corev1.PodResizeInProgress, "", "")), after(observed.ResizeInProgress, "")},
		"with an error":       {with(resize(corev1.PodResizeInProgress, "Error", "cgroup")), after(observed.ResizeFailed, "cgroup")},
		"both: what waits":    {with(resize(corev1.PodResizePending, "Deferred", "later"), resize(corev1.PodResizeInProgress, "", "")), after(observed.ResizeDeferred, "later")},
		"both, the other way": {with(resize(corev1.PodResizeInProgress, "", ""), resize(corev1.PodResizePending, "Infeasible", "never")), after(observed.ResizeInfeasible, "never")},
		"what is no more":     {with(corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionFalse, Reason: "Deferred"}), &observed.Size{Asks: one}},
		"words without end":   {with(resize(corev1.PodResizePending, "Deferred", long)), after(observed.ResizeDeferred, long[:199]+"…")},
		"words for a screen":  {with(resize(corev1.PodResizePending, "Deferred", "\x1b[2Ja")), after(observed.ResizeDeferred, `\u001b[2Ja`)},
	} {
		t.Run(name, func(t *testing.T) {
			got := list(t, target(plan.StatefulSet), newPod(controllerName+"-2", test.change))
			if diff := cmp.Diff(test.want, got.Pods[0].Size); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whoever may make pods gives one as many containers, conditions and resources as fit: what is kept does not grow with it.
func TestAPodsSizeIsBounded(t *testing.T) {
	p := newPod(controllerName+"-2", func(p *corev1.Pod) {
		list := corev1.ResourceList{}
		for i := range 1000 {
			list[corev1.ResourceName(fmt.Sprintf("example.com/%d", i))] = resource.MustParse("1")
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: fmt.Sprint(i), Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "1")}})
			p.Spec.Containers[1].ResizePolicy = append(p.Spec.Containers[1].ResizePolicy, corev1.ContainerResizePolicy{ResourceName: "cpu", RestartPolicy: corev1.RestartContainer})
		}
		p.Spec.Containers[1].Resources.Requests = list
	})
	want := &observed.Size{Asks: podspec.Size{Others: []plan.Resources{{Requests: map[string]string{"cpu": "1k"}, Limits: map[string]string{}}, {}}}, Restarts: []string{"cpu"}}
	if diff := cmp.Diff(want, list(t, target(plan.StatefulSet), p).Pods[0].Size); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

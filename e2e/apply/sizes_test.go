package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/hooked"
	"ballast/planner/apply"
	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/ownership/podlist"
	"ballast/planner/plan"
	webhookfixture "ballast/webhook/fixture"
)

// sizes is a real API server under the shipped webhooks, policies and Roles, with a plan that sizes the pods of the
// workload. No controller and no kubelet runs: the test makes pods as the one would, and says what the other would.
type sizes struct {
	*testing.T
	site    *hooked.Site
	planner client.WithWatch
	plan    plan.Plan
	applier *apply.Applier
}

const controllers = "argocd-application-controller"

// TestARunningPodIsSized from its creation on: by the webhook, and in place, through the real subresource.
func TestARunningPodIsSized(t *testing.T) {
	site := hooked.Start(t, hooked.Options{})
	s := &sizes{T: t, site: site, planner: site.As(hooked.Planner)}
	s.applier = apply.New(apply.Options{Client: s.planner, Reader: s.planner})
	s.write(func(p *plan.Plan) {
		p.Sizes = &plan.Sizes{Default: plan.Resources{Requests: amounts{"cpu": "1", "memory": "2Gi"}, Limits: amounts{"memory": "4Gi"}},
			Replicas: map[int]plan.Resources{2: {Requests: amounts{"cpu": "2", "memory": "6Gi"}, Limits: amounts{"memory": "8Gi"}}}}
	})
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: controllers}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "controller"}}, Template: podTemplate(nil, nil)}}
	s.must(site.Admin.Create(t.Context(), set))
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}

	s.Run("a pod comes with the size of its replica", func(t *testing.T) { s.created(t, owner) })
	s.Run("no webhook is asked about other pods", func(t *testing.T) { s.others(t, owner) })
	s.Run("a running pod is sized in place, and nothing else of it changes", func(t *testing.T) { s.inPlace(t) })
	s.Run("what somebody else made of a pod's size is put back", func(t *testing.T) { s.putBack(t) })
	s.Run("what its node makes of it is seen, and not asked for again", func(t *testing.T) { s.nodes(t) })
	s.Run("what Kubernetes refuses is told", func(t *testing.T) { s.refused(t, owner) })
	s.Run("the planner sizes no other pod", func(t *testing.T) { s.bounded(t) })
	s.Run("a pod that a LimitRange refuses comes with its template's size", func(t *testing.T) { s.limited(t, owner) })
	s.Run("where the template is held, it is written", func(t *testing.T) { s.template(t, set) })
}

type amounts = map[string]string

func (s *sizes) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// write has the planner write a plan, and waits until the webhook goes by it.
func (s *sizes) write(change func(*plan.Plan)) {
	s.Helper()
	next := webhookfixture.Fleet()
	next.PlannerUser, next.Target.Name, next.Target.Namespace = hooked.Planner, controllers, hooked.Namespace
	next.Resources = nil
	next.Revision += s.plan.Revision
	change(&next)
	data, annotations := webhookfixture.Written(s, next, "")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: hooked.PlanConfigMap, Annotations: annotations}, Data: data}
	if err := s.planner.Create(s.Context(), cm); apierrors.IsAlreadyExists(err) {
		s.must(s.planner.Update(s.Context(), cm))
	} else {
		s.must(err)
	}
	hooked.Eventually(s, "a webhook that knows the plan", func() bool { return s.site.Source.State().Revision() == next.Revision })
	s.plan = next
}

// pod is one as the StatefulSet's controller makes it: its template asks for little.
func pod(name string, owner []metav1.OwnerReference) *corev1.Pod {
	asks := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("512Mi")}}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: name, OwnerReferences: owner},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sidecar", Image: "proxy:1", Resources: asks}, {Name: "application-controller", Image: "argocd:1", Resources: asks}}}}
}

// asked is what a pod's container asks for.
func asked(c corev1.Container) string {
	var parts []string
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			q, there := list[name]
			text := "-"
			if there {
				text = q.String()
			}
			parts = append(parts, text)
		}
	}
	return c.Name + " " + strings.Join(parts, " ")
}

func (s *sizes) read(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := s.site.Admin.Get(t.Context(), types.NamespacedName{Namespace: hooked.Namespace, Name: name}, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func (s *sizes) stands(t *testing.T, name string, want ...string) {
	t.Helper()
	var got []string
	for _, c := range s.read(t, name).Spec.Containers {
		got = append(got, asked(c))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func (s *sizes) created(t *testing.T, owner []metav1.OwnerReference) {
	for name, want := range map[string]string{"-0": "application-controller 1 2Gi - 4Gi", "-2": "application-controller 2 6Gi - 8Gi"} {
		s.must(s.site.Admin.Create(t.Context(), pod(controllers+name, owner)))
		s.stands(t, controllers+name, "sidecar 250m 512Mi - -", want)
		s.runs(t, controllers+name)
	}
}

func (s *sizes) others(t *testing.T, owner []metav1.OwnerReference) {
	foreign := []metav1.OwnerReference{owner[0]}
	foreign[0].Name = controllers + "-too"
	before := s.site.Asked()
	for name, of := range map[string][]metav1.OwnerReference{"argocd-server-0": nil, controllers + "-too-0": foreign} {
		s.must(s.site.Admin.Create(t.Context(), pod(name, of)))
		s.stands(t, name, "sidecar 250m 512Mi - -", "application-controller 250m 512Mi - -")
	}
	if asked := s.site.Asked() - before; asked != 0 {
		t.Errorf("it was asked %d times", asked)
	}
}

// runs says of a pod what a kubelet does that has started it with all that it asks for.
func (s *sizes) runs(t *testing.T, name string, conditions ...corev1.PodCondition) {
	t.Helper()
	p := s.read(t, name)
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = append([]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}, conditions...)
	p.Status.ContainerStatuses = nil
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, ContainerID: "containerd://" + c.Name,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}, Resources: c.Resources.DeepCopy(), AllocatedResources: c.Resources.Requests})
	}
	if err := s.site.Admin.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// due is what differs of the pods, as the planner sees them.
func (s *sizes) due(t *testing.T) (diff.Result, []observed.Pod) {
	t.Helper()
	c, err := podlist.List(t.Context(), s.planner, s.plan.Target, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	seen := observed.State{Workload: &observed.Workload{Replicas: s.plan.Replicas, ControllerReplicas: &s.plan.ControllerReplicas}}
	for _, p := range c.Pods {
		seen.Pods = append(seen.Pods, p.Pod)
	}
	p := s.plan
	p.Clusters = nil
	return diff.Between(plan.NewView(p, nil), seen, diff.Options{}), seen.Pods
}

// mends carries out what differs, and says what became of it.
func (s *sizes) mends(t *testing.T) (said []string) {
	t.Helper()
	due, _ := s.due(t)
	for _, r := range s.applier.Apply(t.Context(), s.plan.Target, due.Steps).Results {
		if r.Err != nil {
			t.Log(r.Err)
		}
		said = append(said, fmt.Sprintf("%s: %s", r.Step, r.Outcome))
	}
	return said
}

func (s *sizes) inPlace(t *testing.T) {
	if said := s.mends(t); said != nil {
		t.Fatalf("what the webhook sized is sized again: %v", said)
	}
	before := s.read(t, controllers+"-2")
	s.write(func(p *plan.Plan) {
		p.Sizes = &plan.Sizes{Default: plan.Resources{Requests: amounts{"cpu": "1", "memory": "2Gi"}, Limits: amounts{"memory": "4Gi"}},
			Replicas: map[int]plan.Resources{2: {Requests: amounts{"cpu": "3", "memory": "8Gi"}, Limits: amounts{"memory": "8Gi"}}}}
	})
	want := []string{"size of " + controllers + "-2: requests.cpu=3 requests.memory=8Gi (Sized): Applied"}
	if diff := cmp.Diff(want, s.mends(t)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	s.stands(t, controllers+"-2", "sidecar 250m 512Mi - -", "application-controller 3 8Gi - 8Gi")
	after := s.read(t, controllers+"-2")
	if after.UID != before.UID || after.Status.ContainerStatuses[1].RestartCount != 0 || after.Status.ContainerStatuses[1].ContainerID != before.Status.ContainerStatuses[1].ContainerID {
		t.Errorf("it is another pod: %+v", after.Status)
	}
	if after.Generation != before.Generation+1 {
		t.Errorf("generation %d after %d", after.Generation, before.Generation)
	}
	for i := range after.Spec.Containers {
		before.Spec.Containers[i].Resources = after.Spec.Containers[i].Resources
	}
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("more of it changed (-before +after):\n%s", diff)
	}
	s.runs(t, controllers+"-2")
}

func (s *sizes) putBack(t *testing.T) {
	s.resize(t, s.site.As("mallory"), controllers+"-2", `{"spec":{"containers":[{"name":"application-controller","resources":{"requests":{"cpu":"100m"},"limits":{"memory":"9Gi"}}}]}}`, "")
	s.stands(t, controllers+"-2", "sidecar 250m 512Mi - -", "application-controller 100m 8Gi - 9Gi")
	want := []string{"size of " + controllers + "-2: limits.memory=8Gi requests.cpu=3 (Sized): Applied"}
	if diff := cmp.Diff(want, s.mends(t)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	s.stands(t, controllers+"-2", "sidecar 250m 512Mi - -", "application-controller 3 8Gi - 8Gi")
	if said := s.mends(t); said != nil {
		t.Errorf("it is written again: %v", said)
	}
}

// resize patches a pod's size; words that a refusal must have, none for none.
func (s *sizes) resize(t *testing.T, c client.Client, name, patch, refusal string) {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: name}}
	err := c.SubResource("resize").Patch(t.Context(), p, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	switch {
	case refusal == "" && err != nil:
		t.Fatal(err)
	case refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)):
		t.Errorf("%v, want a refusal with %q", err, refusal)
	}
}

func (s *sizes) nodes(t *testing.T) {
	says := func(kind corev1.PodConditionType, reason, message string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}
	}
	for name, test := range map[string]struct {
		says corev1.PodCondition
		want observed.Resize
	}{
		"no room now":  {says(corev1.PodResizePending, corev1.PodReasonDeferred, "Node didn't have enough resource: memory"), observed.ResizeDeferred},
		"never":        {says(corev1.PodResizePending, corev1.PodReasonInfeasible, "Node didn't have enough capacity: memory"), observed.ResizeInfeasible},
		"being made":   {says(corev1.PodResizeInProgress, "", ""), observed.ResizeInProgress},
		"with a fault": {says(corev1.PodResizeInProgress, corev1.PodReasonError, "writing cgroup"), observed.ResizeFailed},
	} {
		s.runs(t, controllers+"-2", test.says)
		due, pods := s.due(t)
		if len(due.Steps)+len(due.Held) > 0 {
			t.Errorf("%s: %v %v is due", name, due.Steps, due.Held)
		}
		if got := pods[1].Size; got.Resize != test.want || got.Message != test.says.Message {
			t.Errorf("%s: %s %q, want %s %q", name, got.Resize, got.Message, test.want, test.says.Message)
		}
	}
	s.runs(t, controllers+"-2")
}

func (s *sizes) refused(t *testing.T, owner []metav1.OwnerReference) {
	// A template by which the pod is Guaranteed keeps its size, on its creation and afterwards.
	exact := pod(controllers+"-1", owner)
	for i := range exact.Spec.Containers {
		exact.Spec.Containers[i].Resources.Limits = exact.Spec.Containers[i].Resources.Requests
	}
	s.must(s.site.Admin.Create(t.Context(), exact))
	s.stands(t, controllers+"-1", "sidecar 250m 512Mi 250m 512Mi", "application-controller 250m 512Mi 250m 512Mi")
	due, _ := s.due(t)
	want := diff.Held{Reason: diff.HeldMisfit, Pod: controllers + "-1", Words: "its request of cpu would be above its limit: let the size name limits.cpu, too"}
	if diff := cmp.Diff([]diff.Held{want}, due.Held); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.resize(t, s.planner, controllers+"-1", `{"spec":{"containers":[{"name":"application-controller","resources":{"requests":{"cpu":"100m"}}}]}}`, "Pod QOS Class may not change as a result of resizing")
	s.must(s.site.Admin.Delete(t.Context(), exact, client.GracePeriodSeconds(0)))
	// A node that does not support it says nothing of what the container has.
	p := s.read(t, controllers+"-0")
	p.Status.ContainerStatuses[0].Resources, p.Status.ContainerStatuses[1].Resources = nil, nil
	s.must(s.site.Admin.Status().Update(t.Context(), p))
	step := diff.PatchPod{Pod: controllers + "-0", Size: plan.Resources{Requests: amounts{"cpu": "1500m"}}, Why: diff.Sized}
	r := s.applier.Apply(t.Context(), s.plan.Target, []diff.Step{step}).Results[0]
	if why, is := apply.Refusal(r.Err); r.Outcome != apply.Failed || !is || !strings.HasPrefix(why, `Invalid (FieldValueForbidden at "spec")`) {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
	if r := s.applier.Apply(t.Context(), s.plan.Target, []diff.Step{step}).Results[0]; r.Outcome != apply.Deferred {
		t.Errorf("tried again at once: %s", r.Outcome)
	}
	s.runs(t, controllers+"-0")
}

func (s *sizes) bounded(t *testing.T) {
	const larger = `{"spec":{"containers":[{"name":"application-controller","resources":{"requests":{"cpu":"2"}}}]}}`
	s.resize(t, s.planner, "argocd-server-0", larger, "the planner sizes the application-controller's pods and no other")
	s.resize(t, s.planner, controllers+"-too-0", larger, "the planner sizes the application-controller's pods and no other")
	set := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: controllers, UID: "1", Controller: new(true)}
	named, foreign := set, set
	named.Controller, foreign.APIVersion = nil, "apps.example.com/v1"
	for name, owner := range map[string]metav1.OwnerReference{controllers + "-named-0": named, controllers + "-foreign-0": foreign} {
		s.must(s.site.Admin.Create(t.Context(), pod(name, []metav1.OwnerReference{owner})))
		s.resize(t, s.planner, name, larger, "the planner sizes the application-controller's pods and no other")
	}
	for _, of := range []string{`"containers":[{"name":"sidecar","resources":{"requests":{"cpu":"2"}}}]`,
		`"containers":[{"name":"sidecar","resources":{"requests":{"cpu":"2"}}},{"name":"application-controller","resources":{"requests":{"cpu":"2"}}}]`} {
		s.resize(t, s.planner, controllers+"-0", `{"spec":{`+of+`}}`, "of a pod the planner sizes the application-controller's container and no other")
	}
	s.stands(t, "argocd-server-0", "sidecar 250m 512Mi - -", "application-controller 250m 512Mi - -")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: controllers + "-0"}}
	for what, err := range map[string]error{
		"a label":    s.planner.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))),
		"a deletion": s.planner.Delete(t.Context(), p),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	gone := s.applier.Apply(context.WithoutCancel(t.Context()), s.plan.Target, []diff.Step{diff.PatchPod{Pod: controllers + "-9", Size: plan.Resources{Requests: amounts{"cpu": "1"}}},
		diff.PatchPod{Pod: controllers + "-too-0", Size: plan.Resources{Requests: amounts{"cpu": "1"}}}}).Results
	for i, why := range []string{"it is gone", "it is no pod of the workload's any more"} {
		if gone[i].Outcome != apply.Refused || !strings.Contains(gone[i].Err.Error(), why) {
			t.Errorf("%s %v, want %q", gone[i].Outcome, gone[i].Err, why)
		}
	}
}

func (s *sizes) template(t *testing.T, set *appsv1.StatefulSet) {
	s.write(func(p *plan.Plan) {
		p.Mode = plan.Hold
		p.Resources = &plan.Resources{Requests: amounts{"cpu": "1", "memory": "2Gi"}, Limits: amounts{"memory": "4Gi"}}
	})
	step := diff.PatchWorkload{Resources: *s.plan.Resources, Why: diff.Sized}
	for _, want := range []apply.Outcome{apply.Applied, apply.Unchanged} {
		if r := apply.New(apply.Options{Client: s.planner, Reader: s.planner}).Apply(t.Context(), s.plan.Target, []diff.Step{step}).Results[0]; r.Outcome != want {
			t.Fatalf("%s %v, want %s", r.Outcome, r.Err, want)
		}
	}
	_, template := read(t, s.site.Admin, set)
	if got := []string{asked(template.Spec.Containers[0]), asked(template.Spec.Containers[1])}; !cmp.Equal(got, []string{"sidecar - - - -", "application-controller 1 2Gi - 4Gi"}) {
		t.Errorf("%v", got)
	}
}

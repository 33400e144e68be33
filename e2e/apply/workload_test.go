package apply_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/apply"
	"ballast/planner/diff"
	"ballast/planner/plan"
)

func podTemplate(env []corev1.EnvVar, annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "controller"}, Annotations: annotations},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "sidecar", Image: "proxy:1", Env: []corev1.EnvVar{{Name: plan.EnvReplicas, Value: "7"}}},
			{Name: "application-controller", Image: "argocd:1", Env: env},
		}},
	}
}

func (w *world) statefulSet(replicas int32, env []corev1.EnvVar, change func(*appsv1.StatefulSet)) {
	w.t.Helper()
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.target.Namespace, Name: w.target.Name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "controller"}}, Template: podTemplate(env, nil),
		},
	}
	if change != nil {
		change(s)
	}
	w.must(w.client.Create(w.ctx, s))
}

// stands is what a step may touch of the workload: replicas, and each container's env in its order.
func (w *world) stands() string {
	w.t.Helper()
	var s appsv1.StatefulSet
	w.read(&s, w.target.Name)
	return describe(s.Spec.Replicas, s.Spec.Template)
}

func describe(replicas *int32, template corev1.PodTemplateSpec) string {
	out := fmt.Sprintf("replicas=%d", *replicas)
	for _, c := range template.Spec.Containers {
		var env []string
		for _, e := range c.Env {
			value := e.Value
			if e.ValueFrom != nil {
				value = "(reference)"
			}
			env = append(env, e.Name+"="+value)
		}
		out += fmt.Sprintf(" %s(%s)[%s]", c.Name, c.Image, strings.Join(env, " "))
	}
	return out
}

func writesEnvInPlace(t *testing.T, w *world) {
	w.statefulSet(2, []corev1.EnvVar{{Name: "FIRST", Value: "1"}, {Name: plan.EnvReplicas, Value: "2"}, {Name: "LAST", Value: "1"}}, nil)
	steps := []diff.Step{diff.PatchWorkload{Replicas: ptr(4), ControllerReplicas: ptr(4), Why: diff.Rolling}}
	w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, steps)))
	w.equal("replicas=4 sidecar(proxy:1)[ARGOCD_CONTROLLER_REPLICAS=7] application-controller(argocd:1)[FIRST=1 ARGOCD_CONTROLLER_REPLICAS=4 LAST=1]", w.stands())
	w.equal([]apply.Outcome{apply.Unchanged}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, steps)))
	var s appsv1.StatefulSet
	w.read(&s, w.target.Name)
	w.equal(int64(2), s.Generation)
	w.equal([]string{"apply.test", plan.FieldManager}, managers(&s))
}

func appendsEnv(t *testing.T, w *world) {
	for name, env := range map[string][]corev1.EnvVar{"no env at all": nil, "another env": {{Name: "FIRST", Value: "1"}}} {
		t.Run(name, func(t *testing.T) {
			w.statefulSet(2, env, nil)
			w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchWorkload{ControllerReplicas: ptr(2)}})))
			first := strings.Repeat("FIRST=1 ", len(env))
			w.equal("replicas=2 sidecar(proxy:1)[ARGOCD_CONTROLLER_REPLICAS=7] application-controller(argocd:1)["+first+"ARGOCD_CONTROLLER_REPLICAS=2]", w.stands())
			w.must(w.client.Delete(w.ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.target.Namespace, Name: w.target.Name}}))
		})
	}
}

func replacesReference(t *testing.T, w *world) {
	reference := corev1.EnvVar{Name: plan.EnvReplicas, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "argocd-cmd-params-cm"}, Key: "controller.replicas"}}}
	w.statefulSet(2, []corev1.EnvVar{reference, {Name: "LAST", Value: "1"}}, nil)
	w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchWorkload{ControllerReplicas: ptr(2)}})))
	w.equal("replicas=2 sidecar(proxy:1)[ARGOCD_CONTROLLER_REPLICAS=7] application-controller(argocd:1)[ARGOCD_CONTROLLER_REPLICAS=2 LAST=1]", w.stands())
}

func marksRestart(t *testing.T, w *world) {
	const at = "2026-08-01T12:00:00Z"
	for name, annotations := range map[string]map[string]string{"none": nil, "another": {"theirs": "kept"}, "an older restart": {restartedAt: "2025-01-01T00:00:00Z"}} {
		t.Run(name, func(t *testing.T) {
			w.statefulSet(2, nil, func(s *appsv1.StatefulSet) { s.Spec.Template.Annotations = annotations })
			step := []diff.Step{diff.PatchWorkload{RestartedAt: at}}
			w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, step)))
			w.equal([]apply.Outcome{apply.Unchanged}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, step)))
			want := map[string]string{restartedAt: at}
			if name == "another" {
				want["theirs"] = "kept"
			}
			var s appsv1.StatefulSet
			w.read(&s, w.target.Name)
			w.equal(want, s.Spec.Template.Annotations)
			w.must(w.client.Delete(w.ctx, &s))
		})
	}
}

func writesDeployment(t *testing.T, w *world) {
	w.target.Kind = plan.Deployment
	replicas := int32(2)
	w.must(w.client.Create(w.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.target.Namespace, Name: w.target.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "controller"}}, Template: podTemplate(nil, nil),
		},
	}))
	w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchWorkload{Replicas: ptr(3), RestartedAt: "2026-08-01T12:00:00Z"}})))
	var d appsv1.Deployment
	w.read(&d, w.target.Name)
	w.equal("replicas=3 sidecar(proxy:1)[ARGOCD_CONTROLLER_REPLICAS=7] application-controller(argocd:1)[]", describe(d.Spec.Replicas, d.Spec.Template))
	w.equal(map[string]string{restartedAt: "2026-08-01T12:00:00Z"}, d.Spec.Template.Annotations)
}

func keepsConcurrentWorkloadWrite(t *testing.T, w *world) {
	w.statefulSet(2, []corev1.EnvVar{{Name: plan.EnvReplicas, Value: "2"}}, nil)
	w.intercept(func() { // an upgrade of Argo CD that puts another env in front
		var s appsv1.StatefulSet
		w.read(&s, w.target.Name)
		c := &s.Spec.Template.Spec.Containers[1]
		c.Image, c.Env = "argocd:2", append([]corev1.EnvVar{{Name: "FIRST", Value: "1"}}, c.Env...)
		w.must(w.client.Update(w.ctx, &s))
	})
	w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchWorkload{ControllerReplicas: ptr(4)}})))
	w.equal("replicas=2 sidecar(proxy:1)[ARGOCD_CONTROLLER_REPLICAS=7] application-controller(argocd:2)[FIRST=1 ARGOCD_CONTROLLER_REPLICAS=4]", w.stands())
}

func refusesWorkload(t *testing.T, w *world) {
	answer := func(step diff.PatchWorkload) string {
		result := apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{step}).Results[0]
		return fmt.Sprintf("%s: %s", result.Outcome, strings.ReplaceAll(result.Err.Error(), w.target.Namespace+"/", ""))
	}
	got := []string{answer(diff.PatchWorkload{Replicas: ptr(3)})}
	w.statefulSet(2, nil, func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} })
	got = append(got, answer(diff.PatchWorkload{Replicas: ptr(3)}))
	var s appsv1.StatefulSet
	w.read(&s, w.target.Name)
	s.Annotations = nil
	w.must(w.client.Update(w.ctx, &s))
	w.target.Container = "renamed"
	got = append(got, answer(diff.PatchWorkload{ControllerReplicas: ptr(3)}))
	w.target.Kind = "DaemonSet"
	got = append(got, answer(diff.PatchWorkload{Replicas: ptr(3)}))
	w.equal([]string{
		`Refused: reading StatefulSet "argocd-application-controller": it is gone: it must not be written`,
		`Refused: writing StatefulSet "argocd-application-controller": it is annotated as unmanaged: it must not be written`,
		`Failed: finding container "renamed" in the workload's pod template: there is none`,
		`Failed: reading DaemonSet "argocd-application-controller": kind "DaemonSet" is neither StatefulSet nor Deployment`,
	}, got)
}

package matrix

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"ballast/planner/plan"
)

// held is the size that the plans of these cells have.
func held() plan.Resources {
	return plan.Resources{Requests: map[string]string{"cpu": "1", "memory": "2Gi"}, Limits: map[string]string{"memory": "4Gi"}}
}

// asks has the controller's container of a pod template ask for that.
func asks(cpu, memory, limit string) func(map[string]any) {
	return func(object map[string]any) {
		containers, _, _ := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
		containers[1].(map[string]any)["resources"] = map[string]any{
			"requests": map[string]any{"cpu": cpu, "memory": memory}, "limits": map[string]any{"memory": limit}}
		with("spec", "template", "spec", "containers", containers)(object)
	}
}

// templateSizes prints what each container of a pod template asks for.
func templateSizes(u *unstructured.Unstructured) map[string]string {
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	return sizesOf(&unstructured.Unstructured{Object: template})
}

// asked is how the audit log has what a write asked for.
func asked(cpu, memory, limit string) string {
	return fmt.Sprintf("replicas=4 %s=16 limits.memory=%s requests.cpu=%s requests.memory=%s", plan.EnvReplicas, limit, cpu, memory)
}

// The pod template's sizes in these cells: as planned, and as people write them.
var (
	plannedSizes = map[string]string{"sidecar": "- - - -", "renamed": "1 2Gi - 4Gi"}
	theirSizes   = map[string]string{"sidecar": "- - - -", "renamed": "250m 512Mi - 1Gi"}
)

const theirs = `{"spec":{"template":{"spec":{"containers":[{"name":"renamed","resources":{"requests":{"memory":"600Mi"}}}]}}}}`

// templateCells: what the plan holds of the pod template's size is put back, whoever writes another one, and however.
func templateCells(kind string) map[string]cell {
	restored := func(cpu, memory, limit, warning string) outcome {
		o := outcome{Fields: plannedSizes, Audit: audit("Restored", "1", asked(cpu, memory, limit), asked("1", "2Gi", "4Gi"))}
		if warning != "" {
			o.Warnings = []string{"ballast: " + warning + " stay as planned (plan 1)"}
		}
		return o
	}
	const all, at = "limits.memory, requests.cpu, requests.memory", "/spec/template/spec/containers/1/resources"
	another, stands := controller(kind, 4, "16", asks("250m", "512Mi", "1Gi")), controller(kind, 4, "16", asks("1", "2Gi", "4Gi"))
	replaces := func(u *unstructured.Unstructured) { u.Object["spec"] = another.DeepCopy().Object["spec"] }
	whole := restored("250m", "512Mi", "1Gi", all)
	agrees := outcome{Fields: plannedSizes, Audit: audit("InPlan", "1", asked("1", "2Gi", "4Gi"), asked("1", "2Gi", "4Gi"))}
	conflict := func(of string) string { return "\n- .spec.template.spec.containers[name=\"renamed\"].resources." + of }
	return map[string]cell{
		"CREATE":                {write: create(another), want: whole},
		"CREATE without a size": {write: create(controller(kind, 4, "16")), want: restored("-", "-", "-", "")},
		"PUT":                   {before: stands, write: put(replaces), want: whole},
		"JSON patch": {before: stands, write: patch(types.JSONPatchType, `[{"op":"replace","path":"`+at+`/requests/cpu","value":"250m"}]`),
			want: restored("250m", "2Gi", "4Gi", "requests.cpu")},
		"JSON patch that takes it away": {before: stands, write: patch(types.JSONPatchType, `[{"op":"remove","path":"`+at+`"}]`),
			want: restored("-", "-", "-", "")},
		"strategic merge patch": {before: stands, write: patch(types.StrategicMergePatchType, theirs),
			want: restored("1", "600Mi", "4Gi", "requests.memory")},
		"apply of a new workload":  {write: apply("gitops", false, another), want: whole},
		"apply with force":         {before: stands, write: apply("gitops", true, another), want: whole},
		"apply by the owner":       {before: stands, owner: "gitops", write: apply("gitops", false, another), want: whole},
		"a write of an annotation": {before: stands, write: put(annotation("a", "b")), want: agrees},
		"the same size in other words": {before: stands,
			write: patch(types.JSONPatchType, `[{"op":"replace","path":"`+at+`/requests/cpu","value":"1000m"}]`), want: agrees},
		"apply without force": {before: stands, write: apply("gitops", false, another), stored: plannedSizes,
			want: outcome{Error: `Apply failed with 3 conflicts: conflicts with "setup" using apps/v1:` + conflict("limits.memory") +
				conflict("requests.cpu") + conflict("requests.memory")}},
		"a write that opts out": {before: stands, write: put(func(u *unstructured.Unstructured) {
			annotation(plan.AnnotationUnmanaged, "true")(u)
			replaces(u)
		}), want: outcome{Fields: theirSizes,
			Audit: audit("Unmanaged", "1", asked("250m", "512Mi", "1Gi")+" unmanaged=true", "unmanaged=true")}},
	}
}

func annotation(key, value string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{key: value}) }
}

// openTemplateCells: under break-glass the template's size is as it is written.
func openTemplateCells(kind string) map[string]cell {
	another, stands := controller(kind, 4, "16", asks("250m", "512Mi", "1Gi")), controller(kind, 4, "16", asks("1", "2Gi", "4Gi"))
	replaces := func(u *unstructured.Unstructured) { u.Object["spec"] = another.DeepCopy().Object["spec"] }
	passed := outcome{Fields: theirSizes, Audit: audit("Observing", "1", asked("250m", "512Mi", "1Gi"), "-")}
	return map[string]cell{
		"CREATE":           {write: create(another), want: passed},
		"PUT":              {before: stands, write: put(replaces), want: passed},
		"apply with force": {before: stands, write: apply("gitops", true, another), want: passed},
		"strategic merge patch": {before: stands, write: patch(types.StrategicMergePatchType, theirs),
			want: outcome{Fields: map[string]string{"sidecar": "- - - -", "renamed": "1 600Mi - 4Gi"},
				Audit: audit("Observing", "1", asked("1", "600Mi", "4Gi"), "-")}},
	}
}

// templates are the write paths of a workload whose pod template has its size by the plan (size.apply: template).
func (s *site) templates(t *testing.T) {
	for kind, resource := range map[string]schema.GroupVersionResource{plan.StatefulSet: statefulSets, plan.Deployment: deployments} {
		p, size := fleet(kind, 1), held()
		p.Resources = &size
		tb := table{resource: resource, webhook: "controllers.ballast.argoproj.io", fields: templateSizes, reset: s.remove(resource),
			names: func(int) string { return workload }}
		t.Run(kind, func(t *testing.T) {
			s.decide(t, p, "")
			tb := tb
			tb.cells = templateCells(kind)
			s.run(t, tb)
		})
		t.Run(kind+" under break-glass", func(t *testing.T) {
			s.opened(t, p)
			tb := tb
			tb.cells = openTemplateCells(kind)
			s.run(t, tb)
		})
		s.remove(resource)(t, workload)
	}
}

// opened has a plan in force, and a person open the break-glass.
func (s *site) opened(t *testing.T, p plan.Plan) {
	t.Helper()
	s.decide(t, p, "")
	s.annotate(t, plan.AnnotationEnforcement, "off")
	eventually(t, "break-glass at the webhook", func() bool { return s.source.State().BreakGlass })
	t.Cleanup(func() {
		s.decide(t, p, "")
		eventually(t, "the end of break-glass at the webhook", func() bool { return !s.source.State().BreakGlass })
	})
}

// annotate is a person who annotates the plan.
func (s *site) annotate(t *testing.T, key, value string) {
	t.Helper()
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	at := s.dynamic(t, quiet(s.person)).Resource(configMaps).Namespace(namespace)
	if _, err := at.Patch(t.Context(), planName, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// switchedPods are the paths by which a pod comes, and that of its size, under people's switches.
func (s *site) switchedPods(t *testing.T) {
	sizes := func(change func(*plan.Plan)) plan.Plan {
		p := fleet(plan.StatefulSet, 1)
		p.Sizes = &plan.Sizes{Default: held()}
		if change != nil {
			change(&p)
		}
		return p
	}
	small := map[string]string{"sidecar": "250m 512Mi - -", "renamed": "250m 512Mi - -"}
	larger := map[string]string{"sidecar": "250m 512Mi - -", "renamed": "2 512Mi - -"}
	for name, test := range map[string]struct {
		before func(*testing.T)
		reason string
	}{
		"break-glass":          {func(t *testing.T) { s.opened(t, sizes(nil)) }, "Observing"},
		"mode Observe":         {func(t *testing.T) { s.decide(t, sizes(func(p *plan.Plan) { p.Mode = plan.Observe }), "") }, "Observing"},
		"a workload opted out": {func(t *testing.T) { s.decide(t, sizes(func(p *plan.Plan) { p.Unmanaged = true }), "") }, "Unmanaged"},
	} {
		t.Run(name, func(t *testing.T) {
			test.before(t)
			passed := outcome{Fields: small, Audit: audit(test.reason, "1", "-", "-")}
			made := podOf(plan.StatefulSet, workload)
			s.runPods(t, map[string]cell{
				"CREATE":             {write: create(made), want: passed},
				"apply of a new pod": {write: apply("gitops", false, made), want: passed},
				"resize": {before: made, write: patch(types.StrategicMergePatchType,
					`{"spec":{"containers":[{"name":"renamed","resources":{"requests":{"cpu":"2"}}}]}}`, "resize"), want: outcome{Fields: larger}},
			})
		})
	}
	t.Run("a freeze", func(t *testing.T) { // sizes are held
		s.decide(t, sizes(nil), "")
		s.annotate(t, plan.AnnotationPaused, "true")
		s.runPods(t, map[string]cell{"CREATE": podCells(plan.StatefulSet, workload)["CREATE"]})
	})
}

// runPods runs cells of pods, and takes the pods away.
func (s *site) runPods(t *testing.T, cells map[string]cell) {
	t.Helper()
	name := func(i int) string { return fmt.Sprintf("%s-%d", workload, i) }
	s.run(t, table{resource: pods, webhook: "pods.ballast.argoproj.io", fields: sizesOf, reset: s.remove(pods), names: name, cells: cells})
	for i := range len(cells) {
		s.remove(pods)(t, name(i))
	}
}

package matrix

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"ballast/planner/plan"
)

// controller is the application-controller's workload; its container is named as no plan names it. An empty env has no
// entry for the replicas.
func controller(kind string, replicas int64, env string, change ...func(map[string]any)) *unstructured.Unstructured {
	entries := []any{map[string]any{"name": "A", "value": "1"}}
	if env != "" {
		entries = append(entries, map[string]any{"name": plan.EnvReplicas, "value": env})
	}
	entries = append(entries, map[string]any{"name": "B", "value": "2"})
	labels := map[string]any{"app": "controller"}
	spec := map[string]any{"replicas": replicas, "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "sidecar", "image": "a"},
			map[string]any{"name": "renamed", "image": "b", "args": []any{"/usr/local/bin/argocd-application-controller"}, "env": entries},
		}},
	}}
	if kind == plan.StatefulSet {
		spec["serviceName"] = "controller"
	}
	object := map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"namespace": namespace}, "spec": spec}
	for _, c := range change {
		c(object)
	}
	return &unstructured.Unstructured{Object: object}
}

// envOf prints the second container's env in its order.
func envOf(u *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	out := ""
	for _, c := range containers {
		entries, _, _ := unstructured.NestedSlice(c.(map[string]any), "env")
		for _, e := range entries {
			entry := e.(map[string]any)
			out += fmt.Sprintf("%v=%v ", entry["name"], entry["value"])
		}
	}
	return out
}

func workloadFields(u *unstructured.Unstructured) map[string]string {
	replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if u.GetKind() == "Scale" {
		return map[string]string{"replicas": fmt.Sprint(replicas)}
	}
	return map[string]string{"replicas": fmt.Sprint(replicas), "env": envOf(u)}
}

func scale(u *unstructured.Unstructured, n int64) { with("spec", "replicas", n)(u.Object) }

const (
	planned      = "A=1 " + plan.EnvReplicas + "=16 B=2 "
	replicasSaid = "ballast: 9 replicas were asked, 4 stay (plan 1); to fix a number, set partition.replicas in ballast-config"
	envSaid      = "ballast: ARGOCD_CONTROLLER_REPLICAS 9 was asked, 16 stays (plan 1)"
)

func controllerCells(kind string) map[string]cell {
	held := func(env string) map[string]string { return map[string]string{"replicas": "4", "env": env} }
	audited := func(reason, replicas, env string) map[string]string {
		return audit(reason, "1", "replicas="+replicas+" ARGOCD_CONTROLLER_REPLICAS="+env, "replicas=4 ARGOCD_CONTROLLER_REPLICAS=16")
	}
	both := outcome{Fields: held(planned), Audit: audited("Restored", "9", "9"), Warnings: []string{replicasSaid, envSaid}}
	replicas := outcome{Fields: held(planned), Audit: audited("Restored", "9", "16"), Warnings: []string{replicasSaid}}
	stands := controller(kind, 4, "16")
	const envPath = "/spec/template/spec/containers/1/env/1"
	cells := map[string]cell{
		"CREATE":                {write: create(controller(kind, 9, "9")), want: both},
		"PUT":                   {before: stands, write: put(func(u *unstructured.Unstructured) { u.Object["spec"] = controller(kind, 9, "9").Object["spec"] }), want: both},
		"JSON patch":            {before: stands, write: patch(types.JSONPatchType, `[{"op":"replace","path":"/spec/replicas","value":9},{"op":"replace","path":"`+envPath+`/value","value":"9"}]`), want: both},
		"merge patch":           {before: stands, write: patch(types.MergePatchType, `{"spec":{"replicas":9}}`), want: replicas},
		"merge patch of null":   {before: stands, write: patch(types.MergePatchType, `{"spec":{"replicas":null}}`), want: outcome{Fields: held(planned), Audit: audited("Restored", "1", "16"), Warnings: []string{"ballast: 1 replicas were asked, 4 stay (plan 1); to fix a number, set partition.replicas in ballast-config"}}},
		"strategic merge patch": {before: stands, write: patch(types.StrategicMergePatchType, `{"spec":{"replicas":9,"template":{"spec":{"containers":[{"name":"renamed","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"9"}]}]}}}}`), want: both},
		"strategic merge patch to a reference": {before: stands,
			write: patch(types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"renamed","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}}}}`),
			want:  outcome{Fields: held(planned), Audit: audited("Restored", "4", "reference"), Warnings: []string{"ballast: ARGOCD_CONTROLLER_REPLICAS reference was asked, 16 stays (plan 1)"}}},
		"apply of a new workload": {write: apply("gitops", false, controller(kind, 9, "9")), want: both},
		"apply with force":        {before: stands, write: apply("gitops", true, controller(kind, 9, "9")), want: both},
		"apply by the owner":      {before: stands, owner: "gitops", write: apply("gitops", false, controller(kind, 9, "9")), want: both},
		"apply without force": {before: stands, write: apply("gitops", false, controller(kind, 9, "9")), stored: held(planned),
			want: outcome{Error: "Apply failed with 2 conflicts: conflicts with \"setup\" using apps/v1:\n- .spec.replicas\n" +
				`- .spec.template.spec.containers[name="renamed"].env[name="ARGOCD_CONTROLLER_REPLICAS"].value`}},
		"a write as planned": {before: stands, write: put(func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) }), want: outcome{Fields: held(planned), Audit: audited("InPlan", "4", "16")}},
		"a write that opts out": {before: stands, write: put(func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{plan.AnnotationUnmanaged: "true"})
			scale(u, 9)
		}), want: outcome{Fields: map[string]string{"replicas": "9", "env": planned}, Audit: audit("Unmanaged", "1", "replicas=9 ARGOCD_CONTROLLER_REPLICAS=16 unmanaged=true", "unmanaged=true")}},
		"a write that means to opt out": {before: stands, write: put(func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{plan.AnnotationUnmanaged: "yes"})
		}),
			want: outcome{Fields: held(planned), Audit: audit("InPlan", "1", "replicas=4 ARGOCD_CONTROLLER_REPLICAS=16 unmanaged=invalid", "replicas=4 ARGOCD_CONTROLLER_REPLICAS=16 unmanaged=-"),
				Warnings: []string{`ballast: annotation ballast.argoproj.io/unmanaged: "yes" is passed over; write "true" to opt out`}}},
	}
	if kind == plan.StatefulSet {
		cells["CREATE without the entry"] = cell{write: create(controller(kind, 4, "")),
			want: outcome{Fields: held("A=1 B=2 " + plan.EnvReplicas + "=16 "), Audit: audited("Restored", "4", "-")}}
		return cells
	}
	// A Deployment distributes by its own replicas: an env that is not there is not needed.
	cells["CREATE without the entry"] = cell{write: create(controller(kind, 4, "")),
		want: outcome{Fields: held("A=1 B=2 "), Audit: audit("InPlan", "1", "replicas=4 ARGOCD_CONTROLLER_REPLICAS=-", "replicas=4")}}
	return cells
}

// scaleObject is what autoscalers send.
func scaleObject(n int64, version string) *unstructured.Unstructured {
	metadata := map[string]any{"name": workload, "namespace": namespace}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": map[string]any{"replicas": n}}}
}

func putScale(n int64, precondition bool) func(context.Context, writer) (*unstructured.Unstructured, error) {
	return func(ctx context.Context, w writer) (*unstructured.Unstructured, error) {
		version := ""
		if precondition {
			stood, err := w.Get(ctx, w.name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			version = stood.GetResourceVersion()
		}
		return w.Update(ctx, scaleObject(n, version), metav1.UpdateOptions{DryRun: w.dry}, "scale")
	}
}

func scaleCells(kind string) map[string]cell {
	stands := controller(kind, 4, "16")
	said := func(n string) outcome {
		return outcome{Fields: map[string]string{"replicas": "4"}, Audit: audit("Restored", "1", "replicas="+n, "replicas=4"),
			Warnings: []string{"ballast: " + n + " replicas were asked, 4 stay (plan 1); to fix a number, set partition.replicas in ballast-config"}}
	}
	return map[string]cell{
		"PUT":                     {before: stands, write: putScale(9, false), want: said("9")},
		"PUT of 0":                {before: stands, write: putScale(0, false), want: said("0")},
		"PUT with a precondition": {before: stands, write: putScale(9, true), want: said("9")},
		"PUT as planned":          {before: stands, write: putScale(4, false), want: outcome{Fields: map[string]string{"replicas": "4"}, Audit: audit("InPlan", "1", "replicas=4", "replicas=4")}},
		"JSON patch":              {before: stands, write: patch(types.JSONPatchType, `[{"op":"replace","path":"/spec/replicas","value":9}]`, "scale"), want: said("9")},
		"merge patch":             {before: stands, write: patch(types.MergePatchType, `{"spec":{"replicas":9}}`, "scale"), want: said("9")},
		"merge patch of null":     {before: stands, write: patch(types.MergePatchType, `{"spec":{"replicas":null}}`, "scale"), want: said("0")},
		"strategic merge patch":   {before: stands, write: patch(types.StrategicMergePatchType, `{"spec":{"replicas":9}}`, "scale"), want: said("9")},
		"apply with force":        {before: stands, write: apply("hpa", true, scaleObject(9, ""), "scale"), want: said("9")},
		"apply without force": {before: stands, write: apply("hpa", false, scaleObject(9, ""), "scale"), stored: map[string]string{"replicas": "4"},
			want: outcome{Error: `Apply failed with 1 conflict: conflict with "setup" using autoscaling/v1: .spec.replicas`}},
	}
}

// optedOutCells are the write paths of the scale of a workload that opted out, by a plan that says so.
func optedOutCells(kind string) map[string]cell {
	stands := controller(kind, 4, "16", with("metadata", "annotations", map[string]any{plan.AnnotationUnmanaged: "true"}))
	passed := outcome{Fields: map[string]string{"replicas": "9"}, Audit: audit("Unmanaged", "1", "replicas=9", "-")}
	return map[string]cell{
		"PUT":              {before: stands, write: putScale(9, false), want: passed},
		"merge patch":      {before: stands, write: patch(types.MergePatchType, `{"spec":{"replicas":9}}`, "scale"), want: passed},
		"apply with force": {before: stands, write: apply("hpa", true, scaleObject(9, ""), "scale"), want: passed},
	}
}

// scaleFields are those of a Scale, and of the workload that it is a part of.
func scaleFields(u *unstructured.Unstructured) map[string]string {
	fields := workloadFields(u)
	delete(fields, "env")
	return fields
}

func (s *site) workloads(t *testing.T) {
	for kind, resource := range map[string]schema.GroupVersionResource{plan.StatefulSet: statefulSets, plan.Deployment: deployments} {
		s.decide(t, fleet(kind, 1), "")
		tb := table{resource: resource, fields: workloadFields, names: func(int) string { return workload }, reset: s.remove(resource)}
		t.Run(kind, func(t *testing.T) {
			tb := tb
			tb.webhook, tb.cells = "controllers.ballast.argoproj.io", controllerCells(kind)
			s.run(t, tb)
		})
		t.Run(kind+" scale", func(t *testing.T) {
			tb := tb
			tb.webhook, tb.cells, tb.fields = "scale.ballast.argoproj.io", scaleCells(kind), scaleFields
			s.run(t, tb)
		})
		t.Run(kind+" scale of a workload that opted out", func(t *testing.T) {
			p := fleet(kind, 1)
			p.Unmanaged = true
			s.decide(t, p, "")
			tb := tb
			tb.webhook, tb.cells, tb.fields = "scale.ballast.argoproj.io", optedOutCells(kind), scaleFields
			s.run(t, tb)
		})
		s.remove(resource)(t, workload)
	}
}

// remove deletes an object of a kind that may be there.
func (s *site) remove(resource schema.GroupVersionResource) func(*testing.T, string) {
	return func(t *testing.T, name string) {
		t.Helper()
		at := s.dynamic(t, s.admin).Resource(resource).Namespace(namespace)
		background := metav1.DeletePropagationBackground // nobody collects garbage here
		if at.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}) != nil {
			return
		}
		eventually(t, "the deletion of "+name, func() bool {
			_, err := at.Get(t.Context(), name, metav1.GetOptions{})
			return err != nil
		})
	}
}

package matrix

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"ballast/planner/plan"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// podOf is a pod as its workload's controller makes it, whose containers ask for little.
func podOf(kind, owner string, change ...func(map[string]any)) *unstructured.Unstructured {
	asks := func() map[string]any {
		return map[string]any{"requests": map[string]any{"cpu": "250m", "memory": "512Mi"}}
	}
	metadata := map[string]any{"namespace": namespace, "ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "5d0a", "controller": true}}}
	if kind == "ReplicaSet" {
		metadata["labels"] = map[string]any{"pod-template-hash": "7d9"}
	}
	object := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": map[string]any{"containers": []any{
		map[string]any{"name": "sidecar", "image": "a", "resources": asks()},
		map[string]any{"name": "renamed", "image": "b", "args": []any{"/usr/local/bin/argocd-application-controller"}, "resources": asks()},
	}}}
	for _, c := range change {
		c(object)
	}
	return &unstructured.Unstructured{Object: object}
}

// sizesOf prints what each container asks for.
func sizesOf(u *unstructured.Unstructured) map[string]string {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "containers")
	fields := map[string]string{}
	for _, c := range containers {
		var parts []string
		for _, path := range [][]string{{"requests", "cpu"}, {"requests", "memory"}, {"limits", "cpu"}, {"limits", "memory"}} {
			text, there, _ := unstructured.NestedString(c.(map[string]any), append([]string{"resources"}, path...)...)
			if !there {
				text = "-"
			}
			parts = append(parts, text)
		}
		fields[fmt.Sprint(c.(map[string]any)["name"])] = strings.Join(parts, " ")
	}
	return fields
}

// podCells: a pod's size is decided when it is made. Afterwards only the subresource changes it, about which no webhook is
// asked: the planner mends that.
func podCells(kind, owner string) map[string]cell {
	const said = "ballast: requests.cpu, requests.memory stay as planned (plan 1)"
	sized := map[string]string{"sidecar": "250m 512Mi - -", "renamed": "1 2Gi - 4Gi"}
	small := map[string]string{"sidecar": "250m 512Mi - -", "renamed": "250m 512Mi - -"}
	enforced := "limits.memory=4Gi requests.cpu=1 requests.memory=2Gi"
	comes := outcome{Fields: sized, Audit: audit("Restored", "1", "limits.memory=- requests.cpu=250m requests.memory=512Mi", enforced), Warnings: []string{said}}
	opted := func(o map[string]any) {
		o["metadata"].(map[string]any)["annotations"] = map[string]any{plan.AnnotationUnmanaged: "true"}
	}
	exact := func(o map[string]any) {
		for _, c := range o["spec"].(map[string]any)["containers"].([]any) {
			c.(map[string]any)["resources"] = map[string]any{"limits": map[string]any{"cpu": "250m", "memory": "512Mi"}}
		}
	}
	return map[string]cell{
		"CREATE":             {write: create(podOf(kind, owner)), want: comes},
		"apply of a new pod": {write: apply("gitops", false, podOf(kind, owner)), want: comes},
		"CREATE of a pod that opted out": {write: create(podOf(kind, owner, opted)),
			want: outcome{Fields: small, Audit: audit("Unmanaged", "1", "-", "-")}},
		"CREATE of a pod that may not change its class": {write: create(podOf(kind, owner, exact)),
			want: outcome{Fields: map[string]string{"sidecar": "250m 512Mi 250m 512Mi", "renamed": "250m 512Mi 250m 512Mi"},
				Audit:    audit("Immutable", "1", "limits.memory=512Mi requests.cpu=250m requests.memory=512Mi", "-"),
				Warnings: []string{"ballast: the pod keeps its template's size (plan 1): its request of cpu would be above its limit: let the size name l..."}}},
		"CREATE of another workload's pod": {write: create(podOf(kind, "argocd-server")), want: outcome{Fields: small}},
		"merge patch of a label":           {before: podOf(kind, owner), write: patch(types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`), want: outcome{Fields: sized}},
		"resize": {before: podOf(kind, owner), write: patch(types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"renamed","resources":{"requests":{"cpu":"2"}}}]}}`, "resize"),
			want: outcome{Fields: map[string]string{"sidecar": "250m 512Mi - -", "renamed": "2 2Gi - 4Gi"}}},
	}
}

func (s *site) pods(t *testing.T) {
	for kind, maker := range map[string]struct {
		kind, name string
		names      func(int) string
	}{
		plan.StatefulSet: {plan.StatefulSet, workload, func(i int) string { return fmt.Sprintf("%s-%d", workload, i) }},
		plan.Deployment:  {"ReplicaSet", workload + "-7d9", func(i int) string { return fmt.Sprintf("%s-7d9-aaaa%d", workload, i) }},
	} {
		t.Run(kind, func(t *testing.T) {
			p := fleet(kind, 1)
			p.Sizes = &plan.Sizes{Default: plan.Resources{Requests: map[string]string{"cpu": "1", "memory": "2Gi"}, Limits: map[string]string{"memory": "4Gi"}}}
			s.decide(t, p, "")
			s.run(t, table{resource: pods, webhook: "pods.ballast.argoproj.io", fields: sizesOf, reset: s.remove(pods), names: maker.names, cells: podCells(maker.kind, maker.name)})
			for i := range len(podCells(maker.kind, maker.name)) {
				s.remove(pods)(t, maker.names(i))
			}
		})
	}
}

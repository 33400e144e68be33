package conflicts_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"ballast/e2e/hooked"
	"ballast/planner/conflicts"
	"ballast/planner/size/inputs"
	"ballast/planner/surroundings"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// planner is a client with the rights of the planner's ServiceAccount, of which it has none but what the test gives it.
func (w *world) planner() client.Client {
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:argocd:ballast-planner", Groups: []string{"system:authenticated"}}
	return w.connect(config)
}

// may lets the planner read the workload, as the base does.
func (w *world) may(rules ...rbacv1.PolicyRule) {
	w.Helper()
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get"}})
	w.create(&rbacv1.Role{ObjectMeta: w.meta("reads"), Rules: rules})
	w.create(&rbacv1.RoleBinding{ObjectMeta: w.meta("reads"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reads"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "argocd", Name: "ballast-planner"}}})
	hooked.Allows(w, w.client, "system:serviceaccount:argocd:ballast-planner", w.namespace, rules...)
}

// component installs what a file of components/size-nodes ships.
func (w *world) component(file string, into client.Object) {
	w.Helper()
	text, err := os.ReadFile("../../manifests/components/size-nodes/" + file)
	w.must(err)
	w.must(yaml.UnmarshalStrict(text, into))
	w.create(into)
}

func (w *world) reads(want inputs.Wants) inputs.Surroundings {
	w.Helper()
	t := w.plan.Target
	t.Container = "c"
	got, err := surroundings.Look(w.ctx, w.planner(), t, want, noon)
	w.must(err)
	return got
}

func readsNodes(t *testing.T, w *world) {
	w.may()
	for i, memory := range []string{"16Gi", "64Gi", "32Gi"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + memory[:2]}}
		if i == 1 {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}
		w.create(n)
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3920m"), corev1.ResourceMemory: resource.MustParse(memory)}
		w.must(w.client.Status().Update(w.ctx, n))
	}
	want := &inputs.Nodes{At: noon, Why: "ballast may not list nodes: install component size-nodes"}
	if diff := cmp.Diff(want, w.reads(inputs.Wants{Nodes: true}).Nodes); diff != "" {
		t.Errorf("without the component (-want +got):\n%s", diff)
	}
	w.component("role.yaml", &rbacv1.ClusterRole{})
	w.component("binding.yaml", &rbacv1.ClusterRoleBinding{})
	want = &inputs.Nodes{At: noon, Count: 3, Cores: 11.76, Memory: 112 << 30, Largest: &inputs.Room{Node: "node-32", CPU: 3920, Memory: 32 << 30}}
	var got *inputs.Nodes
	hooked.Eventually(t, "the planner may list nodes: the authorizer's cache lags behind", func() bool {
		got = w.reads(inputs.Wants{Nodes: true}).Nodes
		return got.Why == ""
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with the component (-want +got):\n%s", diff)
	}
}

func readsAnHPA(t *testing.T, w *world) {
	w.addHPA("grow", "StatefulSet")
	want := inputs.Surroundings{HPA: &inputs.Desired{At: noon,
		Why: `ballast may not list horizontalpodautoscalers.autoscaling: see that its Role ballast-planner is the shipped one`}}
	if diff := cmp.Diff(want, w.reads(inputs.Wants{HPA: true})); diff != "" {
		t.Errorf("without the right (-want +got):\n%s", diff)
	}
	got, err := surroundings.Look(w.ctx, w.client, w.plan.Target, inputs.Wants{VPA: true, HPA: true}, noon)
	w.must(err)
	want = inputs.Surroundings{VPA: &inputs.Recommendation{At: noon, Why: "this cluster has no verticalpodautoscalers.autoscaling.k8s.io"},
		HPA: &inputs.Desired{At: noon, Name: "grow", Why: "HorizontalPodAutoscaler grow has not said yet how many replicas it wants"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// withVPA installs as much of the VPA's CRD as one needs to be stored: one that recommends is an input, and one that changes pods a
// neighbour.
func withVPA(t *testing.T, w *world) {
	anything := true
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "verticalpodautoscalers", Singular: "verticalpodautoscaler", Kind: "VerticalPodAutoscaler",
		ListKind: "VerticalPodAutoscalerList"}
	_, err := envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "verticalpodautoscalers.autoscaling.k8s.io", Annotations: map[string]string{
			"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "autoscaling.k8s.io", Scope: apiextensionsv1.NamespaceScoped, Names: names,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}}}}},
	}}})
	w.must(err)
	w.client = w.connect(w.config)
	vpa := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
		"metadata": map[string]any{"namespace": w.namespace, "name": "advice"},
		"spec": map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": controller},
			"updatePolicy": map[string]any{"updateMode": "Off"}},
		"status": map[string]any{"recommendation": map[string]any{"containerRecommendations": []any{
			map[string]any{"containerName": "c", "target": map[string]any{"cpu": "250m", "memory": "262144k"}}}},
			"conditions": []any{map[string]any{"type": "RecommendationProvided", "status": "True"}}}}}
	w.create(vpa)
	w.may(rbacv1.PolicyRule{APIGroups: []string{"autoscaling.k8s.io"}, Resources: []string{"verticalpodautoscalers"}, Verbs: []string{"list"}})
	want := inputs.Surroundings{VPA: &inputs.Recommendation{At: noon, Name: "advice", Target: map[string]float64{"cpu": 0.25, "memory": 262144000},
		Lower: map[string]float64{}, Upper: map[string]float64{}}}
	var got inputs.Surroundings
	hooked.Eventually(t, "the planner may list VPAs: the authorizer's cache lags behind", func() bool {
		got = w.reads(inputs.Wants{VPA: true})
		return got.VPA.Why == ""
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.finds(w.client, nil)
	w.must(unstructured.SetNestedField(vpa.Object, "Recreate", "spec", "updatePolicy", "updateMode"))
	w.must(w.client.Update(w.ctx, vpa))
	w.finds(w.client, []conflicts.Finding{{Kind: conflicts.Resized, Subject: "VPA argocd/advice", Message: "VPA argocd/advice evicts or resizes pods of StatefulSet " + controller +
		" (updateMode Recreate): set its updatePolicy.updateMode to Off; size rules may read what it recommends (input vpaTargetMemory)"}})
}

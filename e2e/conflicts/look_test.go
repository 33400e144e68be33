package conflicts_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ballast/e2e/apiserver"
	"ballast/planner/conflicts"
	"ballast/planner/plan"
)

// TestOnARealAPIServer looks and elects on one API server, each case in its own namespace.
func TestOnARealAPIServer(t *testing.T) {
	config := apiserver.Start(t)
	for _, c := range []struct { // in this order: the last cases have KEDA's CRD
		name string
		run  func(*testing.T, *world)
	}{
		{"a workload without neighbours", findsNobody},
		{"an HPA and a budget", findsAnHPAAndABudget},
		{"a Deployment's HPA, and a budget of no words", findsThoseOfADeployment},
		{"without the right to look", saysWhatItCannotLookAt},
		{"an API server that fails halfway", passesAnErrorOn},
		{"one installation leads and its standby takes over", electsAStandby},
		{"another installation stands by until the first is gone for good", standsByForAnother},
		{"another installation leads at once when told to", leadsWhenTold},
		{"the claim stands in the Lease, written with it", claims},
		{"a Lease of an older version is anybody's", takesAnOldLease},
		{"a lost race is a conflict", losesARace},
		{"thousands of managers keep nobody from writing the Lease", writesALeaseOfManyManagers},
		{"what sizes read of nodes, with component size-nodes and without", readsNodes},
		{"what sizes read of an HPA", readsAnHPA},
		{"with KEDA's CRD", withKEDA},
		{"with the VPA's CRD", withVPA},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newWorld(t, config)) })
	}
}

// world is a namespace with an application-controller of four replicas.
type world struct {
	*testing.T
	ctx       context.Context
	config    *rest.Config
	client    client.WithWatch
	namespace string
	plan      plan.Plan
}

func newWorld(t *testing.T, config *rest.Config) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), config: config}
	w.client = w.connect(config)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "argocd-"}}
	w.create(namespace)
	w.namespace, w.plan = namespace.Name, planOf(4)
	w.plan.Target.Namespace = w.namespace
	replicas := int32(4)
	w.create(&appsv1.StatefulSet{ObjectMeta: w.meta(controller), Spec: appsv1.StatefulSetSpec{Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: podLabels()}, Template: podTemplate()}})
	return w
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels()}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "argocd"}}}}
}

func (w *world) connect(config *rest.Config) client.WithWatch {
	w.Helper()
	c, err := client.NewWithWatch(config, client.Options{})
	w.must(err)
	return c
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) create(o client.Object) {
	w.Helper()
	w.must(w.client.Create(w.ctx, o))
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// finds compares what a look finds, in a namespace that goes by the name argocd.
func (w *world) finds(r client.Reader, want []conflicts.Finding) {
	w.Helper()
	got, err := conflicts.Look(w.ctx, r, w.plan)
	if err != nil {
		w.Error(err)
	}
	w.same(want, got)
}

func (w *world) same(want, got []conflicts.Finding) {
	w.Helper()
	for i := range got {
		got[i].Subject = strings.ReplaceAll(got[i].Subject, w.namespace, "argocd")
		got[i].Message = strings.ReplaceAll(got[i].Message, w.namespace, "argocd")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("findings (-want +got):\n%s", diff)
	}
}

func (w *world) addHPA(name, kind string, owner ...metav1.OwnerReference) {
	w.Helper()
	meta := w.meta(name)
	meta.OwnerReferences = owner
	w.create(&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 8,
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: kind, Name: controller}}})
}

const (
	hpaSays = "HPA argocd/grow scales StatefulSet " + controller +
		" between 1 and 8, and ballast holds its replicas at 4: delete the HPA, or set partition.replicas: workload so that it decides their number"
	pdbSays = "PodDisruptionBudget argocd/keep asks for minAvailable 4, which spares none of the 4 replicas of the plan" +
		": no node that runs one of StatefulSet " + controller + " can be drained; set maxUnavailable: 1 there, which fits any number of replicas above 0"
)

func findsNobody(_ *testing.T, w *world) { w.finds(w.client, nil) }

func findsAnHPAAndABudget(_ *testing.T, w *world) {
	w.addHPA("grow", "StatefulSet")
	w.addHPA("another", "Deployment")
	four := intstr.FromInt32(4)
	w.create(&policyv1.PodDisruptionBudget{ObjectMeta: w.meta("keep"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &four, Selector: &metav1.LabelSelector{MatchLabels: podLabels()}}})
	w.create(&policyv1.PodDisruptionBudget{ObjectMeta: w.meta("other"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &four, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}}})
	w.finds(w.client, []conflicts.Finding{{Kind: conflicts.Autoscaled, Subject: "HPA argocd/grow", Message: hpaSays}, {Kind: conflicts.PDBBlocks, Subject: "PodDisruptionBudget argocd/keep", Message: pdbSays}})
}

func findsThoseOfADeployment(_ *testing.T, w *world) {
	w.create(&appsv1.Deployment{ObjectMeta: w.meta(controller), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: podLabels()}, Template: podTemplate()}})
	w.plan.Target.Kind = plan.Deployment
	w.addHPA("grow", "Deployment")
	w.create(&policyv1.PodDisruptionBudget{ObjectMeta: w.meta("keep"), Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: podLabels()}}})
	deployment := func(s string) string { return strings.ReplaceAll(s, "StatefulSet", "Deployment") }
	w.finds(w.client, []conflicts.Finding{{Kind: conflicts.Autoscaled, Subject: "HPA argocd/grow", Message: deployment(hpaSays)},
		{Kind: conflicts.PDBBlocks, Subject: "PodDisruptionBudget argocd/keep", Message: strings.Replace(deployment(pdbSays), "minAvailable 4", "neither minAvailable nor maxUnavailable", 1)}})
}

func cannot(resource string) conflicts.Finding {
	return conflicts.Finding{Kind: conflicts.CannotLook, Subject: resource, Message: "ballast may not list " + resource +
		` in "argocd", so it cannot say whether one concerns the application-controller: grant the planner's ServiceAccount list on it`}
}

// stranger is a client without any right.
func (w *world) stranger() client.Client {
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "stranger", Groups: []string{"system:authenticated"}}
	return w.connect(config)
}

func saysWhatItCannotLookAt(_ *testing.T, w *world) {
	w.addHPA("grow", "StatefulSet")
	w.finds(w.stranger(), []conflicts.Finding{cannot("horizontalpodautoscalers.autoscaling"), cannot("poddisruptionbudgets.policy")})
}

func passesAnErrorOn(t *testing.T, w *world) {
	w.addHPA("grow", "StatefulSet")
	broken := errors.New("connection refused")
	r := interceptor.NewClient(w.client, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, budgets := list.(*policyv1.PodDisruptionBudgetList); budgets {
			return broken
		}
		return c.List(ctx, list, opts...)
	}})
	got, err := conflicts.Look(w.ctx, r, w.plan)
	w.same([]conflicts.Finding{{Kind: conflicts.Autoscaled, Subject: "HPA argocd/grow", Message: hpaSays}}, got)
	if want := `listing poddisruptionbudgets.policy in "` + w.namespace + `": connection refused`; !errors.Is(err, broken) || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// withKEDA installs as much of KEDA's CRD as ScaledObjects need to be stored.
func withKEDA(_ *testing.T, w *world) {
	anything := true
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "scaledobjects", Singular: "scaledobject", Kind: "ScaledObject", ListKind: "ScaledObjectList"}
	_, err := envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "scaledobjects.keda.sh"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "keda.sh", Scope: apiextensionsv1.NamespaceScoped, Names: names,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}}}}},
	}}})
	w.must(err)
	w.client = w.connect(w.config)
	w.finds(w.client, nil)
	scaled := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
			"metadata": map[string]any{"namespace": w.namespace, "name": name}, "spec": spec}}
	}
	keda := scaled("wake", map[string]any{"scaleTargetRef": map[string]any{"kind": "StatefulSet", "name": controller}, "minReplicaCount": int64(2)})
	w.create(keda)
	w.create(scaled("by-default-a-deployment", map[string]any{"scaleTargetRef": map[string]any{"name": controller}}))
	w.create(scaled("of-another-group", map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "example.org/v1", "kind": "StatefulSet", "name": controller}}))
	w.create(scaled("odd", map[string]any{"scaleTargetRef": "nothing that KEDA takes", "maxReplicaCount": "8"}))
	yes := true
	w.addHPA("keda-hpa-wake", "StatefulSet", metav1.OwnerReference{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: "wake", UID: keda.GetUID(), Controller: &yes})
	w.finds(w.client, []conflicts.Finding{{Kind: conflicts.Autoscaled, Subject: "ScaledObject argocd/wake", Message: "ScaledObject argocd/wake scales StatefulSet " + controller +
		" between 2 and 100, and ballast holds its replicas at 4: delete the ScaledObject, or set partition.replicas: workload so that it decides their number"}})
	w.finds(w.stranger(), []conflicts.Finding{cannot("horizontalpodautoscalers.autoscaling"), cannot("scaledobjects.keda.sh"), cannot("poddisruptionbudgets.policy")})
}

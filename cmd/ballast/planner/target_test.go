package planner

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/e2e/apiserver"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
)

// TestAPlanOfNobodysChoosesNoTarget: whoever may write the plan ConfigMap while no planner leads names a workload there that
// is not there, by a plan that matches its digest and has no MAC. One that has it chooses among two.
func TestAPlanOfNobodysChoosesNoTarget(t *testing.T) {
	server := apiserver.Start(t)
	c, err := client.New(server, client.Options{})
	fixture.MustDo(t, err)
	addController(t, c, 2)
	fixture.MustDo(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: store.KeyName("ballast-plan")}}))
	of := func(kind string) plan.Plan {
		return plan.Plan{Revision: 1, Mode: plan.Enforce, PlannerUser: "system:serviceaccount:argocd:ballast-planner",
			Target:   plan.Target{Kind: kind, Namespace: "argocd", Name: fixture.ControllerName, Container: "application-controller"},
			Replicas: 1, ControllerReplicas: 1, MaxReplicas: 16, Clusters: map[string]plan.Row{"prod": {Replica: 0}}}
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\nmode: Enforce\ntarget: {namespace: argocd, name: " + fixture.ControllerName + "}\n" +
		fmt.Sprintf("poll: {prometheus: {url: \"http://127.0.0.1:%s\", timeout: 1s}}\n", fixture.FreePort(t))
	fixture.MustDo(t, os.WriteFile(file, []byte(text), 0o600))
	app := &plannerApp{rest: server, options: &options{config: file}, log: logr.Discard()}
	fixture.MustDo(t, app.loadConfig())
	finds := func(want string) {
		t.Helper()
		if err := app.identify(t.Context(), c); err != nil || app.target.Kind != want {
			t.Errorf("it finds %+v, %v; want the %s", app.target, err, want)
		}
	}
	forged, err := codec.Encode(of(plan.Deployment))
	fixture.MustDo(t, err)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-plan",
		Annotations: map[string]string{plan.AnnotationDigest: plan.Digest(forged)}}, Data: map[string]string{plan.KeyPlan: forged}}
	fixture.MustDo(t, c.Create(t.Context(), cm))
	finds(plan.StatefulSet)

	st := store.New(store.Options{Client: c, Reader: c, Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history", Key: store.KeyName("ballast-plan")})
	fixture.MustDo(t, st.Unseal(t.Context()))
	finds(plan.StatefulSet) // there is a key, and the forged plan has no MAC by it
	stands, err := st.Read(t.Context())
	fixture.MustDo(t, err)
	_, err = st.WritePlan(t.Context(), stands, of(plan.StatefulSet), 0, configmap.Meta{})
	fixture.MustDo(t, err)
	var set appsv1.StatefulSet
	fixture.MustDo(t, c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set))
	beside := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: set.Name, Labels: set.Labels},
		Spec: appsv1.DeploymentSpec{Selector: set.Spec.Selector, Template: set.Spec.Template}}
	fixture.MustDo(t, c.Create(t.Context(), beside))
	finds(plan.StatefulSet)
}

package uninstall

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/uninstall/objects"
)

// TestWhatOthersLabelledStays: ballast's label alone makes nothing ballast's. What has it under another name is told, and left.
func TestWhatOthersLabelledStays(t *testing.T) {
	in := func(namespace, name string) metav1.ObjectMeta {
		m := labelled(name)
		m.Namespace = namespace
		return m
	}
	deployment := func(name, account string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: in("argocd", name)}
		d.Spec.Template.Spec.ServiceAccountName = account
		return d
	}
	o := &options{plan: "ballast-plan", history: "ballast-history", timeout: time.Second, every: time.Millisecond, now: time.Now}
	o.cluster.Namespace = "argocd"
	c := stoppedSite(t, 4, 4, "argocd")
	settled(t, c)
	for _, own := range []client.Object{
		deployment("ballast-planner", "my-planner"), deployment("ballast-webhook", ""),
		&corev1.ServiceAccount{ObjectMeta: in("argocd", "my-planner")}, // as components/retarget renames it
		&corev1.ServiceAccount{ObjectMeta: in("argocd", "my-webhook")}, // of an uninstall that ended after its Deployments
		&rbacv1.RoleBinding{ObjectMeta: in("argocd", "ballast-webhook"), Subjects: []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Name: "my-webhook"}}},
		&corev1.ConfigMap{ObjectMeta: in("argocd", "ballast-config")}, &corev1.ConfigMap{ObjectMeta: in("argocd", "ballast-plan-status")},
		&rbacv1.ClusterRole{ObjectMeta: labelled("ballast-planner.argocd")},
	} {
		fixture.MustDo(t, c.Create(t.Context(), own))
	}
	foreign := []client.Object{
		deployment("dashboard", "dashboard"), &corev1.ServiceAccount{ObjectMeta: in("argocd", "dashboard")},
		&corev1.ConfigMap{ObjectMeta: in("argocd", "team-values")}, &corev1.Service{ObjectMeta: in("argocd", "dashboard")},
		&rbacv1.Role{ObjectMeta: in("argocd", "pinner")},
		&rbacv1.RoleBinding{ObjectMeta: in("argocd", "pinner"), Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "ada"}}},
		&rbacv1.ClusterRole{ObjectMeta: labelled("pinner.argocd")},
		deployment("ballast-watch", "ballast-watch"),
		&corev1.ConfigMap{ObjectMeta: in("argocd-b", "ballast-config")}, // another installation's, as what follows
		&rbacv1.ClusterRole{ObjectMeta: labelled("ballast-planner.argocd-b")},
	}
	for _, object := range foreign {
		fixture.MustDo(t, c.Create(t.Context(), object))
	}
	target, w, _, err := o.target(t.Context(), c)
	fixture.MustDo(t, err)
	var out bytes.Buffer
	fixture.MustDo(t, o.carryOut(t.Context(), c, o.steps(target, w), &out))

	for _, object := range foreign {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("%T %s: %v", object, object.GetName(), err)
		}
	}
	if want := "  Deployment \"ballast-watch\" is of `ballast watch`, which is an installation of its own: it stays\n"; !strings.Contains(out.String(), want) {
		t.Errorf("people hear %q, want %q in it", out.String(), want)
	}
	const why = ` has ballast's label, and is none that ballast's manifests make: it stays`
	want := []string{`Deployment "dashboard"`, `Service "dashboard"`, `ServiceAccount "dashboard"`, `RoleBinding "pinner"`, `Role "pinner"`,
		`ConfigMap "team-values"`, `ClusterRole "pinner.argocd"`}
	var told []string
	for _, line := range strings.Split(out.String(), "\n") {
		if name, is := strings.CutSuffix(line, why); is {
			told = append(told, strings.TrimSpace(name))
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	left := &corev1.ServiceAccountList{}
	fixture.MustDo(t, c.List(t.Context(), left))
	if len(left.Items) != 1 {
		t.Errorf("%d ServiceAccounts are left, want the dashboard's alone", len(left.Items))
	}
	if diff := cmp.Diff([]string{"ConfigMap ballast-config", "ConfigMap team-values"}, leftOf(t, c)); diff != "" { // the first is another's
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func labelled(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{objects.PartOf: "ballast"}}
}

package connect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func forbidden(message string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New(message))
}

func TestARightThatIsMissingIsNamed(t *testing.T) {
	for message, want := range map[string]string{
		`User "alice" cannot list resource "secrets" in API group "" in the namespace "argocd"`: "the right to list secrets is missing: `kubectl auth can-i list secrets --namespace=argocd` says no",
		`User "alice" cannot patch resource "statefulsets/scale" in API group "apps" in the namespace "argocd"`: "the right to patch statefulsets.apps/scale is missing: " +
			"`kubectl auth can-i patch statefulsets.apps --subresource=scale --namespace=argocd` says no",
		`User "alice" cannot get resource "mutatingwebhookconfigurations" in API group "admissionregistration.k8s.io" at the cluster scope`: "the right to get " +
			"mutatingwebhookconfigurations.admissionregistration.k8s.io is missing",
		"admission webhook denied it":                                  "",
		"User \"a\" cannot do resource \"x\x1b[2J\" in API group \"\"": "",
	} {
		o := &Options{Namespace: "argocd"}
		err := o.explain(fmt.Errorf("listing: %w", forbidden(message)))
		_, added, _ := strings.Cut(err.Error(), "\n")
		if !strings.HasPrefix(added, want) || want == "" && added != "" {
			t.Errorf("%s: %q", message, added)
		}
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: it is no refusal any more", message)
		}
	}
}

func TestWithoutAKubeconfigItSaysWhereOneIsNamed(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := (&Options{}).REST()
	if err == nil || err.Error() != "there is no kubeconfig, and this is no pod: name one by --kubeconfig or KUBECONFIG, as for kubectl" {
		t.Error(err)
	}
}

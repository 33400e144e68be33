package manifests

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"ballast/planner/config"
	"ballast/planner/installation"
)

// TestThePlannerComparesWithWhatIsInstalled: what the planner expects of a namespace and a workload is what kustomize makes of the
// manifests for them, in each overlay and with each component, and what the planner may read.
func TestThePlannerComparesWithWhatIsInstalled(t *testing.T) {
	shipped := installation.Names{Namespace: "argocd", Workload: "argocd-application-controller", Plan: config.Default().Plan.ConfigMap}
	shipped.Planner = "system:serviceaccount:argocd:ballast-planner"
	retargeted := installation.Names{Namespace: namespace, Workload: workload, Plan: shipped.Plan, Planner: "system:serviceaccount:" + namespace + ":ballast-planner"}
	for dir, names := range map[string]installation.Names{
		"base":                         shipped,
		overlays()["cert-manager"]:     shipped,
		overlays()["self-signed"]:      shipped,
		overlays()["retarget-example"]: retargeted,
		everything:                     retargeted,
		failClosed:                     shipped,
	} {
		t.Run(dir, func(t *testing.T) {
			want, err := installation.Shipped(names)
			if err != nil {
				t.Fatal(err)
			}
			in := decode(t, build(t, dir))
			installed, there := in.Webhooks[want.Name]
			if !there {
				t.Fatalf("there is no configuration %s", want.Name)
			}
			if found := installation.Compare(want, installation.Opened(names, &installed)); len(found) > 0 {
				t.Errorf("it differs: %+v", found)
			}
			role, binding := in.ClusterRoles["ballast-planner."+names.Namespace], in.ClusterBindings["ballast-planner."+names.Namespace]
			wantRules := []rbacv1.PolicyRule{{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations"},
				ResourceNames: []string{"ballast." + names.Namespace, installation.OldName}, Verbs: []string{"get"}}}
			if diff := cmp.Diff(wantRules, role.Rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			got := fmt.Sprint(binding.RoleRef.Name, binding.Subjects)
			account := in.Deployments["ballast-planner"].Spec.Template.Spec.ServiceAccountName
			if want := fmt.Sprint("ballast-planner."+names.Namespace, []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: names.Namespace}}); got != want {
				t.Errorf("bound: %s, want %s", got, want)
			}
		})
	}
}

func TestTheReadmeStatesTheLowestKubernetes(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "Kubernetes " + installation.LowestKubernetes + " or newer"; !strings.Contains(string(text), "\n## Kubernetes\n\nballast is made for "+want) {
		t.Errorf("README.md does not say that ballast is made for %s", want)
	}
	if text, err = os.ReadFile("../README.md"); err != nil {
		t.Fatal(err)
	}
	if want := "\nYou need Kubernetes " + installation.LowestKubernetes + " or newer"; !strings.Contains(string(text), want) {
		t.Errorf("../README.md does not say %q", want)
	}
}

package manifests

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

const nudge = "ballast-planner-nudge"

var nudgeRules = []rbacv1.PolicyRule{{APIGroups: []string{"argoproj.io"}, Resources: []string{"applications"}, Verbs: []string{"get", "list", "patch"}}}

func TestTheBaseMayNotTouchApplications(t *testing.T) {
	in := decode(t, build(t, "base"))
	all := map[string][]rbacv1.PolicyRule{}
	for name, role := range in.Roles {
		all[name] = role.Rules
	}
	for name, role := range in.ClusterRoles {
		all["ClusterRole "+name] = role.Rules
	}
	for name, list := range all {
		for _, r := range list {
			for _, group := range r.APIGroups {
				if group == "argoproj.io" || group == "*" {
					t.Errorf("%s has %v", name, r)
				}
			}
		}
	}
	if in.Roles[nudge].Name != "" {
		t.Errorf("%v", in.Roles[nudge])
	}
}

// nudgers are the ClusterRoles that reach Applications.
func nudgers(in install) (names []string) {
	for name, role := range in.ClusterRoles {
		if len(role.Rules) == 0 || slices.Contains(role.Rules[0].APIGroups, "argoproj.io") {
			names = append(names, name)
		}
	}
	return names
}

// TestEveryOverlayNudges since rollout live does by default, in Argo CD's namespace and in no other.
func TestEveryOverlayNudges(t *testing.T) {
	for name, dir := range overlays() {
		if name == "base" {
			continue
		}
		in := decode(t, build(t, dir))
		if diff := cmp.Diff(nudgeRules, in.Roles[nudge].Rules); diff != "" {
			t.Errorf("%s -want +got:\n%s", name, diff)
		}
		if len(nudgers(in)) > 0 {
			t.Errorf("%s may refresh Applications in all namespaces", name)
		}
		subjects := in.Deployments["ballast-planner"].Spec.Template.Spec.ServiceAccountName
		binding := in.RoleBindings[nudge]
		want := rbacv1.RoleBinding{
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: subjects, Namespace: in.Roles[nudge].Namespace}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: nudge},
		}
		if diff := cmp.Diff(want, rbacv1.RoleBinding{Subjects: binding.Subjects, RoleRef: binding.RoleRef}); diff != "" || binding.Namespace != in.Roles[nudge].Namespace {
			t.Errorf("%s, in %q -want +got:\n%s", name, binding.Namespace, diff)
		}
	}
}

func TestNudgingInAnyNamespaceIsTheSameEverywhere(t *testing.T) {
	in := decode(t, build(t, everything))
	binding := in.ClusterBindings[nudge+"."+namespace]
	want := rbacv1.ClusterRoleBinding{
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "ballast-planner", Namespace: namespace}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: nudge + "." + namespace},
	}
	if diff := cmp.Diff(want, rbacv1.ClusterRoleBinding{Subjects: binding.Subjects, RoleRef: binding.RoleRef}); diff != "" {
		t.Errorf("binding -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(nudgeRules, in.ClusterRoles[nudge+"."+namespace].Rules) + cmp.Diff(nudgeRules, in.Roles[nudge].Rules); diff != "" {
		t.Errorf("rules -want +got:\n%s", diff)
	}
}

// TestWithoutTheComponentNobodyNudges: the overlay that README.md describes is own-config's, but for the namespace.
func TestWithoutTheComponentNobodyNudges(t *testing.T) {
	in := decode(t, build(t, "testdata/own-config"))
	delete(in.ClusterRoles, "ballast-planner."+namespace) // by which it reads the webhook configuration
	if _, role := in.Roles[nudge]; role || len(in.ClusterRoles) > 0 {
		t.Errorf("%v, %v", in.Roles[nudge], in.ClusterRoles)
	}
}

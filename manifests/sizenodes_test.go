package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestNodesAreListedWhereSomebodyWantsThem: by component size-nodes, list alone, and by no overlay.
func TestNodesAreListedWhereSomebodyWantsThem(t *testing.T) {
	reads := func(in install) (names []string) {
		for name, role := range in.ClusterRoles {
			for _, r := range role.Rules {
				for _, resource := range r.Resources {
					if resource == "nodes" || resource == "*" {
						names = append(names, name)
					}
				}
			}
		}
		return names
	}
	for name, dir := range overlays() {
		if got := reads(decode(t, build(t, dir))); len(got) > 0 {
			t.Errorf("%s: %v may read nodes", name, got)
		}
	}
	in := decode(t, build(t, everything))
	role := "ballast-planner-nodes." + namespace
	if diff := cmp.Diff([]string{role}, reads(in)); diff != "" {
		t.Errorf("who may read nodes -want +got:\n%s", diff)
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}}
	if diff := cmp.Diff(want, in.ClusterRoles[role].Rules); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	b := in.ClusterBindings[role]
	if b.RoleRef.Name != role || len(b.Subjects) != 1 || b.Subjects[0].Namespace != namespace {
		t.Errorf("%s binds %s to %v", b.Name, b.RoleRef.Name, b.Subjects)
	}
}

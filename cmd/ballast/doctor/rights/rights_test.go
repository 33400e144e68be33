package rights

import (
	"testing"

	"ballast/cmd/ballast/fixture"
)

// What the manifests let the planner do is asked for one by one, by the installation's own names.
func TestTheRightsAreTheManifests(t *testing.T) {
	all, err := Shipped("gitops", "ctrl")
	fixture.MustDo(t, err)
	got := map[string]string{}
	for _, r := range all {
		got[Words(r.Rule)] = r.Attributes.Namespace
	}
	for want, namespace := range map[string]string{"patch secrets": "gitops", "patch statefulsets/scale.apps ctrl": "gitops",
		"update leases.coordination.k8s.io ballast-ctrl":                                "gitops",
		"get mutatingwebhookconfigurations.admissionregistration.k8s.io ballast.gitops": ""} {
		if in, there := got[want]; !there || in != namespace {
			t.Errorf("%s in %q is asked for: %v, in %q", want, namespace, there, in)
		}
	}
}

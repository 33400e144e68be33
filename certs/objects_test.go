package certs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesFollowTheSettings(t *testing.T) {
	s := Settings{Namespace: "gitops", Service: "hook"}
	if diff := cmp.Diff([]string{"hook.gitops.svc", "hook.gitops.svc.cluster.local"}, s.DNSNames()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

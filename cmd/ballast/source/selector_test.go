package source

import (
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/discover"
)

// TestWhatLooksAtAFleetKnowsTheSelectedClustersAlone: plan, whatif, explain and doctor observe, calibrate prepares, by the installed
// configuration.
func TestWhatLooksAtAFleetKnowsTheSelectedClustersAlone(t *testing.T) {
	w := fixture.QuietWorld()
	w.Config += "discover: {selector: {matchLabels: {team: ours}}}\npoll: {prometheus: {url: 'http://127.0.0.1:1'}}\n"
	w.Teams = map[string]string{"dev": "theirs", "lab": "ours", "prod-eu": "ours"}
	c := w.Client(t)
	s := &Source{installed: "ballast-config"}
	s.cluster.Namespace = "argocd"
	cmd := &cobra.Command{}
	cfg, err := s.Config(t.Context(), cmd, c, io.Discard)
	fixture.MustDo(t, err)
	observed, err := s.Observe(t.Context(), c, cfg, io.Discard)
	fixture.MustDo(t, err)
	prepared, err := s.Prepare(t.Context(), cmd, c, io.Discard)
	fixture.MustDo(t, err)
	for name, seen := range map[string]discover.Input{"observed": observed.Discovered, "prepared": prepared.Discovered} {
		names := []string{}
		for _, secret := range seen.Secrets {
			names = append(names, secret.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff([]string{"lab", "prod-eu"}, names); diff != "" {
			t.Errorf("Secrets that are %s (-want +got):\n%s", name, diff)
		}
	}
}

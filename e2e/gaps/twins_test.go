package gaps

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/e2e/fleet"
)

// TestWhatArgoCDMakesOfASecondSecretThatGoes proves what hazards 193 to 195 rest on: Argo CD keeps one cluster a server, adds it by
// the server without the slashes behind it, and deletes it by the text as it stands, whatever other Secret of the server is left.
func TestWhatArgoCDMakesOfASecondSecretThatGoes(t *testing.T) {
	v := startViews(t)
	const server = "https://prod-eu:6443"
	secret := func(name, server, shard string) *ViewSecret {
		return &ViewSecret{UID: "9e2f4c11-0b7a-4c57-a8a5-" + name, Name: name, Server: server, Shard: &shard}
	}
	owner, other := secret("owner", server, "2"), secret("other", "https://prod-us:6443", "1")
	start := func(ordinal int, secrets ...*ViewSecret) Step {
		s := &ViewStart{Replicas: "16", Shard: strconv.Itoa(ordinal), Algorithm: "legacy", InCluster: true}
		for _, one := range secrets {
			s.Secrets = append(s.Secrets, *one)
		}
		return Step{Do: DoStart, Pod: strconv.Itoa(ordinal), Start: s}
	}
	everywhere := func(event Step) []Step {
		var steps []Step
		for i := range 3 {
			event.Pod = strconv.Itoa(i)
			steps = append(steps, event)
		}
		return steps
	}
	begin := func() []Step {
		return []Step{{Do: DoReset}, start(0, owner, other), start(1, owner, other), start(2, owner, other)}
	}
	comesAndGoes := func(twin *ViewSecret) []Step {
		return append(append(begin(), everywhere(Step{Do: DoAdd, New: twin})...), everywhere(Step{Do: DoDelete, Old: twin})...)
	}
	update := func(before, after *ViewSecret) []Step { return everywhere(Step{Do: DoUpdate, Old: before, New: after}) }
	inCluster := fleet.InClusterServer
	for name, tc := range map[string]struct {
		steps [][]Step
		ask   string
		want  []string
	}{
		"its server goes to replica 0":           {[][]Step{comesAndGoes(secret("twin", server, "2"))}, server, []string{"0"}},
		"and stays there after a resync":         {[][]Step{comesAndGoes(secret("twin", server, "2")), update(owner, owner)}, server, []string{"0"}},
		"a write of the shard it has is nothing": {[][]Step{comesAndGoes(secret("twin", server, "2")), update(owner, secret("owner", server, "2"))}, server, []string{"0"}},
		"a replica that restarts is a second owner": {[][]Step{comesAndGoes(secret("twin", server, "2")), update(owner, owner),
			{{Do: DoStop, Pod: "2"}, start(2, owner, other)}}, server, []string{"0", "2"}},
		"the shard where it went makes all agree": {[][]Step{comesAndGoes(secret("twin", server, "2")), update(owner, owner),
			{{Do: DoStop, Pod: "2"}, start(2, owner, other)}, update(owner, secret("owner", server, "0"))}, server, []string{"0"}},
		"and back from there it is the owner's": {[][]Step{comesAndGoes(secret("twin", server, "2")), update(owner, secret("owner", server, "0")),
			update(secret("owner", server, "0"), owner)}, server, []string{"2"}},
		"another cluster's move after the resync mends it": {[][]Step{comesAndGoes(secret("twin", server, "2")), update(owner, owner),
			update(other, secret("other", "https://prod-us:6443", "0"))}, server, []string{"2"}},
		"and one before it does not": {[][]Step{comesAndGoes(secret("twin", server, "2")), update(other, secret("other", "https://prod-us:6443", "0"))},
			server, []string{"0"}},
		"a negative shard of one with a slash stays behind": {[][]Step{comesAndGoes(secret("twin", server+"/", "-1"))}, server, []string{}},
		"until a resync and another's move": {[][]Step{comesAndGoes(secret("twin", server+"/", "-1")), update(owner, owner),
			update(other, secret("other", "https://prod-us:6443", "0"))}, server, []string{"2"}},
		"the in-cluster's, without a Secret, stays for good": {[][]Step{comesAndGoes(secret("twin", inCluster+"/", "-1")),
			update(owner, owner), update(other, secret("other", "https://prod-us:6443", "0"))}, inCluster, []string{}},
		"without the slash it comes back": {[][]Step{comesAndGoes(secret("twin", inCluster, "-1"))}, inCluster, []string{"0"}},
		"600 slashes are as one":          {[][]Step{append(begin(), everywhere(Step{Do: DoAdd, New: secret("twin", server+strings.Repeat("/", 600), "-1")})...)}, server, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []Step
			for _, s := range tc.steps {
				steps = append(steps, s...)
			}
			got, err := v.Ask(steps, tc.ask)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]string{tc.want}, got); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

package config_test

import (
	"testing"

	"ballast/planner/config/configfile"
)

// The policy that size.defaults switches on makes replicas larger, too.
func TestWeightsMayRelyOnTheShippedPolicy(t *testing.T) {
	for text, allowed := range map[string]bool{"  defaults: true\n": true, "": false} {
		_, err := configfile.Parse([]byte("apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\nsize:\n  weights: [{from: 0, weight: 50}]\n" + text))
		if (err == nil) != allowed {
			t.Errorf("%q: %v, want it allowed: %t", text, err, allowed)
		}
	}
}

package main

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/planner"
	"ballast/cmd/ballast/serve"
	"ballast/cmd/ballast/webhook"
)

// TestTheMemoryIsBoundedBelowTheContainers, unless the environment says otherwise.
func TestTheMemoryIsBoundedBelowTheContainers(t *testing.T) {
	percent := debug.SetGCPercent(100)
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(before) })
	for name, tc := range map[string]struct {
		limit, want, container int64
		manifest, environment  string
	}{
		"the planner's":                    {planner.PlannerMemory, 420 << 20, 512 << 20, "planner.yaml", ""},
		"the webhook's":                    {webhook.WebhookMemory, 200 << 20, 256 << 20, "webhook.yaml", ""},
		"the planner's by who operates it": {planner.PlannerMemory, before, 512 << 20, "planner.yaml", "1GiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", tc.environment)
			debug.SetMemoryLimit(before)
			serve.BoundMemory(tc.limit)
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("the limit is %d, want %d", got, tc.want)
			}
			if got := containerMemory(t, tc.manifest); got != tc.container || tc.limit >= got {
				t.Errorf("the container has %d, want %d, and more than %d", got, tc.container, tc.limit)
			}
		})
	}
}

// containerMemory is the memory limit of the container that a manifest of the base runs.
func containerMemory(t *testing.T, manifest string) int64 {
	t.Helper()
	text, err := os.ReadFile(fixture.Checkout(t, "manifests", "base", manifest))
	fixture.MustDo(t, err)
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var d appsv1.Deployment
		if yaml.Unmarshal([]byte(doc), &d) == nil && d.Kind == "Deployment" {
			return d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
		}
	}
	t.Fatalf("%s has no Deployment", manifest)
	return 0
}

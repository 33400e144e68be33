package main

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/planner"
	"ballast/cmd/ballast/serve"
	"ballast/cmd/ballast/watch"
	"ballast/cmd/ballast/webhook"
)

// TestTheMemoryIsBoundedBelowTheContainers, whatever that is, unless the environment says otherwise.
func TestTheMemoryIsBoundedBelowTheContainers(t *testing.T) {
	percent := debug.SetGCPercent(100)
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(before) })
	for name, tc := range map[string]struct {
		memory                 serve.Memory
		want                   int64
		container, environment string
	}{
		"the planner's":                    {planner.Memory(), 420 << 20, "536870912", ""},
		"the webhook's":                    {webhook.Memory(), 200 << 20, "268435456", ""},
		"the watch's":                      {watch.Memory(), 200 << 20, "268435456", ""},
		"the planner's in twice as much":   {planner.Memory(), 840 << 20, "1073741824", ""},
		"the webhook's in half as much":    {webhook.Memory(), 100 << 20, "134217728", ""},
		"the planner's outside a pod":      {planner.Memory(), 420 << 20, "", ""},
		"the planner's of no number":       {planner.Memory(), 420 << 20, "512Mi", ""},
		"the planner's of less than none":  {planner.Memory(), 420 << 20, "-1", ""},
		"the planner's by who operates it": {planner.Memory(), before, "536870912", "1GiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", tc.environment)
			t.Setenv(serve.MemoryVariable, tc.container)
			debug.SetMemoryLimit(before)
			tc.memory.Bound()
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("the limit is %d, want %d", got, tc.want)
			}
		})
	}
}

// TestTheShippedContainersAreThoseThatTheCommandsKnow: their limits, and that they learn of another one.
func TestTheShippedContainersAreThoseThatTheCommandsKnow(t *testing.T) {
	for manifest, memory := range map[string]serve.Memory{
		"base/planner.yaml": planner.Memory(), "base/webhook.yaml": webhook.Memory(), "watch/watch.yaml": watch.Memory(),
	} {
		c := container(t, manifest)
		if got := c.Resources.Limits.Memory().Value(); got != memory.Container || memory.Limit >= got {
			t.Errorf("%s: the container has %d, the command knows of %d and takes %d", manifest, got, memory.Container, memory.Limit)
		}
		at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == serve.MemoryVariable })
		if at < 0 || c.Env[at].ValueFrom.ResourceFieldRef.Resource != "limits.memory" {
			t.Errorf("%s: %s is not the container's limit", manifest, serve.MemoryVariable)
		}
	}
}

// container is the one that a manifest's Deployment runs.
func container(t *testing.T, manifest string) corev1.Container {
	t.Helper()
	text, err := os.ReadFile(fixture.Checkout(t, "manifests", manifest))
	fixture.MustDo(t, err)
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var d appsv1.Deployment
		if yaml.Unmarshal([]byte(doc), &d) == nil && d.Kind == "Deployment" {
			return d.Spec.Template.Spec.Containers[0]
		}
	}
	t.Fatalf("%s has no Deployment", manifest)
	return corev1.Container{}
}

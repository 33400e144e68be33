package planner

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/plan"
)

// TestAPlannerAtWorkShowsItsSteps: what waits for a write, and for a change that the rules of change keep waiting. What a rollout and an
// unwell replica show are telemetry's tests.
func TestAPlannerAtWorkShowsItsSteps(t *testing.T) {
	server, prometheusURL := fleetOfTwo(t)
	c, err := client.New(server, client.Options{})
	fixture.MustDo(t, err)
	fixture.MustDo(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "c",
		Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
		StringData: map[string]string{"name": "c", "server": "https://c.example", "config": "{}"}}))
	registry := prometheus.NewRegistry()
	startConfigured(t, server, "planner-a", fmt.Sprintf(`apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
mode: Enforce
poll: {prometheus: {url: %q, metrics: [{id: apps, query: apps, noData: "0", match: {label: dest_server, to: server}}]}}
index: {pNorm: {p: "1", weights: {apps: "1"}}}
partition: {lpt: {}, capacity: "0.2"}
evaluate: {none: {}}
change: {out: {mode: "Off"}, up: {mode: "Off"}}
size: {policies: [{name: ours, rules: [{list: requests, resource: memory, base: 512Mi, slope: 8Mi, input: clusters, max: 4Gi}]}]}
`, prometheusURL), registry)
	names := []string{"ballast_planner_steps_total", "ballast_change_blocked_timestamp_seconds", "ballast_replicas_blocked", "ballast_size_blocked"}
	got, shown := map[string][]string{}, showing(t, registry, names...)
	for _, name := range names[2:] {
		for _, m := range shown[name].GetMetric() {
			got[name] = append(got[name], fmt.Sprint(m.GetLabel()[0].GetValue(), " ", m.GetLabel()[1].GetValue(), " ", m.GetGauge().GetValue()))
		}
	}
	want := map[string][]string{"ballast_replicas_blocked": {"out UpdatePolicy 1"}, "ballast_size_blocked": {"up UpdatePolicy 2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	for _, name := range names {
		if absent()[name] == "" {
			t.Errorf("%s needs nothing", name)
		}
	}
}

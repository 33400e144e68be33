package planner

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/e2e/apiserver"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// absent are the metrics that a quiet planner in mode Observe need not show, and what they wait for.
func absent() map[string]string {
	return map[string]string{
		"ballast_change_blocked_timestamp_seconds":        "a change that waits",
		"ballast_enforcement_configuration_matches":       "a webhook configuration",
		"ballast_enforcement_up":                          "a mode that enforces",
		"ballast_moves_blocked":                           "a change that waits",
		"ballast_ownership_unwell_replicas":               "a replica that is unwell",
		"ballast_planner_moves_left":                      "a rate of moves that binds",
		"ballast_planner_oldest_sample_timestamp_seconds": "a metric with an ageQuery",
		"ballast_planner_problems":                        "a problem",
		"ballast_planner_replica_capacity_ratio":          "a capacity",
		"ballast_planner_rollout_stage":                   "a rollout",
		"ballast_planner_rollout_wave":                    "a rollout",
		"ballast_planner_steps_total":                     "a write",
		"ballast_replicas_blocked":                        "a change that waits",
		"ballast_size_blocked":                            "a change that waits",
		"ballast_size_in_force":                           "a size policy",
		"ballast_size_rule_computed":                      "a size policy",
		"ballast_size_rule_decided":                       "a size policy",
		"ballast_size_rule_input":                         "a size policy",
	}
}

// documented are the planner's metrics of docs/metrics.md.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/metrics.md")
	fixture.MustDo(t, err)
	_, page, _ := strings.Cut(string(text), "## Planner")
	page, _, _ = strings.Cut(page, "## Webhook")
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(ballast_[a-z_]+)`").FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

// fleetOfTwo is an API server with a workload of two replicas and two clusters, and a Prometheus that answers any query of them.
func fleetOfTwo(t *testing.T) (server *rest.Config, prometheusURL string) {
	t.Helper()
	server = apiserver.Start(t)
	c, err := client.New(server, client.Options{})
	fixture.MustDo(t, err)
	addController(t, c, 2)
	fixture.MustDo(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: store.KeyName("ballast-plan")}}))
	for _, name := range []string{"a", "b"} {
		labels := map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}
		fixture.MustDo(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name, Labels: labels},
			StringData: map[string]string{"name": name, "server": "https://" + name + ".example", "shard": "1", "config": "{}"}}))
	}
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		now, a, b := time.Now().Unix(), int64(30), int64(10)
		if r.FormValue("query") == "age" { // when each was sampled
			a, b = now-5, now-7
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[
			{"metric":{"dest_server":"https://a.example"},"value":[%d,"%d"]},
			{"metric":{"dest_server":"https://b.example"},"value":[%d,"%d"]}]}}`, now, a, now, b)
	}))
	t.Cleanup(answers.Close)
	return server, answers.URL
}

// showing waits until a registry shows the metrics, and answers all that have a value.
func showing(t *testing.T, registry *prometheus.Registry, names ...string) (shown map[string]*dto.MetricFamily) {
	t.Helper()
	fixture.WaitFor(t, "what was decided is shown", func() bool {
		families, err := registry.Gather()
		fixture.MustDo(t, err)
		shown = map[string]*dto.MetricFamily{}
		for _, f := range families {
			if len(f.GetMetric()) > 0 {
				shown[f.GetName()] = f
			}
		}
		return !slices.ContainsFunc(names, func(name string) bool { return shown[name] == nil })
	})
	return shown
}

// TestARunningPlannerShowsTheDocumentedMetrics: a planner of two clusters and a Prometheus, on a real API server, with each cluster's
// own metrics switched on.
func TestARunningPlannerShowsTheDocumentedMetrics(t *testing.T) {
	server, prometheusURL := fleetOfTwo(t)
	registry := prometheus.NewRegistry()
	startConfigured(t, server, "planner-a", fmt.Sprintf(`apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
poll: {prometheus: {url: %q, metrics: [{id: apps, query: apps, match: {label: dest_server, to: server}}]}}
index: {pNorm: {p: "1", weights: {apps: "1"}}}
telemetry: {clusters: 1}
`, prometheusURL), registry)
	shown := showing(t, registry, "ballast_planner_plan_decided_timestamp_seconds", "ballast_cluster_load_ratio")
	names := documented(t)
	if len(names) < 50 {
		t.Fatalf("only %d metrics are documented: %v", len(names), names)
	}
	for _, name := range names {
		if shown[name] == nil && absent()[name] == "" {
			t.Errorf("a running planner does not show %s", name)
		}
	}
	of := func(name string) (all []string) {
		for _, m := range shown[name].GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			all = append(all, fmt.Sprintf("%s %v", strings.Join(labels, " "), m.GetGauge().GetValue()))
		}
		return all
	}
	got := map[string][]string{}
	for _, name := range []string{"ballast_cluster_load_ratio", "ballast_cluster_metric_value", "ballast_cluster_replica", "ballast_cluster_left_out"} {
		got[name] = of(name)
	}
	want := map[string][]string{"ballast_cluster_load_ratio": {"a 0.75"}, "ballast_cluster_metric_value": {"a apps 30"},
		"ballast_cluster_replica": {"a 1"}, "ballast_cluster_left_out": {" 2"}} // b, and the cluster that Argo CD runs in
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the heaviest cluster's own (-want +got):\n%s", diff)
	}
	decided := shown["ballast_planner_plan_decided_timestamp_seconds"].GetMetric()[0].GetGauge().GetValue()
	if age := time.Since(time.Unix(int64(decided), 0)); age < -time.Second || age > time.Hour {
		t.Errorf("the plan is %s old", age)
	}
}

// ofBusy are the metrics of TestABusyPlannerShowsMore.
func ofBusy() []string {
	return []string{"ballast_enforcement_configuration_matches", "ballast_enforcement_up", "ballast_planner_moves_left",
		"ballast_planner_oldest_sample_timestamp_seconds", "ballast_planner_problems", "ballast_planner_replica_capacity_ratio",
		"ballast_size_in_force", "ballast_size_rule_computed", "ballast_size_rule_decided", "ballast_size_rule_input"}
}

// TestABusyPlannerShowsMore: what waits for a mode that enforces, for a policy of sizes, a capacity or samples with an age.
func TestABusyPlannerShowsMore(t *testing.T) {
	server, prometheusURL := fleetOfTwo(t)
	registry := prometheus.NewRegistry()
	startConfigured(t, server, "planner-a", fmt.Sprintf(`apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
mode: Enforce
poll: {prometheus: {url: %q, metrics: [{id: apps, query: apps, ageQuery: age, match: {label: dest_server, to: server}}]}}
index: {pNorm: {p: "1", weights: {apps: "1"}}}
partition: {sticky: {}, capacity: "0.2"}
size: {policies: [{name: ours, rules: [{list: requests, resource: memory, base: 512Mi, slope: 8Mi, input: clusters, max: 4Gi}]}]}
`, prometheusURL), registry)
	shown := showing(t, registry, ofBusy()...)
	if shown["ballast_enforcement_up"].GetMetric()[0].GetGauge().GetValue() != 0 {
		t.Error("the plan is held by no webhook")
	}
	var sizes []string
	for _, m := range shown["ballast_size_in_force"].GetMetric() {
		sizes = append(sizes, fmt.Sprint(m.GetLabel()[1].GetValue(), " ", m.GetGauge().GetValue()/(1<<20)))
	}
	if diff := cmp.Diff([]string{"0 520", "1 528"}, sizes); diff != "" { // MiB: of one cluster, Argo CD's own, and of two
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}

package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/watch"
	"ballast/e2e/assets"
)

// The watch alone is one Deployment that may write nothing and read no Secret, with arguments that the command has.
func TestTheWatchIsOneDeploymentThatOnlyLooks(t *testing.T) {
	built := build(t, "watch")
	in := decode(t, built)
	golden := filepath.Join("testdata", "watch.golden.yaml")
	if *update {
		if err := os.WriteFile(golden, built, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(built)); diff != "" {
		t.Errorf("-recorded +built (go test ./manifests -update records):\n%s", diff)
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets", "deployments"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
			ResourceNames: []string{"argocd-cm", "argocd-cmd-params-cm", "argocd-app-controller-shard-cm"}},
		{APIGroups: []string{"argoproj.io"}, Resources: []string{"applications"}, Verbs: []string{"list"}},
	}
	if diff := cmp.Diff(map[string][]rbacv1.PolicyRule{"ballast-watch": rules}, rulesOf(in.Roles)); diff != "" {
		t.Errorf("what it may do (-want +got):\n%s", diff)
	}
	if len(in.Deployments) != 1 {
		t.Fatalf("there are %d Deployments, want 1", len(in.Deployments))
	}
	args := in.Deployments["ballast-watch"].Spec.Template.Spec.Containers[0].Args
	if err := watch.NewCommand().ParseFlags(args[1:]); args[0] != "watch" || err != nil {
		t.Errorf("it runs %q: %v", args, err)
	}
}

func rulesOf(roles map[string]rbacv1.Role) map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	for name, r := range roles {
		rules[name] = r.Rules
	}
	return rules
}

// Prometheus' own promtool evaluates the four alerts, both ways.
func TestTheWatchsAlertsFire(t *testing.T) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("watch/alerts/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec struct {
			Groups []map[string]any `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	for _, rule := range object.Spec.Groups[0]["rules"].([]any) { // promtool compares annotations whole
		delete(rule.(map[string]any), "annotations")
	}
	rules, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"rules.yaml": string(rules), "test.yaml": watchAlertTests} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"}, {"test", "rules", "test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), binaries.Path("promtool"), args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// watchAlertTests has each alert silent for a fleet that is well, and fire once its gauge has stood for long enough.
const watchAlertTests = `
rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
  - {series: 'ballast_watch_orphaned_clusters{namespace="argocd"}', values: '0x10 2x20'}
  - {series: 'ballast_watch_doubled_clusters{namespace="argocd"}', values: '0x10 1x20'}
  - {series: 'ballast_watch_unwell_replicas{namespace="argocd"}', values: '0x10 1x20'}
  - {series: 'ballast_watch_silent_pods{namespace="argocd"}', values: '0x10 1x20'}
  - {series: 'ballast_watch_last_look_timestamp_seconds{namespace="argocd"}', values: '0+60x30'}
  alert_rule_test:
  - {eval_time: 10m, alertname: BallastWatchOrphanedClusters, exp_alerts: []}
  - {eval_time: 10m, alertname: BallastWatchDoubledClusters, exp_alerts: []}
  - {eval_time: 10m, alertname: BallastWatchUnwellReplicas, exp_alerts: []}
  - {eval_time: 10m, alertname: BallastWatchBlind, exp_alerts: []}
  - {eval_time: 12m, alertname: BallastWatchOrphanedClusters, exp_alerts: [{exp_labels: {severity: critical, namespace: argocd}}]}
  - {eval_time: 12m, alertname: BallastWatchDoubledClusters, exp_alerts: [{exp_labels: {severity: warning, namespace: argocd}}]}
  - {eval_time: 15m, alertname: BallastWatchUnwellReplicas, exp_alerts: []}
  - {eval_time: 16m, alertname: BallastWatchUnwellReplicas, exp_alerts: [{exp_labels: {severity: warning, namespace: argocd}}]}
  - {eval_time: 21m, alertname: BallastWatchBlind, exp_alerts: [{exp_labels: {severity: warning, namespace: argocd}}]}
- interval: 1m
  input_series:
  - {series: 'ballast_watch_silent_pods{namespace="argocd"}', values: '0x40'}
  - {series: 'ballast_watch_last_look_timestamp_seconds{namespace="argocd"}', values: '0x40'}
  alert_rule_test:
  - {eval_time: 14m, alertname: BallastWatchBlind, exp_alerts: []}
  - {eval_time: 16m, alertname: BallastWatchBlind, exp_alerts: [{exp_labels: {severity: warning, namespace: argocd}}]}
- interval: 1m # it is gone, and a pod elsewhere says that it looks
  input_series:
  - {series: 'ballast_watch_last_look_timestamp_seconds{namespace="argocd"}', values: '0+60x10'}
  - {series: 'ballast_watch_last_look_timestamp_seconds{namespace="tenant"}', values: '1000000000000x500'}
  alert_rule_test:
  - {eval_time: 24m, alertname: BallastWatchBlind, exp_alerts: []}
  - {eval_time: 27m, alertname: BallastWatchBlind, exp_alerts: [{exp_labels: {severity: warning, namespace: argocd}}]}
  - {eval_time: 480m, alertname: BallastWatchBlind, exp_alerts: []}
`

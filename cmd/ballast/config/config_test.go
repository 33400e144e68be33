package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/settings"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
)

const configHeader = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"

// defaultSummary is what check says of the defaults, but for the replicas.
const defaultSummary = `ok: -
  mode      Observe, every 1m
  target    (found by its labels) in namespace argocd
  metrics   objects, events, reconciles, apps from http://prometheus-operated.monitoring:9090
`

// runConfig runs `ballast config` and returns its standard output and its error's text.
func runConfig(t *testing.T, stdin string, args ...string) (string, string) {
	t.Helper()
	var out bytes.Buffer
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		return out.String(), err.Error()
	}
	return out.String(), ""
}

func TestConfigDefaultPrintsTheDefaults(t *testing.T) {
	out, failure := runConfig(t, "", "default")
	if failure != "" {
		t.Fatal(failure)
	}
	fixture.Golden(t, "default", out)
	got, err := configfile.Parse([]byte(out), settings.CheckMetrics)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), got); diff != "" {
		t.Errorf("-default +printed:\n%s", diff)
	}
}

func TestConfigCheck(t *testing.T) {
	for name, c := range map[string]struct{ text, out, failure string }{
		"the least there can be": {configHeader, defaultSummary + "  replicas  min(2, found) to max(16, found)\n", ""},
		"one's own": {configHeader + `mode: Enforce
target: {namespace: gitops, name: my-controller}
poll: {prometheus: {url: "http://prom", metrics: [{id: mine, queryPerCluster: 'up{server="{{ .server }}"}'}]}}
index: {pNorm: {weights: {mine: 1}}}
partition: {replicas: 3}
`, `ok: -
  mode      Enforce, every 1m
  target    my-controller in namespace gitops
  metrics   mine from http://prom
  replicas  always 3
`, ""},
		"an autoscaler's replicas": {configHeader + "partition: {replicas: workload}", defaultSummary + "  replicas  the workload's own\n", ""},
		"two mistakes": {configHeader + "mode: enforce\nintervall: 1m\n",
			`mode: Unsupported value: "enforce": supported values: "Observe", "Hold", "Enforce" (line 3)
intervall: Forbidden: is not a field: did you mean interval? (line 4)
`, `checking "-": 2 mistakes`},
		"a template that does not fill": {configHeader + `poll:
  prometheus:
    metrics:
    - id: mine
      queryPerCluster: up{server="{{ .cluster }}"}
index: {pNorm: {weights: {mine: 1}}}
`, `poll.prometheus.metrics[0].queryPerCluster: Invalid value: rendering the query of cluster "in-cluster": template: query:1:14: executing "query" at <.cluster>: map has no entry for key "cluster" (line 7)
`, `checking "-": 1 mistake`},
		"a function that would read the host": {configHeader + `poll:
  prometheus:
    metrics:
    - id: mine
      query: up{a="{{ env "HOME" }}"}
      match: {label: server}
index: {pNorm: {weights: {mine: 1}}}
`, `poll.prometheus.metrics[0].query: Invalid value: parsing the query template: the function "env" may not be used in a query: write the value out, for a template cannot look into its host (line 7)
`, `checking "-": 1 mistake`},
		"weights that are not the default metrics'": {configHeader + "index:\n  pNorm:\n    weights:\n      apps: 1\n      mine: 1\n",
			`index.pNorm.weights[events]: Required value: the default metric has no weight: give it one, 0 to leave it out of the load (line 5)
index.pNorm.weights[objects]: Required value: the default metric has no weight: give it one, 0 to leave it out of the load (line 5)
index.pNorm.weights[reconciles]: Required value: the default metric has no weight: give it one, 0 to leave it out of the load (line 5)
index.pNorm.weights[mine]: Invalid value: is none of the default metrics apps, events, objects, reconciles (line 7)
`, `checking "-": 4 mistakes`},
		"no YAML": {"mode: [", "", "parsing the configuration: yaml: line 1: did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			out, failure := runConfig(t, c.text, "check", "-")
			if diff := cmp.Diff(c.out, out) + cmp.Diff(c.failure, failure); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestConfigCheckReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(configHeader), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, failure := runConfig(t, "", "check", path); failure != "" || !strings.HasPrefix(out, "ok: "+path+"\n") {
		t.Errorf("got %q, %q", out, failure)
	}
	if _, failure := runConfig(t, "", "check", path+".absent"); !strings.HasPrefix(failure, "reading the configuration: ") {
		t.Errorf("got %q", failure)
	}
}

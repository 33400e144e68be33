package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"ballast/e2e/assets"
	"ballast/planner/telemetry"
	"ballast/webhook"
	"ballast/webhook/source"
)

// ruleTests is what is read of promtool's test files.
type ruleTests struct {
	Files []string   `json:"rule_files"`
	Tests []ruleTest `json:"tests"`
}

type ruleTest struct {
	Alerts []struct {
		Alert string `json:"alertname"`
		Want  []any  `json:"exp_alerts"`
	} `json:"alert_rule_test"`
}

func ruleTestFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/alerts/*.test.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the tests of the rules: %q, %v", files, err)
	}
	return files
}

// TestTheAlertsFireAsPrometheusItselfEvaluatesThem runs promtool over the rules and over testdata/alerts/*.test.yaml. Those
// compare annotations whole, so that the rules are tested without their descriptions, which are no templates.
func TestTheAlertsFireAsPrometheusItselfEvaluatesThem(t *testing.T) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	promtool := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), binaries.Path("promtool"), args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args[:2], " "), err, out)
		}
	}
	dir, args := t.TempDir(), []string{"test", "rules"}
	write := func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	promtool("check", "rules", "--lint=all", "--lint-fatal", write("whole.yaml", []byte(plainText(t))))
	for _, f := range ruleTestFiles(t) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, write(filepath.Base(f), text))
	}
	rules := shippedRules(t)
	for _, a := range rules.alerts() {
		delete(a.Annotations, "description")
		delete(a.Annotations, "runbook_url")
	}
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Base(plainRules), text)
	promtool(args...)
}

// TestEveryAlertIsTestedBothWays: that it fires, and that it does not.
func TestEveryAlertIsTestedBothWays(t *testing.T) {
	type ways struct{ Fires, Silent bool }
	want, got := map[string]ways{}, map[string]ways{}
	for _, a := range shippedRules(t).alerts() {
		want[a.Alert] = ways{true, true}
	}
	for _, f := range ruleTestFiles(t) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var tests ruleTests
		if err := yaml.Unmarshal(text, &tests); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{filepath.Base(plainRules)}, tests.Files); diff != "" {
			t.Errorf("%s tests other rules:\n%s", f, diff)
		}
		for _, test := range tests.Tests {
			for _, a := range test.Alerts {
				w := got[a.Alert]
				got[a.Alert] = ways{w.Fires || len(a.Want) > 0, w.Silent || len(a.Want) == 0}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +tested:\n%s", diff)
	}
}

// metricLabels are the names of the metrics that the planner and the webhook register, each with its labels.
func metricLabels(t *testing.T) map[string][]string {
	t.Helper()
	r := prometheus.NewRegistry()
	telemetry.NewMetrics(r)
	webhook.NewMetrics(r)
	source.NewMetrics(r)
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		r.Describe(descs) // and not Gather, for a vector without values shows nothing
	}()
	form := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	metrics := map[string][]string{}
	for d := range descs {
		found := form.FindStringSubmatch(d.String())
		if found == nil {
			t.Fatalf("%s has another form", d)
		}
		metrics[found[1]] = strings.Split(found[2], ",")
	}
	return metrics
}

// scope is what an alert's expression is grouped by first. The namespace of an API server's series is not ballast's.
func scope(expr string) string {
	if strings.Contains(expr, "apiserver_") {
		return "cluster, "
	}
	return "cluster, namespace, "
}

// TestTheAlertsUseWhatIsMeasured: the metrics are there, with these labels and these values, and nothing is grouped by a
// label with many values.
func TestTheAlertsUseWhatIsMeasured(t *testing.T) {
	metrics := metricLabels(t)
	code := strings.Join(slices.Concat(sources(t, "../planner/telemetry"), sources(t, "../planner/cycle"), sources(t, "../planner/cycle/*"), sources(t, "../planner/change"), sources(t, "../planner/controller"), sources(t, "../webhook")), "")
	metrics["apiserver_admission_webhook_fail_open_count"] = []string{"name", "type", "job", "instance"} // of package k8s.io/apiserver/pkg/admission/metrics and of its scrape
	use := regexp.MustCompile(`((?:ballast|apiserver)_[a-z_]+)(?:\{([^}]*)\})?`)
	match := regexp.MustCompile(`([a-z_]+)=~?"([a-z|]+)"`)
	group := regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
	for _, a := range shippedRules(t).alerts() {
		few := []string{"cluster", "namespace", "job"} // of the scrape
		used := use.FindAllStringSubmatch(a.Expr, -1)
		if len(used) == 0 {
			t.Errorf("%s uses no metric", a.Alert)
		}
		for _, u := range used {
			has, there := metrics[u[1]]
			if !there {
				t.Errorf("%s uses %s, which nothing measures", a.Alert, u[1])
			}
			few = append(few, has...)
			for _, m := range match.FindAllStringSubmatch(u[2], -1) {
				if !slices.Contains(has, m[1]) {
					t.Errorf("%s: %s has no label %s, but %q", a.Alert, u[1], m[1], has)
				}
				for _, value := range strings.Split(m[2], "|") {
					if !strings.Contains(code, `"`+value+`"`) {
						t.Errorf("%s: nothing has the value %s=%q", a.Alert, m[1], value)
					}
				}
			}
		}
		for _, g := range group.FindAllStringSubmatch(a.Expr, -1) {
			if of := scope(a.Expr); !strings.HasPrefix(g[1]+", ", of) {
				t.Errorf("%s mixes installations: it is grouped by %s", a.Alert, g[1])
			}
			for _, label := range strings.Split(g[1], ", ") {
				if !slices.Contains(few, label) || slices.Contains([]string{"replica", "metric"}, label) {
					t.Errorf("%s is grouped by %s", a.Alert, label)
				}
			}
		}
	}
}

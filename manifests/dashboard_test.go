package manifests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"ballast/cmd/ballast/watch"
	"ballast/e2e/assets"
	"ballast/planner/telemetry"
	"ballast/webhook"
	"ballast/webhook/source"
)

// dashboard is what is read of the dashboard's panels.
type dashboard struct {
	Panels []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		Targets []struct {
			Expr   string `json:"expr"`
			Legend string `json:"legendFormat"`
		} `json:"targets"`
	} `json:"panels"`
}

// TestTheDashboardShowsWhatIsMeasured: Prometheus' own parser takes each expression, each metric is one that ballast
// registers, with the labels that the legend names, and every metric but those of rules' inner workings is on it or in an alert.
func TestTheDashboardShowsWhatIsMeasured(t *testing.T) {
	text, err := os.ReadFile("components/dashboard/ballast.json")
	if err != nil {
		t.Fatal(err)
	}
	var board dashboard
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	metrics, ids := metricLabels(t), map[int]bool{}
	rules := "groups:\n- name: dashboard\n  rules:\n"
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d, %q: twice, without a title or without an expression", p.ID, p.Title)
		}
		ids[p.ID] = true
		for i, target := range p.Targets {
			expr := strings.ReplaceAll(target.Expr, "$namespace", "argocd")
			rules += fmt.Sprintf("  - record: panel:%d:%d\n    expr: %q\n", p.ID, i, expr)
			checkMeasured(t, p.Title, target.Expr, target.Legend, metrics)
		}
	}
	if len(ids) < 20 {
		t.Fatalf("only %d panels were read", len(ids))
	}
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), binaries.Path("promtool"), "check", "rules", "--lint=none", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func checkMeasured(t *testing.T, title, expr, legend string, metrics map[string][]string) {
	t.Helper()
	has := []string{"pod", "le"} // of the scrape, and of a histogram
	used := regexp.MustCompile(`ballast_[a-z_]+`).FindAllString(expr, -1)
	if len(used) == 0 || !strings.Contains(expr, `namespace="$namespace"`) {
		t.Errorf("%s: %s is of no metric, or of every namespace", title, expr)
	}
	for _, name := range used {
		labels, there := metrics[strings.TrimSuffix(name, "_bucket")]
		if !there {
			t.Errorf("%s: nothing measures %s", title, name)
		}
		has = append(has, labels...)
	}
	for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(by[1], ", ") {
			if !slices.Contains(has, label) {
				t.Errorf("%s: %s has no label %s", title, expr, label)
			}
		}
	}
	for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(legend, -1) {
		if !slices.Contains(has, label[1]) {
			t.Errorf("%s: %s has no label %s", title, expr, label[1])
		}
	}
}

// filled registers, and gives each vector one series, so that all of them are gathered.
type filled struct{ *prometheus.Registry }

func (f filled) MustRegister(collectors ...prometheus.Collector) {
	f.Registry.MustRegister(collectors...)
	for _, c := range collectors {
		f.fill(c)
	}
}

func (f filled) Register(c prometheus.Collector) error {
	defer f.fill(c)
	return f.Registry.Register(c)
}

func (f filled) fill(c prometheus.Collector) {
	descs := make(chan *prometheus.Desc, 10)
	c.Describe(descs)
	_, labels, _ := strings.Cut((<-descs).String(), "variableLabels: {")
	labels, _, _ = strings.Cut(labels, "}")
	var values []string
	if labels != "" {
		values = make([]string, strings.Count(labels, ",")+1)
	}
	switch v := c.(type) {
	case *prometheus.GaugeVec:
		v.WithLabelValues(values...)
	case *prometheus.CounterVec:
		v.WithLabelValues(values...)
	case *prometheus.HistogramVec:
		v.WithLabelValues(values...)
	}
}

// TestTheMetricsAreNamedAsPrometheusWants, by its own linter.
func TestTheMetricsAreNamedAsPrometheusWants(t *testing.T) {
	r := filled{prometheus.NewRegistry()}
	telemetry.NewMetrics(r)
	webhook.NewMetrics(r)
	source.NewMetrics(r)
	watch.NewFigures(r)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(families), len(metricLabels(t)); got < want-2 { // what is set by a function may show nothing yet
		t.Errorf("%d of %d metrics are linted", got, want)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

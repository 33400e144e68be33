package config_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/config/validation"
	"ballast/planner/plan"
)

var update = flag.Bool("update", false, "rewrite testdata/*.bad.txt and *.good.out.yaml")

func TestGoodFilesAreReadOverTheDefaults(t *testing.T) {
	for name, want := range map[string]func(*config.PlannerConfig){
		"minimal": func(*config.PlannerConfig) {},
		"full": func(c *config.PlannerConfig) {
			three, twelve, capacity, noData := 3, 12, config.Decimal("1.5"), config.Decimal("0")
			c.Mode, c.Interval = plan.Enforce, config.Duration(2*time.Minute)
			c.Target = plan.Target{Namespace: "gitops", Kind: "Deployment", Name: "controller", Container: "application-controller"}
			c.Plan = config.Objects{ConfigMap: "the-plan", History: "the-history"}
			c.Discover = config.Discover{MaxShrink: 25, Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "argocd.argoproj.io/secret-type", Operator: "In", Values: []string{"cluster"}},
			}}}
			c.Poll.MinCoverage, c.Poll.MaxDrop = "0.75", 40
			p := c.Poll.Prometheus
			p.URL, p.Timeout, p.Concurrency, p.MaxAge = "https://prometheus.example/path", config.Duration(30*time.Second), 8, config.Duration(7*24*time.Hour)
			p.PodLabel, p.Matchers = "kubernetes_pod_name", map[string]string{"cluster": "prod", "env": `a"b`}
			p.HTTP.BearerTokenFile = ""
			p.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: "token"}
			p.HTTP.TLSConfig = promconfig.TLSConfig{CAFile: "/etc/ca.crt", MinVersion: promconfig.TLSVersions["TLS13"]}
			p.HTTP.EnableHTTP2 = false
			p.Metrics = []config.Metric{
				{ID: "apps", Query: "count by (dest_server) (argocd_app_info)", AgeQuery: "min(timestamp(up))", NoData: &noData,
					Match: &config.Match{Label: "dest_server", To: "server", Aliases: map[string]string{"https://10.0.0.1": "https://kubernetes.default.svc"}}},
				{ID: "custom", QueryPerCluster: `sum(x{server="{{ .server }}"})`},
			}
			c.Normalize = config.Normalize{Robust: &config.Robust{PositiveOffset: "0.01"}}
			c.Index = config.Index{PNorm: &config.PNorm{P: "2.5", Weights: map[string]config.Decimal{"apps": "1", "custom": "0.25"}}}
			c.Partition = config.Partition{LPT: &config.LPT{}, MinReplicas: &three, MaxReplicas: &twelve, Replicas: &config.Replicas{Fixed: 5}, MaxClustersPerReplica: 40, Capacity: &capacity}
			c.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(6 * time.Hour), MinSamples: 10}}
			c.Change.Moves.Rate = []config.Rate{{Percent: 5, Period: config.Duration(30 * time.Minute)}}
			c.Change.Restarts.Every = config.Duration(12 * time.Hour)
			c.Rollout = config.Rollout{Default: &config.DefaultRollout{RolloutRestart: true}, StageTimeout: config.Duration(5 * time.Minute)}
			c.Failover = &config.Failover{After: config.Duration(2 * time.Minute), Settle: config.Duration(time.Minute)}
		},
		"change-by-the-minute": func(c *config.PlannerConfig) {
			c.Change.Moves.Rate = []config.Rate{{Percent: 1, Period: config.Duration(time.Minute)}, {Percent: 100, Period: config.Duration(7 * 24 * time.Hour)}}
		},
		"change-unlimited": func(c *config.PlannerConfig) { c.Change.Moves.Rate = []config.Rate{} },
		"failover-off":     func(c *config.PlannerConfig) { c.Failover = nil },
		"failover-patient": func(c *config.PlannerConfig) { c.Failover = &config.Failover{After: config.Duration(15 * time.Minute)} },
		"rollout-live": func(c *config.PlannerConfig) {
			c.Rollout = config.Rollout{Live: &config.LiveRollout{MaxMovesPerWave: 25, Nudge: true, Adopt: config.AdoptNow}, StageTimeout: config.Duration(10 * time.Minute)}
		},
		"rollout-live-defaults": func(c *config.PlannerConfig) {
			c.Rollout = config.Rollout{Live: &config.LiveRollout{MaxMovesPerWave: 5, Nudge: true, Adopt: config.AdoptNow}, StageTimeout: config.Duration(10 * time.Minute)}
		},
		"rollout-live-adopt": func(c *config.PlannerConfig) {
			c.Rollout = config.Rollout{Live: &config.LiveRollout{MaxMovesPerWave: 5, Nudge: true, Adopt: config.AdoptWithNext}, StageTimeout: config.Duration(10 * time.Minute)}
		},
		"rollout-x0y": func(c *config.PlannerConfig) {
			c.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(20 * time.Minute)}
		},
		"replicas-workload": func(c *config.PlannerConfig) { c.Partition.Replicas = &config.Replicas{Workload: true} },
		"other-implementations": func(c *config.PlannerConfig) {
			c.Normalize, c.Evaluate = config.Normalize{MinMax: &config.MinMax{}}, config.Evaluate{None: &config.None{}}
		},
		"beside-the-implementation": func(c *config.PlannerConfig) {
			four := 4
			c.Partition.MinReplicas, c.Rollout.StageTimeout = &four, config.Duration(time.Minute)
		},
		"http-bound-token": func(c *config.PlannerConfig) {
			c.Poll.Prometheus.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: "/var/run/secrets/ballast/prometheus/token"}
		},
		"sticky": func(c *config.PlannerConfig) {
			half := config.Decimal("0.5")
			c.Partition.Capacity, c.Partition.Sticky = &half, &config.Sticky{High: "0.9", Low: "0.7", Drain: "0.6"}
			c.Evaluate.CostBenefit.Horizon = config.Duration(72 * time.Hour)
		},
		"weights": func(c *config.PlannerConfig) {
			least, most, capacity, at, long := 2, 12, config.Decimal("1.5"), config.Duration(0), config.Duration(6*time.Hour)
			c.Partition.MinReplicas, c.Partition.MaxReplicas, c.Partition.Capacity = &least, &most, &capacity
			c.Partition.Sticky.DownWindow = config.Duration(2 * time.Hour)
			c.Size.Weights = []config.WeightInterval{{From: "4", Weight: 60}, {From: "0", To: "4"}}
			c.Size.Policies = []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{{List: config.Requests, Resource: "memory", Base: "1Gi", Slope: "2Gi", Input: config.InputLoad}}}}
			c.Change.Out = config.Scaling{Timing: config.Timing{Mode: change.Maintenance, Windows: []config.Window{{Begin: "22:00", End: "02:00", TimeZone: "Europe/Berlin"}},
				Cooldown: config.Duration(10 * time.Minute)}, StabilizationWindow: &at,
				Rate: []config.Pace{{Replicas: 2, Period: config.Duration(time.Hour)}, {Percent: 50, Period: config.Duration(24 * time.Hour)}}}
			c.Change.In = config.Scaling{Timing: config.Timing{Mode: change.Off}, StabilizationWindow: &long, MinChange: &config.CountStep{Value: 2, Percentage: 20}}
		},
		"lpt": func(c *config.PlannerConfig) {
			c.Partition.Sticky, c.Partition.LPT = nil, &config.LPT{}
			c.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(24 * time.Hour), MinSamples: 10}}
		},
		"recorded": func(c *config.PlannerConfig) {
			c.Poll.Prometheus.URL, c.Poll.Prometheus.Recorded = "http://prometheus:9090", true
		},
		"pods": func(c *config.PlannerConfig) {
			c.Poll.MinCoverage, c.Poll.Prometheus, c.Poll.Pods = "0.8", nil, &config.Pods{}
			c.Index.PNorm.Weights = map[string]config.Decimal{"objects": "0.5", "events": "0.5", "reconciles": "0", "apps": "0"}
		},
		"groups": func(c *config.PlannerConfig) {
			c.Partition.Groups = []config.Group{
				{Name: "payments", Together: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "payments"}}},
				{Name: "hubs", Apart: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "tier", Operator: "In", Values: []string{"hub", "core"}}}}},
			}
		},
		"dimensions-work": func(c *config.PlannerConfig) { c.Index.Dimensions = &config.Dimensions{Work: &config.Work{}} },
		"dimensions-both": func(c *config.PlannerConfig) {
			c.Index.Dimensions = &config.Dimensions{Work: &config.Work{}, Memory: &config.Memory{Weights: map[string]config.Bytes{"objects": "2Ki"}, Base: "0", LimitShare: "0.8"}}
		},
		"memory": func(c *config.PlannerConfig) {
			capacity := config.Bytes("4.5Gi")
			c.Index.Dimensions = &config.Dimensions{Memory: &config.Memory{Weights: map[string]config.Bytes{"objects": "1.25Ki", "apps": "30000"}, Base: "256Mi", Capacity: &capacity,
				LimitShare: "0.8"}}
		},
		"memory-of-the-limit": func(c *config.PlannerConfig) {
			c.Index.Dimensions = &config.Dimensions{Memory: &config.Memory{Weights: map[string]config.Bytes{"objects": "2Ki"}, Base: "0", LimitShare: "0.7"}}
		},
		"memory-learned": func(c *config.PlannerConfig) {
			c.Index.Dimensions = &config.Dimensions{Memory: &config.Memory{Base: "0", LimitShare: "0.8"}}
		},
		"size-inputs": func(c *config.PlannerConfig) {
			c.Poll.Prometheus.Metrics = []config.Metric{{ID: "workingSet", Match: &config.Match{Label: "pod", To: config.MatchReplica},
				Query: `max by (pod) (container_memory_working_set_bytes{ {{.targets}},container="application-controller"})`}}
			c.Size.Defaults = true
			c.Size.NodeCap = config.SizeCap{CPU: "14", FromNodes: &config.FromNodes{Reserve: 20}}
			c.Size.Policies = []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
				{List: config.Requests, Resource: "memory", Slope: "1", Input: "workingSet", Scope: config.ScopeReplica},
				{Name: "cores", List: config.Requests, Resource: "cpu", Base: "200m", Slope: "10m", Input: "cores"},
				{Name: "nodes", List: config.Requests, Resource: "cpu", Slope: "1m", Input: "nodes", Scope: config.ScopeTotal},
				{Name: "vpa", List: config.Requests, Resource: "cpu", Slope: "100m", Input: "vpaTargetCPU"},
				{Name: "hpa", List: config.Requests, Resource: "cpu", Slope: "1m", Input: "hpaReplicas"},
			}}}
		},
		"size": func(c *config.PlannerConfig) {
			c.Size = config.Size{Apply: config.Template, Interval: config.Duration(5 * time.Minute), Limits: config.SizeLimits{Memory: &config.Headroom{Value: "512Mi", Percentage: 20}}, NodeCap: config.SizeCap{CPU: "16", Memory: "60Gi"}, Policies: []config.SizePolicy{
				{Name: "default", Rules: []config.SizeRule{
					{List: config.Requests, Resource: "memory", Base: "512Mi", Max: "16Gi"},
					{Name: "by-apps", List: config.Requests, Resource: "memory", Base: "0", Slope: "2Mi", Input: "apps", Per: "1",
						Segments:       []config.SizeSegment{{At: "0", Every: "4"}, {At: "32", Every: "8"}},
						DelayScaleDown: &config.SizeDelay{Max: "30", DelaySeconds: 600}, DelayScaleUp: &config.SizeDelay{DelaySeconds: 60},
						Min: "64Mi", Quantize: &config.Quantize{Base: "64Mi", Step: "64Mi", StepRatio: "1.5", MaxStep: "1Gi"}, Smooth: &config.Smooth{Target: 90, Samples: 60}},
				}},
				{Name: "ours", Priority: 10, Rules: []config.SizeRule{
					{List: config.Requests, Resource: "memory", Base: "1Gi"},
					{List: config.Limits, Resource: "cpu", Base: "200m", Slope: "10m", Input: "clusters", Scope: config.ScopeTotal, Container: "application-controller"},
				}},
			}}
		},
		"size-move-away": func(c *config.PlannerConfig) {
			c.Size.Interval, c.Size.MoveAway = config.Duration(15*time.Minute), &config.MoveAway{After: config.Duration(time.Hour)}
		},
		"change-sizes": func(c *config.PlannerConfig) {
			c.Change.Up = config.Resizing{Timing: config.Timing{Mode: change.Maintenance, Cooldown: config.Duration(10 * time.Minute),
				Windows: []config.Window{{Begin: "22:00", End: "02:00:30", TimeZone: "Europe/Berlin", Weekdays: []string{"Sat", "Sunday"}}}}}
			c.Change.Moves.Timing = config.Timing{Mode: change.Maintenance, Windows: []config.Window{{Begin: "22:00", End: "02:00"}}, Cooldown: config.Duration(time.Hour)}
			c.Change.Down = config.Resizing{Timing: config.Timing{Mode: change.Off}, StabilizationWindow: config.Duration(30 * time.Minute),
				MinChange: &config.SizeSteps{CPU: &config.SizeStep{Value: "100m", Percentage: 10}, Memory: &config.SizeStep{Value: "256Mi"}},
				Rate:      []config.Pace{{Replicas: 2, Period: config.Duration(time.Hour)}, {Percent: 25, Period: config.Duration(24 * time.Hour)}}}
		},
		"telemetry": func(c *config.PlannerConfig) { c.Telemetry.Clusters = 5000 },
		"nulls":     func(*config.PlannerConfig) {},
		"json":      func(c *config.PlannerConfig) { c.Mode = plan.Hold },
	} {
		t.Run(name, func(t *testing.T) {
			got, err := configfile.Parse(read(t, name+".good.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			expected := config.Default()
			want(&expected)
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestEveryGoodFileIsNamedAbove(t *testing.T) {
	files, err := filepath.Glob("testdata/*.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, strings.TrimSuffix(filepath.Base(f), ".good.yaml"))
	}
	want := []string{"beside-the-implementation", "change-by-the-minute", "change-sizes", "change-unlimited", "dimensions-both", "dimensions-work", "failover-off", "failover-patient", "full", "groups",
		"http-bound-token", "json", "lpt", "memory-learned", "memory-of-the-limit", "memory", "minimal", "nulls", "other-implementations", "pods", "recorded",
		"replicas-workload", "rollout-live-adopt", "rollout-live-defaults", "rollout-live", "rollout-x0y", "size-inputs", "size-move-away", "size", "sticky", "telemetry", "weights"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEachMistakeIsReportedWithItsPathLineAndMend(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("found %d files of mistakes: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".bad.yaml")
		t.Run(name, func(t *testing.T) {
			c, err := configfile.Parse(read(t, name+".bad.yaml"))
			if err == nil {
				t.Fatal("no mistake was found")
			}
			if diff := cmp.Diff(config.PlannerConfig{}, c); diff != "" {
				t.Errorf("a configuration came with the mistake:\n%s", diff)
			}
			got := messages(err)
			golden := filepath.Join("testdata", name+".bad.txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(read(t, name+".bad.txt")), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// messages puts each mistake on a line.
func messages(err error) string {
	var b strings.Builder
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return err.Error() + "\n"
	}
	for _, e := range all.Errors() {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheDefaultsAreValidAndSurviveBothEncodings(t *testing.T) {
	if errs := validation.Validate(config.Default()); len(errs) != 0 {
		t.Errorf("the defaults have mistakes: %v", errs)
	}
	text, err := marshal(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	fromYAML, err := configfile.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), fromYAML); diff != "" {
		t.Errorf("through Marshal -want +got:\n%s", diff)
	}
	data, err := json.Marshal(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON config.PlannerConfig
	if err := json.Unmarshal(data, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), fromJSON); diff != "" {
		t.Errorf("through JSON -want +got:\n%s", diff)
	}
}

func TestEveryGoodFileSurvivesBothEncodings(t *testing.T) {
	files, err := filepath.Glob("testdata/*.good.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no good files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			first, err := configfile.Parse(read(t, filepath.Base(file)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := marshal(first)
			if err != nil {
				t.Fatal(err)
			}
			second, err := configfile.Parse(text)
			if err != nil {
				t.Fatalf("%v in:\n%s", err, text)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("through Marshal:\n%s", diff)
			}
			data, err := json.Marshal(first)
			if err != nil {
				t.Fatal(err)
			}
			var third config.PlannerConfig
			if err := json.Unmarshal(data, &third); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, third); diff != "" {
				t.Errorf("through JSON:\n%s", diff)
			}
		})
	}
}

func TestRelativeFilesAreRelativeToTheConfigurationsFolder(t *testing.T) {
	c, err := configfile.ParseFile(filepath.Join("testdata", "full.good.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Poll.Prometheus.HTTP.Authorization.CredentialsFile, c.Poll.Prometheus.HTTP.TLSConfig.CAFile}
	if diff := cmp.Diff([]string{"testdata/token", "/etc/ca.crt"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNoMistakePrintsASecret(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	with := 0
	for _, file := range files {
		data := read(t, filepath.Base(file))
		if !strings.Contains(string(data), "hunter2") {
			continue
		}
		with++
		if _, err := configfile.Parse(data); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if with < 5 {
		t.Errorf("only %d files have a secret", with)
	}
}

func TestTheAnnotatedDefaultsAreTheDefaults(t *testing.T) {
	text := config.DefaultYAML()
	if *update {
		text = withBlock(t, text, "\nrollout:\n")
		if err := os.WriteFile("default.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := configfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), c); diff != "" {
		t.Errorf("-default +annotated:\n%s", diff)
	}
}

// withBlock puts Default's values into the annotated file's block: which rollout is the default is then said in one place.
func withBlock(t *testing.T, text, key string) string {
	t.Helper()
	marshalled, err := marshal(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	cut := func(text string) (start, end int) {
		start = strings.Index(text, key) + len(key)
		for end = start; strings.HasPrefix(text[end:], "  "); {
			end += strings.Index(text[end:], "\n") + 1
		}
		return start, end
	}
	from, to := cut(string(marshalled))
	start, end := cut(text)
	return text[:start] + string(marshalled[from:to]) + text[end:]
}

func TestTheAnnotatedDefaultsNameEveryField(t *testing.T) {
	text, err := marshal(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if !strings.Contains(config.DefaultYAML(), "\n"+line) {
			t.Errorf("the annotated file lacks %q", line)
		}
	}
}

func TestChecksJudgeBesideTheRest(t *testing.T) {
	check := func(c config.PlannerConfig) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("poll", "prometheus", "url"), field.OmitValueType{}, "is not reached from "+c.Target.Namespace)}
	}
	_, err := configfile.Parse([]byte("apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"+"mode: hold\npoll:\n  prometheus:\n    url: http://prometheus\n"), check)
	want := `mode: Unsupported value: "hold": supported values: "Observe", "Hold", "Enforce" (line 3)
poll.prometheus.url: Invalid value: is not reached from argocd (line 6)
`
	if diff := cmp.Diff(want, messages(err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A Prometheus that a person names is asked in the pods' place, and the configuration that was read stays as it is.
func TestAPrometheusTakesThePodsPlace(t *testing.T) {
	of := config.Default().Poll
	of.Prometheus.URL = "http://ours"
	for name, test := range map[string]struct {
		poll config.Poll
		url  string
	}{"pods": {config.Poll{Pods: &config.Pods{}}, config.Default().Poll.Prometheus.URL}, "a Prometheus": {of, "http://ours"}} {
		got := test.poll.WithPrometheus()
		if got.Pods != nil || got.Prometheus.URL != test.url || got.Prometheus == test.poll.Prometheus {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestInputsAreSampledMoreOftenThanSizesAreDecided, as they are shipped.
func TestInputsAreSampledMoreOftenThanSizesAreDecided(t *testing.T) {
	c, err := configfile.Parse([]byte("apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := [2]time.Duration{time.Duration(c.Interval), time.Duration(c.Size.Interval)}
	if want := [2]time.Duration{time.Minute, 5 * time.Minute}; got != want {
		t.Errorf("sampled and decided every %v, want %v", got, want)
	}
}

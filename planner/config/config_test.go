package config

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
	"ballast/planner/plan"
)

var update = flag.Bool("update", false, "rewrite testdata/*.bad.txt and *.good.out.yaml")

func TestGoodFilesAreReadOverTheDefaults(t *testing.T) {
	for name, want := range map[string]func(*PlannerConfig){
		"minimal": func(*PlannerConfig) {},
		"full": func(c *PlannerConfig) {
			three, twelve, capacity, noData := 3, 12, Decimal("1.5"), Decimal("0")
			c.Mode, c.Interval = plan.Enforce, Duration(2*time.Minute)
			c.Target = plan.Target{Namespace: "gitops", Kind: "Deployment", Name: "controller", Container: "application-controller"}
			c.Plan = Objects{ConfigMap: "the-plan", History: "the-history"}
			c.Discover = Discover{MaxShrink: 25, Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "argocd.argoproj.io/secret-type", Operator: "In", Values: []string{"cluster"}},
			}}}
			c.Poll.MinCoverage, c.Poll.MaxDrop = "0.75", 40
			p := c.Poll.Prometheus
			p.URL, p.Timeout, p.Concurrency, p.MaxAge = "https://prometheus.example/path", Duration(30*time.Second), 8, Duration(7*24*time.Hour)
			p.PodLabel, p.Matchers = "kubernetes_pod_name", map[string]string{"cluster": "prod", "env": `a"b`}
			p.HTTP.BearerTokenFile = ""
			p.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: "token"}
			p.HTTP.TLSConfig = promconfig.TLSConfig{CAFile: "/etc/ca.crt", MinVersion: promconfig.TLSVersions["TLS13"]}
			p.HTTP.EnableHTTP2 = false
			p.Metrics = []Metric{
				{ID: "apps", Query: "count by (dest_server) (argocd_app_info)", AgeQuery: "min(timestamp(up))", NoData: &noData,
					Match: &Match{Label: "dest_server", To: "server", Aliases: map[string]string{"https://10.0.0.1": "https://kubernetes.default.svc"}}},
				{ID: "custom", QueryPerCluster: `sum(x{server="{{ .server }}"})`},
			}
			c.Normalize = Normalize{Robust: &Robust{PositiveOffset: "0.01"}}
			c.Index = Index{PNorm: &PNorm{P: "2.5", Weights: map[string]Decimal{"apps": "1", "custom": "0.25"}}}
			c.Partition = Partition{LPT: &LPT{}, MinReplicas: &three, MaxReplicas: &twelve, Replicas: &Replicas{Fixed: 5}, MaxClustersPerReplica: 40, Capacity: &capacity}
			c.Evaluate = Evaluate{MostWanted: &MostWanted{Window: Duration(6 * time.Hour), MinSamples: 10}}
			c.Change.Moves.Rate = []Rate{{Percent: 5, Period: Duration(30 * time.Minute)}}
			c.Change.Restarts.Every = Duration(12 * time.Hour)
			c.Rollout = Rollout{Default: &DefaultRollout{RolloutRestart: true}, StageTimeout: Duration(5 * time.Minute)}
			c.Failover = &Failover{After: Duration(2 * time.Minute), Settle: Duration(time.Minute)}
		},
		"change-by-the-minute": func(c *PlannerConfig) {
			c.Change.Moves.Rate = []Rate{{Percent: 1, Period: Duration(time.Minute)}, {Percent: 100, Period: Duration(7 * 24 * time.Hour)}}
		},
		"change-unlimited": func(c *PlannerConfig) { c.Change.Moves.Rate = []Rate{} },
		"failover-off":     func(c *PlannerConfig) { c.Failover = nil },
		"failover-patient": func(c *PlannerConfig) { c.Failover = &Failover{After: Duration(15 * time.Minute)} },
		"rollout-live": func(c *PlannerConfig) {
			c.Rollout = Rollout{Live: &LiveRollout{MaxMovesPerWave: 25, Nudge: true, Adopt: AdoptNow}, StageTimeout: Duration(10 * time.Minute)}
		},
		"rollout-live-defaults": func(c *PlannerConfig) {
			c.Rollout = Rollout{Live: &LiveRollout{MaxMovesPerWave: 5, Nudge: true, Adopt: AdoptNow}, StageTimeout: Duration(10 * time.Minute)}
		},
		"rollout-live-adopt": func(c *PlannerConfig) {
			c.Rollout = Rollout{Live: &LiveRollout{MaxMovesPerWave: 5, Nudge: true, Adopt: AdoptWithNext}, StageTimeout: Duration(10 * time.Minute)}
		},
		"rollout-x0y": func(c *PlannerConfig) {
			c.Rollout = Rollout{X0Y: &X0YRollout{}, StageTimeout: Duration(20 * time.Minute)}
		},
		"replicas-workload": func(c *PlannerConfig) { c.Partition.Replicas = &Replicas{Workload: true} },
		"other-implementations": func(c *PlannerConfig) {
			c.Normalize, c.Evaluate = Normalize{MinMax: &MinMax{}}, Evaluate{None: &None{}}
		},
		"beside-the-implementation": func(c *PlannerConfig) {
			four := 4
			c.Partition.MinReplicas, c.Rollout.StageTimeout = &four, Duration(time.Minute)
		},
		"http-bound-token": func(c *PlannerConfig) {
			c.Poll.Prometheus.HTTP.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: "/var/run/secrets/ballast/prometheus/token"}
		},
		"sticky": func(c *PlannerConfig) {
			half := Decimal("0.5")
			c.Partition.Capacity, c.Partition.Sticky = &half, &Sticky{High: "0.9", Low: "0.7", Drain: "0.6"}
			c.Evaluate.CostBenefit.Horizon = Duration(72 * time.Hour)
		},
		"weights": func(c *PlannerConfig) {
			least, most, capacity, at, long := 2, 12, Decimal("1.5"), Duration(0), Duration(6*time.Hour)
			c.Partition.MinReplicas, c.Partition.MaxReplicas, c.Partition.Capacity = &least, &most, &capacity
			c.Partition.Sticky.DownWindow = Duration(2 * time.Hour)
			c.Size.Weights = []WeightInterval{{From: "4", Weight: 60}, {From: "0", To: "4"}}
			c.Size.Policies = []SizePolicy{{Name: "ours", Rules: []SizeRule{{List: Requests, Resource: "memory", Base: "1Gi", Slope: "2Gi", Input: InputLoad}}}}
			c.Change.Out = Scaling{Timing: Timing{Mode: change.Maintenance, Windows: []Window{{Begin: "22:00", End: "02:00", TimeZone: "Europe/Berlin"}},
				Cooldown: Duration(10 * time.Minute)}, StabilizationWindow: &at,
				Rate: []Pace{{Replicas: 2, Period: Duration(time.Hour)}, {Percent: 50, Period: Duration(24 * time.Hour)}}}
			c.Change.In = Scaling{Timing: Timing{Mode: change.Off}, StabilizationWindow: &long, MinChange: &CountStep{Value: 2, Percentage: 20}}
		},
		"lpt": func(c *PlannerConfig) {
			c.Partition.Sticky, c.Partition.LPT = nil, &LPT{}
			c.Evaluate = Evaluate{MostWanted: &MostWanted{Window: Duration(24 * time.Hour), MinSamples: 10}}
		},
		"recorded": func(c *PlannerConfig) {
			c.Poll.Prometheus.URL, c.Poll.Prometheus.Recorded = "http://prometheus:9090", true
		},
		"pods": func(c *PlannerConfig) {
			c.Poll.MinCoverage, c.Poll.Prometheus, c.Poll.Pods = "0.8", nil, &Pods{}
			c.Index.PNorm.Weights = map[string]Decimal{"objects": "0.5", "events": "0.5", "reconciles": "0", "apps": "0"}
		},
		"groups": func(c *PlannerConfig) {
			c.Partition.Groups = []Group{
				{Name: "payments", Together: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "payments"}}},
				{Name: "hubs", Apart: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "tier", Operator: "In", Values: []string{"hub", "core"}}}}},
			}
		},
		"dimensions-work": func(c *PlannerConfig) { c.Index.Dimensions = &Dimensions{Work: &Work{}} },
		"dimensions-both": func(c *PlannerConfig) {
			c.Index.Dimensions = &Dimensions{Work: &Work{}, Memory: &Memory{Weights: map[string]Bytes{"objects": "2Ki"}, Base: "0", LimitShare: "0.8"}}
		},
		"memory": func(c *PlannerConfig) {
			capacity := Bytes("4.5Gi")
			c.Index.Dimensions = &Dimensions{Memory: &Memory{Weights: map[string]Bytes{"objects": "1.25Ki", "apps": "30000"}, Base: "256Mi", Capacity: &capacity,
				LimitShare: "0.8"}}
		},
		"memory-of-the-limit": func(c *PlannerConfig) {
			c.Index.Dimensions = &Dimensions{Memory: &Memory{Weights: map[string]Bytes{"objects": "2Ki"}, Base: "0", LimitShare: "0.7"}}
		},
		"memory-learned": func(c *PlannerConfig) {
			c.Index.Dimensions = &Dimensions{Memory: &Memory{Base: "0", LimitShare: "0.8"}}
		},
		"size-inputs": func(c *PlannerConfig) {
			c.Poll.Prometheus.Metrics = []Metric{{ID: "workingSet", Match: &Match{Label: "pod", To: MatchReplica},
				Query: `max by (pod) (container_memory_working_set_bytes{ {{.targets}},container="application-controller"})`}}
			c.Size.Defaults = true
			c.Size.NodeCap = SizeCap{CPU: "14", FromNodes: &FromNodes{Reserve: 20}}
			c.Size.Policies = []SizePolicy{{Name: "ours", Rules: []SizeRule{
				{List: Requests, Resource: "memory", Slope: "1", Input: "workingSet", Scope: ScopeReplica},
				{Name: "cores", List: Requests, Resource: "cpu", Base: "200m", Slope: "10m", Input: "cores"},
				{Name: "nodes", List: Requests, Resource: "cpu", Slope: "1m", Input: "nodes", Scope: ScopeTotal},
				{Name: "vpa", List: Requests, Resource: "cpu", Slope: "100m", Input: "vpaTargetCPU"},
				{Name: "hpa", List: Requests, Resource: "cpu", Slope: "1m", Input: "hpaReplicas"},
			}}}
		},
		"size": func(c *PlannerConfig) {
			c.Size = Size{Apply: Template, Interval: Duration(5 * time.Minute), Limits: SizeLimits{Memory: &Headroom{Value: "512Mi", Percentage: 20}}, NodeCap: SizeCap{CPU: "16", Memory: "60Gi"}, Policies: []SizePolicy{
				{Name: "default", Rules: []SizeRule{
					{List: Requests, Resource: "memory", Base: "512Mi", Max: "16Gi"},
					{Name: "by-apps", List: Requests, Resource: "memory", Base: "0", Slope: "2Mi", Input: "apps", Per: "1",
						Segments:       []SizeSegment{{At: "0", Every: "4"}, {At: "32", Every: "8"}},
						DelayScaleDown: &SizeDelay{Max: "30", DelaySeconds: 600}, DelayScaleUp: &SizeDelay{DelaySeconds: 60},
						Min: "64Mi", Quantize: &Quantize{Base: "64Mi", Step: "64Mi", StepRatio: "1.5", MaxStep: "1Gi"}, Smooth: &Smooth{Target: 90, Samples: 60}},
				}},
				{Name: "ours", Priority: 10, Rules: []SizeRule{
					{List: Requests, Resource: "memory", Base: "1Gi"},
					{List: Limits, Resource: "cpu", Base: "200m", Slope: "10m", Input: "clusters", Scope: ScopeTotal, Container: "application-controller"},
				}},
			}}
		},
		"size-move-away": func(c *PlannerConfig) {
			c.Size.Interval, c.Size.MoveAway = Duration(15*time.Minute), &MoveAway{After: Duration(time.Hour)}
		},
		"change-sizes": func(c *PlannerConfig) {
			c.Change.Up = Resizing{Timing: Timing{Mode: change.Maintenance, Cooldown: Duration(10 * time.Minute),
				Windows: []Window{{Begin: "22:00", End: "02:00:30", TimeZone: "Europe/Berlin", Weekdays: []string{"Sat", "Sunday"}}}}}
			c.Change.Moves.Timing = Timing{Mode: change.Maintenance, Windows: []Window{{Begin: "22:00", End: "02:00"}}, Cooldown: Duration(time.Hour)}
			c.Change.Down = Resizing{Timing: Timing{Mode: change.Off}, StabilizationWindow: Duration(30 * time.Minute),
				MinChange: &SizeSteps{CPU: &SizeStep{Value: "100m", Percentage: 10}, Memory: &SizeStep{Value: "256Mi"}},
				Rate:      []Pace{{Replicas: 2, Period: Duration(time.Hour)}, {Percent: 25, Period: Duration(24 * time.Hour)}}}
		},
		"telemetry": func(c *PlannerConfig) { c.Telemetry.Clusters = 5000 },
		"nulls":     func(*PlannerConfig) {},
		"json":      func(c *PlannerConfig) { c.Mode = plan.Hold },
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(read(t, name+".good.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			expected := Default()
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
			c, err := Parse(read(t, name+".bad.yaml"))
			if err == nil {
				t.Fatal("no mistake was found")
			}
			if diff := cmp.Diff(PlannerConfig{}, c); diff != "" {
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
	if errs := Default().Validate(); len(errs) != 0 {
		t.Errorf("the defaults have mistakes: %v", errs)
	}
	text, err := marshal(Default())
	if err != nil {
		t.Fatal(err)
	}
	fromYAML, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), fromYAML); diff != "" {
		t.Errorf("through Marshal -want +got:\n%s", diff)
	}
	data, err := json.Marshal(Default())
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON PlannerConfig
	if err := json.Unmarshal(data, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), fromJSON); diff != "" {
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
			first, err := Parse(read(t, filepath.Base(file)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := marshal(first)
			if err != nil {
				t.Fatal(err)
			}
			second, err := Parse(text)
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
			var third PlannerConfig
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
	c, err := ParseFile(filepath.Join("testdata", "full.good.yaml"))
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
		if _, err := Parse(data); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if with < 5 {
		t.Errorf("only %d files have a secret", with)
	}
}

func TestTheAnnotatedDefaultsAreTheDefaults(t *testing.T) {
	text := DefaultYAML()
	if *update {
		text = withBlock(t, text, "\nrollout:\n")
		if err := os.WriteFile("default.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), c); diff != "" {
		t.Errorf("-default +annotated:\n%s", diff)
	}
}

// withBlock puts Default's values into the annotated file's block: which rollout is the default is then said in one place.
func withBlock(t *testing.T, text, key string) string {
	t.Helper()
	marshalled, err := marshal(Default())
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
	text, err := marshal(Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if !strings.Contains(DefaultYAML(), "\n"+line) {
			t.Errorf("the annotated file lacks %q", line)
		}
	}
}

func TestChecksJudgeBesideTheRest(t *testing.T) {
	check := func(c PlannerConfig) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("poll", "prometheus", "url"), field.OmitValueType{}, "is not reached from "+c.Target.Namespace)}
	}
	_, err := Parse([]byte(header+"mode: hold\npoll:\n  prometheus:\n    url: http://prometheus\n"), check)
	want := `mode: Unsupported value: "hold": supported values: "Observe", "Hold", "Enforce" (line 3)
poll.prometheus.url: Invalid value: is not reached from argocd (line 6)
`
	if diff := cmp.Diff(want, messages(err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A Prometheus that a person names is asked in the pods' place, and the configuration that was read stays as it is.
func TestAPrometheusTakesThePodsPlace(t *testing.T) {
	of := Default().Poll
	of.Prometheus.URL = "http://ours"
	for name, test := range map[string]struct {
		poll Poll
		url  string
	}{"pods": {Poll{Pods: &Pods{}}, Default().Poll.Prometheus.URL}, "a Prometheus": {of, "http://ours"}} {
		got := test.poll.WithPrometheus()
		if got.Pods != nil || got.Prometheus.URL != test.url || got.Prometheus == test.poll.Prometheus {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestInputsAreSampledMoreOftenThanSizesAreDecided, as they are shipped.
func TestInputsAreSampledMoreOftenThanSizesAreDecided(t *testing.T) {
	c, err := Parse([]byte("apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := [2]time.Duration{time.Duration(c.Interval), time.Duration(c.Size.Interval)}
	if want := [2]time.Duration{time.Minute, 5 * time.Minute}; got != want {
		t.Errorf("sampled and decided every %v, want %v", got, want)
	}
}

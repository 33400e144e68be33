package calibrate

import (
	"bytes"
	stdcmp "cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/settings"
	"ballast/planner/calibrate"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/discover"
)

// samples are of the default metrics: memory follows objects and Applications, CPU follows nothing.
func samples(change func(*calibrate.Samples)) calibrate.Samples {
	r := rand.New(rand.NewPCG(3, 5))
	s := calibrate.Samples{Metrics: []string{"objects", "events", "reconciles", "apps"},
		References: map[string]float64{"objects": 2e6, "events": 500, "reconciles": 40, "apps": 1600},
		Weights:    map[string]float64{"objects": 0.375, "events": 0.25, "reconciles": 0.25, "apps": 0.125},
		Limits:     map[calibrate.Resource]float64{calibrate.Memory: 4 << 30}}
	for p := range 4 {
		objects, apps := 1e5+4e5*r.Float64(), 50+300*r.Float64()
		for k := range 12 {
			values := []float64{math.Round(objects * (1 + 0.1*r.Float64())), 10 + 100*r.Float64(), 10 * r.Float64(), math.Round(apps)}
			memory, cpu := (2e8+2000*values[0]+5e6*values[3])*(1+0.02*r.Float64()), r.Float64()
			s.Rows = append(s.Rows, calibrate.Row{Pod: fmt.Sprintf("argocd-application-controller-%d", p), Values: values, Memory: &memory, CPU: &cpu,
				At: time.Date(2026, 11, 20, k, 0, 0, 0, time.UTC)})
		}
	}
	if change != nil {
		change(&s)
	}
	return s
}

func saved(t *testing.T, s calibrate.Samples) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "samples.json")
	fixture.MustDo(t, saveSamples(file, s))
	return file
}

func run(t *testing.T, file string, args ...string) string {
	t.Helper()
	cmd := NewCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if file != "" {
		args = append(args, "--samples", file)
	}
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return strings.ReplaceAll(out.String(), stdcmp.Or(file, "no file"), "FILE")
}

func TestWhatTheFlagsAskFor(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want Questions
		save string
	}{
		"as shipped": {nil, Questions{Range: 24 * time.Hour, Step: 30 * time.Minute, PodLabel: "pod"}, ""},
		"each": {[]string{"--range=7d", "--step=1h", "--memory-query=m", "--cpu-query=c", "--pod-label=p", "--save-samples=s"},
			Questions{Range: 168 * time.Hour, Step: time.Hour, MemoryQuery: "m", CPUQuery: "c", PodLabel: "p"}, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			var o options
			fixture.MustDo(t, command(&o).ParseFlags(test.args))
			got, err := o.check()
			fixture.MustDo(t, err)
			if diff := cmp.Diff(test.want, got.Questions); diff != "" || o.save != test.save {
				t.Errorf("the samples go to %q (-want +got):\n%s", o.save, diff)
			}
			if used := got.used(discover.Workload{}, nil); test.want.CPUQuery != "" && (used[0].Query != "m" || used[1].Query != "c" || used[1].Match.Label != "p") {
				t.Errorf("asked is %+v", used)
			}
		})
	}
}

func TestCalibrateGolden(t *testing.T) {
	file := saved(t, samples(nil))
	unlimited := saved(t, samples(func(s *calibrate.Samples) {
		s.Limits, s.References, s.Weights = nil, nil, nil
		for i := range s.Rows {
			s.Rows[i].CPU = nil
		}
	}))
	for name, runs := range map[string][]string{
		"memory": {run(t, file)},
		"cpu":    {run(t, file, "--resource", "cpu", "--cpu-limit", "1500m", "--fill", "0.9")},
		"bare":   {run(t, unlimited), run(t, unlimited, "--memory-limit", "100Mi"), run(t, unlimited, "--resource", "cpu")},
		"json":   {run(t, file, "-o", "json"), run(t, file, "-o", "yaml")},
	} {
		fixture.Golden(t, name, strings.Join(runs, "\n----\n\n"))
	}
}

// What is to be pasted is a configuration, and says what was found.
func TestTheConfigurationIsOne(t *testing.T) {
	found, err := find(samples(nil), "", 0.85)
	fixture.MustDo(t, err)
	head := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"
	cfg, err := configfile.Parse([]byte(head+found.Config), settings.CheckMetrics)
	fixture.MustDo(t, err)
	got := map[string]config.Decimal{"capacity": *cfg.Partition.Capacity}
	for id, w := range cfg.Index.PNorm.Weights {
		got[id] = w
	}
	want := map[string]config.Decimal{"objects": "0.3307", "apps": "0.6682", "events": "0", "reconciles": "0.001094"}
	capacity, exact := got["capacity"].Float(), *found.Advice.Capacity
	delete(got, "capacity")
	if diff := cmp.Diff(want, got); diff != "" || math.Abs(capacity-exact) > 1e-3*exact || cfg.Normalize.Reference == nil {
		t.Errorf("capacity %g of %g (-want +got):\n%s", capacity, exact, diff)
	}
	fit := found.Fits[slices.IndexFunc(found.Fits, func(f calibrate.Fit) bool { return f.Resource == calibrate.Memory })]
	memory := cfg.Index.Dimensions.Memory
	if base := memory.Base.Float(); base < fit.Base+fit.Margin || base > fit.Base+fit.Margin+1 || memory.LimitShare != "0.85" {
		t.Errorf("memory has a base of %g and %s of the limit, want %g and 0.85", base, memory.LimitShare, fit.Base+fit.Margin)
	}
	for id, per := range fit.Per {
		if w := memory.Weights[id].Float(); w < per || w > per+0.001 {
			t.Errorf("%s has a weight of %g in memory, want %g", id, w, per)
		}
	}
	bare, err := find(samples(func(s *calibrate.Samples) { s.Limits = nil }), "", 0.85)
	fixture.MustDo(t, err)
	if strings.Contains(bare.Config, "dimensions") {
		t.Errorf("without a limit it has a bound of memory:\n%s", bare.Config)
	}
}

func TestWhatCannotBeCalibrated(t *testing.T) {
	file := saved(t, samples(nil))
	few := saved(t, samples(func(s *calibrate.Samples) { s.Rows = s.Rows[:9] }))
	still := saved(t, samples(func(s *calibrate.Samples) {
		for i := range s.Rows {
			same := 1e9
			s.Rows[i].Memory, s.Rows[i].CPU = &same, nil
		}
	}))
	var text strings.Builder
	for _, test := range []struct{ file, args string }{
		{file + "x", ""}, {few, ""}, {still, ""}, {file, "--fill 1.5"}, {file, "--fill all"}, {file, "--resource disk"}, {file, "--memory-limit -1"}, {file, "--cpu-limit few"},
		{file, "-o wide"}, {file, "--range 3d"}, {"", "--step 0s"}, {"", "--range long"}, {"", "--range 30d --step 1m"}, {"", "--pod-label a-b"},
	} {
		said := run(t, test.file, strings.Fields(test.args)...)
		text.WriteString("$ ballast calibrate " + test.args + "\n" + said + "\n")
	}
	fixture.Golden(t, "errors", text.String())
}

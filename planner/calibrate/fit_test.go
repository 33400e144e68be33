package calibrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// made are samples of pods whose memory is base + 2000 an object + 5e6 an Application, and noise of that share; CPU follows events.
func made(podCount, times int, noise float64) Samples {
	r := rand.New(rand.NewPCG(7, 11))
	s := Samples{Metrics: []string{"objects", "apps", "events"}, References: map[string]float64{"objects": 1e6, "apps": 1000, "events": 400},
		Limits: map[Resource]float64{Memory: 4 << 30, CPU: 4}}
	for p := range podCount {
		objects, apps, events := 1e5+4e5*r.Float64(), 50+300*r.Float64(), 20+100*r.Float64()
		for k := range times {
			day := 1 + 0.2*math.Sin(float64(k+3*p))
			values := []float64{objects * (1 + 0.1*r.Float64()), math.Round(apps * (1 + 0.1*r.Float64())), events * day}
			off := 1 + noise*(2*r.Float64()-1)
			memory, cpu := (2e8+2000*values[0]+5e6*values[1])*off, (0.1+0.01*values[2])*off
			s.Rows = append(s.Rows, Row{Pod: fmt.Sprintf("pod-%d", p), At: noon.Add(time.Duration(k) * time.Hour), Values: values, Memory: &memory, CPU: &cpu})
		}
	}
	return s
}

func TestWhatMadeItIsFound(t *testing.T) {
	near := cmpopts.EquateApprox(1e-6, 1e-6)
	f, err := Of(made(4, 12, 0), Memory)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"objects": 2000, "apps": 5e6, "events": 0}
	if diff := cmp.Diff(want, f.Per, near); diff != "" || math.Abs(f.Base-2e8) > 1000 {
		t.Errorf("base %g (-want +got):\n%s", f.Base, diff)
	}
	if f.R2 < 1-1e-9 || *f.HeldOut < 1-1e-9 || !f.Trusted() || f.Pods != 4 || f.Samples != 48 {
		t.Errorf("%+v", f)
	}
	a, err := Advise(made(4, 12, 0), f, 0.8)
	if err != nil {
		t.Fatal(err)
	}
	per := 2000*1e6 + 5e6*1000.0
	if diff := cmp.Diff(map[string]float64{"objects": 0.2857, "apps": 0.7143, "events": 0}, a.Weights); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if want := (0.8*(4<<30) - 2e8) / per; math.Abs(*a.Capacity-want) > 1e-4 || math.Abs(a.PerLoad-per) > 1e-6*per {
		t.Errorf("capacity %g, want %g; %g a load", *a.Capacity, want, a.PerLoad)
	}
}

// With noise the fit is off by as much, and says so.
func TestNoiseIsSaid(t *testing.T) {
	f, err := Of(made(5, 40, 0.1), CPU)
	if err != nil {
		t.Fatal(err)
	}
	if f.R2 < 0.9 || f.R2 > 0.999 || math.Abs(f.Per["events"]-0.01) > 0.001 || f.Margin < 0.02 || f.Margin > 0.2 {
		t.Errorf("%+v", f)
	}
	s := made(4, 30, 0)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range s.Rows { // memory that follows nothing
		memory := 1e9 * r.Float64()
		s.Rows[i].Memory = &memory
	}
	if f, err = Of(s, Memory); err != nil || f.Trusted() || f.R2 > 0.3 {
		t.Errorf("of nothing: %+v, %v", f, err)
	}
}

// Two pods fit any metrics that differ between them: one that is left out is not told by the others.
func TestFewPodsDoNotPassForMany(t *testing.T) {
	s := made(3, 10, 0)
	memories := []float64{1e9, 3e9, 1.5e9}
	for i, r := range s.Rows {
		at := int(r.Pod[len(r.Pod)-1] - '0')
		values := []float64{0, 0, 0}
		values[at] = 1e5
		s.Rows[i].Memory, s.Rows[i].Values = &memories[at], values
	}
	f, err := Of(s, Memory)
	if err != nil {
		t.Fatal(err)
	}
	if f.R2 < 0.99 || *f.HeldOut > 0 || f.Trusted() {
		t.Errorf("R2 %g, held out %g", f.R2, *f.HeldOut)
	}
}

func TestWhatTheSamplesCannotTell(t *testing.T) {
	s := made(4, 12, 0.05)
	s.Metrics = append(s.Metrics, "again", "flat")
	s.References = nil
	for i, r := range s.Rows {
		s.Rows[i].Values = append(r.Values, 2*r.Values[0], 7)
	}
	f, err := Of(s, Memory)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{f.Flat, f.Together, f.Per["objects"], f.Per["flat"]}
	want := []any{[]string{"flat"}, [][2]string{{"again", "objects"}}, 0.0, 0.0} // "again" is the first by name
	if diff := cmp.Diff(want, got); diff != "" || math.Abs(f.Per["again"]-1000) > 200 {
		t.Errorf("again %g (-want +got):\n%s", f.Per["again"], diff)
	}
}

// The order of rows and metrics says nothing.
func TestTheOrderSaysNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := made(rapid.IntRange(1, 5).Draw(t, "pods"), rapid.IntRange(15, 20).Draw(t, "times"), 0.3)
		if rapid.Bool().Draw(t, "twin") {
			s.Metrics = append(s.Metrics, "a twin")
			s.References["a twin"] = 5
			for i, r := range s.Rows {
				s.Rows[i].Values = append(r.Values, r.Values[1])
			}
		}
		of := rapid.SampledFrom(Resources()).Draw(t, "of")
		want, err := Of(s, of)
		if err != nil {
			t.Fatal(err)
		}
		other := s
		other.Rows = rapid.Permutation(s.Rows).Draw(t, "rows")
		columns := rapid.Permutation([]int{0, 1, 2, 3}[:len(s.Metrics)]).Draw(t, "metrics")
		other.Metrics = nil
		for _, c := range columns {
			other.Metrics = append(other.Metrics, s.Metrics[c])
		}
		for i, r := range other.Rows {
			var values []float64
			for _, c := range columns {
				values = append(values, r.Values[c])
			}
			other.Rows[i].Values = values
		}
		got, err := Of(other, of)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// R2 of a fit with a base is between 0 and 1, and every number of it finite and not negative.
func TestAFitIsNeverAbsurd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Samples{Metrics: []string{"a", "b"}, Weights: map[string]float64{"a": 1, "b": 2}}
		value := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64Range(0, mostValue), rapid.Just(0.0), rapid.Just(5.0))
		for i := range rapid.IntRange(0, 40).Draw(t, "rows") {
			used := value.Draw(t, "used")
			s.Rows = append(s.Rows, Row{Pod: fmt.Sprint("p", rapid.IntRange(0, 3).Draw(t, "pod")), At: noon.Add(time.Duration(i) * time.Minute),
				Values: []float64{value.Draw(t, "a"), value.Draw(t, "b")}, Memory: &used})
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		f, err := Of(s, Memory)
		if err != nil {
			return
		}
		for name, v := range map[string]float64{"base": f.Base, "a": f.Per["a"], "b": f.Per["b"], "margin": f.Margin, "R2": f.R2, "load": *f.LoadR2} {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < -1e-6 {
				t.Fatalf("%s is %v", name, v)
			}
		}
		if f.R2 > 1 || *f.LoadR2 > 1 || *f.LoadR2 > f.R2+1e-6 {
			t.Fatalf("R2 %v, of the load %v", f.R2, *f.LoadR2)
		}
		if a, err := Advise(s, f, 0.85); err == nil {
			if a.Capacity != nil || a.Why == "" {
				t.Fatalf("a capacity without a limit: %+v", a)
			}
		}
	})
}

func TestAdviceThatCannotBe(t *testing.T) {
	s := made(4, 12, 0)
	f, err := Of(s, Memory)
	if err != nil {
		t.Fatal(err)
	}
	small := s
	small.Limits = map[Resource]float64{Memory: 2e8}
	unlimited := s
	unlimited.Limits = nil
	for want, from := range map[string]Samples{
		"a pod without any cluster, and what the fit is off by, take all of 85 % of the limit": small,
		"the pods have no memory limit, so that nobody knows when one is full":                 unlimited,
	} {
		if a, err := Advise(from, f, 0.85); err != nil || a.Why != want || a.Capacity != nil {
			t.Errorf("%+v, %v, want %q", a, err, want)
		}
	}
	if _, err := Advise(s, Fit{Resource: Memory, Per: map[string]float64{}}, 0.85); err == nil {
		t.Error("weights of nothing")
	}
	fits := []Fit{{Resource: Memory, Most: 1 << 30}, {Resource: CPU, Most: 3}}
	if at := Binds(s, fits); fits[at].Resource != CPU {
		t.Error("CPU is at 3 of 4, memory at 1 of 4")
	}
	told := []Fit{{Resource: Memory, Most: 1 << 30, R2: 0.9}, {Resource: CPU, Most: 3}}
	if at := Binds(s, told); told[at].Resource != Memory {
		t.Error("CPU is at 3 of 4, and nothing tells it")
	}
	if at := Binds(unlimited, fits); fits[at].Resource != Memory {
		t.Error("without limits it is memory")
	}
	if _, err := Of(made(1, 11, 0), Memory); err == nil || !strings.Contains(err.Error(), "there are 11 samples of it, and 3 metrics need 12") {
		t.Error(err)
	}
}

func TestSamplesAreBounded(t *testing.T) {
	for text, want := range map[string]string{
		``:                                       "it is no file of samples: EOF",
		`{"metrics": ["a"], "rows": [], "x": 1}`: `it is no file of samples: json: unknown field "x"`,
		`{"metrics": ["a"]} {}`:                  "it is no file of samples: something follows them",
		`{"metrics": []}`:                        "metrics: there is none",
		`{"metrics": ["a", "a"]}`:                `metrics[1]: "a" is empty, or stands twice`,
		`{"metrics": ["a"], "references": {"b": 1}}`:                                                           "references.a: 0 is no number above 0",
		`{"metrics": ["a"], "weights": {"a": -1}}`:                                                             "weights.a: -1 is no number of 0 or more",
		`{"metrics": ["a"], "limits": {"cpu": 0}}`:                                                             "limits.cpu: 0 is no number above 0",
		`{"metrics": ["a"], "rows": [{"pod": "", "at": "2026-11-20T12:00:00Z", "values": [1]}]}`:               "rows[0]: pod: it has no name",
		`{"metrics": ["a"], "rows": [{"pod": "p", "at": "2026-11-20T12:00:00Z", "values": [-1]}]}`:             "rows[0]: values[0]: -1 is no number from 0 to 1e+30",
		`{"metrics": ["a"], "rows": [{"pod": "p", "at": "2026-11-20T12:00:00Z", "values": []}]}`:               "rows[0]: values: 0 of 1 metrics",
		`{"metrics": ["a"], "rows": [{"pod": "p", "at": "2026-11-20T12:00:00Z", "values": [1], "cpu": 1e31}]}`: "rows[0]: cpu: 1e+31 is no number from 0 to 1e+30",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What is read is fitted or refused, and written and read again is the same.
func FuzzSamples(f *testing.F) {
	text, err := json.Marshal(made(2, 6, 0.1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"metrics": ["a"], "rows": [{"pod": "p", "at": "2026-11-20T12:00:00Z", "values": [1], "memory": 5}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, of := range Resources() {
			if fit, err := Of(s, of); err == nil {
				if _, err := Advise(s, fit, 0.85); err == nil && math.IsNaN(fit.R2) {
					t.Errorf("%+v", fit)
				}
			}
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Read(bytes.NewReader(again)); err != nil || !cmp.Equal(s, back, cmpopts.EquateEmpty()) {
			t.Errorf("%v: it is not the same", err)
		}
	})
}

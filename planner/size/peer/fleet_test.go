package peer

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/size"
	"ballast/planner/size/weights"
)

var update = flag.Bool("update", false, "write the golden files anew")

// day is by how much a fleet of 50 clusters, of a load of 0.1 and four cores each, makes of its load in each hour.
var day = []float64{1, 1, 1, 1.02, 1, 1.3, 1.8, 2.6, 4, 6, 6, 5.9, 6, 5.95, 6, 5, 3.5, 2.4, 2.4, 2.3, 1.5, 1, 1.02, 1}

const clusters = 50

// TestAFleetOf50 shows under each example of CPVPS and HVPA what a day makes of sizes.
func TestAFleetOf50(t *testing.T) {
	var b strings.Builder
	for _, one := range []struct{ name, function, smoothing string }{
		{"CPVPS: segments", `{base: 200m, input: cores, slope: 10m, segments: [{at: 4, every: 4}, {at: 32, every: 8}, {at: 256, every: 64}]}`, `{}`},
		{"CPVPS: every core, from 16 on each fourth", `{base: 100m, input: cores, slope: 10m, segments: [{at: 0, every: 1}, {at: 16, every: 4}]}`, `{}`},
		{"CPVPS: a tolerance of 20 cores", `{input: cores, slope: 10m}`, `{delayScaleDown: {inputs: {cores: 20}}}`},
		{"CPVPS: down after three hours", `{base: 200m, input: cores, slope: 10m, delayScaleDown: {delaySeconds: 10800}}`, `{}`},
		{"CPVPS: percentiles", `{base: 200m, input: cores, slope: 10m}`, `{percentile: {target: 0.80, lowThreshold: 0.60, highThreshold: 0.95}}`},
	} {
		fmt.Fprintf(&b, "%s\n", one.name)
		manifest, err := ReadCPVPS([]byte("kind: ScalingPolicy\nspec:\n  containers: [{name: c, resources: {requests: [{resource: cpu, function: " + one.function + "}]}}]\n  smoothing: " + one.smoothing + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		policy, err := manifest.Policy()
		if err != nil {
			t.Fatal(err)
		}
		cpvpsDay(&b, policy.Rules)
	}
	for _, one := range []struct {
		name      string
		most      int
		intervals []WeightInterval
	}{
		{"HVPA: horizontal, then a share, then horizontal", 10, []WeightInterval{{0, 1, 2}, {60, 3, 7}, {0, 8, 10}}},
		{"HVPA: vertical on one replica, then a share, then horizontal", 10, []WeightInterval{{100, 1, 1}, {60, 2, 4}, {0, 5, 10}}},
		{"HVPA: horizontal up to three, then vertical", 4, []WeightInterval{{0, 1, 3}, {100, 4, 4}}},
		{"HVPA: half and half", 7, []WeightInterval{{50, 1, 7}}},
	} {
		fmt.Fprintf(&b, "%s\n", one.name)
		hvpaDay(t, &b, one.most, one.intervals)
	}
	const file = "testdata/fleet.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("-golden +got (-update writes it anew):\n%s", diff)
	}
}

func cpvpsDay(b *strings.Builder, rules []size.Rule) {
	var states size.States
	last := ""
	for hour, factor := range day {
		cores := 4 * clusters * factor
		var result size.Result
		result, states = size.Evaluate(size.Question{Rules: rules, Replicas: []int{0}, Now: now.Add(time.Duration(hour) * time.Hour),
			Inputs: map[string]size.Reading{"cores": {Total: cores}}}, states)
		request, known := result.Sizes[0].Requests[size.CPU]
		text := request.String()
		if !known {
			text = "none yet"
		}
		if text != last {
			fmt.Fprintf(b, "  %02d:00  %5.0f cores  %s\n", hour, cores, text)
		}
		last = text
	}
}

// hvpaDay lets HVPA and ours follow a day, from two replicas that carry 2.5 each. The HPA wants as many as the size then
// needs, the VPA what each of those that are there uses.
func hvpaDay(t *testing.T, b *strings.Builder, most int, given []WeightInterval) {
	s := HVPASpec{Intervals: given}
	one := 1
	s.Hpa.Deploy, s.Hpa.Template.Spec.MinReplicas, s.Hpa.Template.Spec.MaxReplicas = true, &one, most
	var intervals []weights.Interval
	const today = 2.5
	for i, w := range given {
		in := weights.Interval{From: float64(w.Start-1) * today, Weight: w.VpaWeight}
		if to := float64(w.Last) * today; i < len(given)-1 {
			in.To = &to
		}
		intervals = append(intervals, in)
	}
	ours, wrong := weights.Check(intervals)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	theirs := struct {
		replicas int
		each     float64
	}{2, today}
	f := weights.Fleet{Replicas: 2, Capacity: today, Now: 2, Min: 1, Max: most, Hysteresis: 0.1, Intervals: ours}
	for hour, factor := range day {
		loads := make([]float64, clusters)
		for i := range loads {
			loads[i] = 0.1 * factor
		}
		load := 0.1 * factor * clusters
		theirs.replicas, theirs.each = hvpaHour(t, s, theirs.replicas, theirs.each, load, now.Add(time.Duration(hour)*time.Hour))
		f.Load, f.Heaviest, f.FullestOf = load, loads[0], fullest(loads)
		split := f.Decide()
		f.Now = split.Replicas
		short := ""
		if float64(theirs.replicas)*theirs.each < load-1e-9 {
			short = "  too small"
		}
		fmt.Fprintf(b, "  %02d:00  load %5.2f  ours %2d x %5.2f  HVPA %2d x %5.2f%s\n", hour, load, split.Replicas, split.Capacity, theirs.replicas, theirs.each, short)
		if need := f.FullestOf(split.Replicas); split.Capacity < need-1e-9 {
			t.Errorf("%02d:00: ours carry %v, and the fullest has %v", hour, split.Capacity, need)
		}
	}
}

func hvpaHour(t *testing.T, s HVPASpec, replicas int, each, load float64, at time.Time) (int, float64) {
	t.Helper()
	desired := min(max(int(math.Ceil(load/each-1e-9)), 1), s.Hpa.Template.Spec.MaxReplicas)
	weight := s.Weight(replicas, desired)
	milli := func(f float64) resource.Quantity {
		return *resource.NewMilliQuantity(int64(math.Round(f*1000)), resource.DecimalSI)
	}
	m := Moment{Now: at}
	vertical, err := s.Requests("c", size.Resources{Requests: map[string]resource.Quantity{size.CPU: milli(each)}},
		map[string]resource.Quantity{size.CPU: milli(load / float64(replicas))}, weight, replicas >= s.Hpa.Template.Spec.MaxReplicas, m)
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := s.Replicas(replicas, desired, 100-weight, m)
	if err != nil {
		t.Fatal(err)
	}
	if request, changed := vertical.Next.Requests[size.CPU]; changed {
		each = request.AsApproximateFloat64()
	}
	return int(verdict.Value), each
}

// fullest is the load of the fullest replica where each cluster, the heaviest first, goes to the least loaded one: what
// size.Fleet.FullestOf is where no partitioner is at hand.
func fullest(clusters []float64) func(replicas int) float64 {
	loads := slices.Clone(clusters)
	slices.Sort(loads)
	slices.Reverse(loads)
	return func(replicas int) float64 {
		bins := make([]float64, max(replicas, 1))
		for _, load := range loads {
			least := 0
			for i := range bins {
				if bins[i] < bins[least] {
					least = i
				}
			}
			bins[least] += load
		}
		return slices.Max(bins)
	}
}

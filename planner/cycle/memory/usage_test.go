package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/calibrate"
	"ballast/planner/cycle/track"
	"ballast/planner/sim"
)

var taken = []string{"apps", "objects"}

// mostSampled is how many samples are kept.
const mostSampled = 240

// learned takes so many samples of pods that take 100 and 3 for each object, and 20 for each application; draw says how many of them.
func learned(pods, samples int, draw func(pod, sample int) (apps, objects float64)) (u track.Usage) {
	for sample := range samples {
		var looks []track.Look
		for p := range pods {
			apps, objects := draw(p, sample)
			looks = append(looks, track.Look{Pod: fmt.Sprint("pod-", p), Of: fmt.Sprint(sample), Values: []float64{apps, objects},
				Memory: 100 + 20*apps + 3*objects})
		}
		now := sim.Epoch.Add(time.Duration(sample) * time.Hour)
		u = u.Next(looks, taken, now).Next(looks, taken, now.Add(30*time.Minute))
	}
	return u
}

// TestWhatIsLearnedSurvivesTheLeader: the next one has the samples, and works out the same.
func TestWhatIsLearnedSurvivesTheLeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Memory{Limit: 5, Usage: learned(rapid.IntRange(1, 5).Draw(t, "pods"), rapid.IntRange(1, 80).Draw(t, "samples"), func(int, int) (float64, float64) {
			return rapid.Float64Range(0, 10).Draw(t, "apps"), rapid.Float64Range(0, 100).Draw(t, "objects")
		})}
		if len(m.Usage.Rows) > mostSampled {
			t.Fatalf("%d samples", len(m.Usage.Rows))
		}
		parts, stale := m.Parts(nil)
		got, dropped := Of(parts)
		if diff := cmp.Diff(m.Usage, got.Usage, cmpopts.EquateApproxTime(0), cmpopts.EquateEmpty()); diff != "" || len(stale)+len(dropped) > 0 {
			t.Fatalf("%v %v (-want +got):\n%s", stale, dropped, diff)
		}
		if n := len(parts[partUsage]); n > 24<<10 {
			t.Fatalf("%d bytes", n)
		}
		if got.Limit != 5 {
			t.Fatalf("the limit is %d", got.Limit)
		}
	})
}

func TestNobodysSamplesAreLeftOut(t *testing.T) {
	minus := -1.0
	for name, of := range map[string]track.Usage{
		"below 0":        {Metrics: taken, Rows: []calibrate.Row{{Pod: "a", Values: []float64{1, 2}, Memory: &minus}}},
		"another metric": {Metrics: taken[:1], Rows: []calibrate.Row{{Pod: "a", Values: []float64{1, 2}}}},
		"too many":       {Metrics: taken, Rows: make([]calibrate.Row, mostSampled+1)},
	} {
		parts, _ := Memory{Usage: of}.Parts(nil)
		got, dropped := Of(parts)
		if len(dropped) != 1 || !strings.HasPrefix(dropped[0].Error(), "reading what clusters take of memory: ") || len(got.Usage.Rows) > 0 {
			t.Errorf("%s: %v, %+v", name, dropped, got.Usage)
		}
	}
}

func FuzzUsage(f *testing.F) {
	good, _ := Memory{Usage: learned(3, 6, func(p, s int) (float64, float64) { return float64(p), float64(s) })}.Parts(nil)
	f.Add(good[partUsage])
	f.Add([]byte("no part"))
	f.Fuzz(func(t *testing.T, part []byte) {
		m, dropped := Of(map[string][]byte{partUsage: part})
		if len(dropped) > 0 {
			return
		}
		if fit := m.Usage.Fit; fit != nil && !fit.Trusted() {
			t.Fatalf("%+v", fit)
		}
	})
}

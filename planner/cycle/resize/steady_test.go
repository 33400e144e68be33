package resize

import (
	"math/rand/v2"
	"testing"
	"time"

	"ballast/planner/config"
)

// A week of an input that swings by a twentieth about any edge of a level, or beside it, resizes a replica a handful of times.
func TestNoiseAtALevelsEdgeResizesAHandfulOfTimes(t *testing.T) {
	const atMost = 3
	for seed := range uint64(8) {
		coin := rand.New(rand.NewPCG(seed, 7))
		f := newFleet(1)
		f.Change.Down.StabilizationWindow = config.Duration(30 * time.Minute)
		f.Size.Policies[0].Rules[1].Quantize = &config.Quantize{Step: "512Mi"}
		edge := 5.12 * float64(1+coin.IntN(12)) // of which 100Mi each are whole steps
		center, resized := edge*(0.95+coin.Float64()/10), 0
		f.run(center)
		for range 7 * 24 * 6 {
			f.Now = f.Now.Add(9 * time.Minute)
			resized += f.run(center * (0.95 + coin.Float64()/10)).Sizing.Resized
		}
		if resized > atMost {
			t.Errorf("seed %d: %d resizes about %.2f applications, beside the edge of %.2f", seed, resized, center, edge)
		}
	}
}

// What is less by more than that shrinks to what the rules make of it, and a spike that is over makes nothing grow.
func TestALevelIsLeftWhereATenthMoreNeedsItNot(t *testing.T) {
	f := newFleet(1)
	f.Size.Policies[0].Rules[1].Quantize = &config.Quantize{Step: "1Gi"}
	for _, step := range []struct {
		when string
		apps float64
		want [2]string
	}{
		{"on the third level", 25, [2]string{"4Gi", "8Gi"}},
		{"a little below its edge", 20, [2]string{"4Gi", "8Gi"}},
		{"by less than a tenth", 18.7, [2]string{"4Gi", "8Gi"}},
		{"by more", 18.6, [2]string{"3Gi", "6Gi"}},
		{"back where it stayed", 20, [2]string{"3Gi", "6Gi"}},
		{"two levels at once", 0, [2]string{"1Gi", "2Gi"}},
		{"up at once", 10.3, [2]string{"3Gi", "6Gi"}},
		{"two levels above", 40, [2]string{"5Gi", "10Gi"}},
		{"two levels below, beside an edge", 20, [2]string{"3Gi", "6Gi"}},
	} {
		f.run(step.apps)
		wants(t, f, step.when, step.want)
	}
	f.Change.Up.StabilizationWindow = config.Duration(10 * time.Minute)
	f.runs(20, 20)
	f.runs(5, 21)
	f.runs(20, 20)
	wants(t, f, "after a spike that is shorter than the window", [2]string{"3Gi", "6Gi"})
}

// Where more of an input makes a replica smaller, a tenth less of it counts.
func TestALevelThatFallsRests(t *testing.T) {
	f := newFleet(1)
	f.Size.Policies[0].Rules = []config.SizeRule{{List: config.Requests, Resource: "memory", Base: "8Gi", Slope: "-100Mi", Input: "apps",
		Quantize: &config.Quantize{Step: "1Gi"}}}
	for _, step := range []struct {
		apps float64
		want [2]string
	}{{20, [2]string{"7Gi", "14Gi"}}, {21, [2]string{"7Gi", "14Gi"}}, {22.4, [2]string{"7Gi", "14Gi"}}, {22.6, [2]string{"6Gi", "12Gi"}}} {
		f.run(step.apps)
		wants(t, f, "by an input that makes it smaller", step.want)
	}
}

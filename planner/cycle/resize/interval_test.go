package resize

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/config"
)

// TestAnIntervalDelaysNoChangeByMoreThanItself: what a rate lets through replica by replica comes as it does without an interval, and by
// one interval later at most.
func TestAnIntervalDelaysNoChangeByMoreThanItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, every := rapid.IntRange(1, 3).Draw(t, "replicas"), rapid.IntRange(1, 60).Draw(t, "interval")
		period, later := rapid.IntRange(1, 45).Draw(t, "period"), rapid.IntRange(1, 60).Draw(t, "minutes at rest")
		grewAfter := func(interval time.Duration) []int {
			f, grew := newFleet(n), make([]int, n)
			f.Size.Interval = config.Duration(interval)
			f.runs(later, slices.Repeat([]float64{10}, n)...)
			f.Change.Up.Rate = []config.Pace{{Replicas: 1, Period: config.Duration(time.Duration(period) * time.Minute)}}
			for minute := 1; minute <= n*period+every; minute++ {
				f.run(slices.Repeat([]float64{40}, n)...)
				for r, held := range f.memory() {
					if grew[r] == 0 && held[0] == "5024Mi" {
						grew[r] = minute
					}
				}
			}
			return grew
		}
		without, with := grewAfter(0), grewAfter(time.Duration(every)*time.Minute)
		for r := range n {
			if with[r] == 0 || without[r] == 0 || with[r] > without[r]+every {
				t.Fatalf("with an interval of %d minutes replicas grow after %v, without after %v", every, with, without)
			}
		}
	})
}

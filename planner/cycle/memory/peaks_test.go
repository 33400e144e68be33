package memory

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPeaks(t *testing.T) {
	start := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	run := func(minutes int, load func(minute int) float64) Peaks {
		var p Peaks
		for minute := range minutes {
			p = p.Next([]float64{load(minute), 1}, start.Add(time.Duration(minute)*time.Minute), 24*time.Hour, 2*time.Minute)
		}
		return p
	}
	between := func(from, to int) func(int) float64 {
		return func(minute int) float64 {
			if minute >= from && minute < to {
				return 1.5
			}
			return 0.5
		}
	}
	for name, test := range map[string]struct {
		minutes int
		load    func(int) float64
		want    float64
	}{
		"as it was":               {60, func(int) float64 { return 0.7 }, 0.7},
		"a spike":                 {24 * 60, func(m int) float64 { return 0.5 + map[bool]float64{true: 1000}[m == 300] }, 0.55},
		"hours of the day":        {24 * 60, between(300, 600), 1.5},
		"those of the day before": {40 * 60, between(300, 600), 1.5},
		"those of before that":    {50 * 60, between(300, 600), 0.5},
	} {
		p := run(test.minutes, test.load)
		if got := p.Of(0); math.Abs(got-test.want) > 0.005 || p.Of(1) != 1 {
			t.Errorf("%s: %v and %v, want %v and 1", name, got, p.Of(1), test.want)
		}
	}
	p := run(60, func(int) float64 { return 0.7 })
	if taken := p.Takes(map[int]float64{0: 0.2}); taken.Of(0) != 0.9 || p.Of(0) != 0.7 {
		t.Errorf("%v, of %v that changed", taken.Of(0), p.Of(0))
	}
	if diff := cmp.Diff(Peaks{}, Peaks{}.Takes(map[int]float64{0: 0.2})); diff != "" {
		t.Errorf("where nobody measures them (-want +got):\n%s", diff)
	}
	if back := p.Next([]float64{2, 2}, start.Add(-time.Hour), 24*time.Hour, time.Minute); back.Of(0) != 0.7 {
		t.Errorf("a clock that went back makes %v", back.Of(0))
	}
}

package matrix

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// resamples of a bootstrap: enough for a 95 % interval.
const resamples = 1000

// quantile is of the nearest rank.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// estimate is a value in ms with its 95 % interval.
type estimate struct{ Value, Low, High float64 }

// added is the median over the rounds of the difference of two quantiles, [round][beat]; the interval is a bootstrap's
// over the beats of each round, both ways drawn together.
func added(ours, floor [][]float64, q float64) estimate {
	random := rand.New(rand.NewPCG(1, 2))
	drawn := make([]float64, resamples)
	for i := range drawn {
		drawn[i] = difference(ours, floor, q, random.IntN)
	}
	order := -1 // every beat once
	all := func(n int) int { order++; return order % n }
	return estimate{difference(ours, floor, q, all), quantile(drawn, 0.025), quantile(drawn, 0.975)}
}

// difference is of the beats that draw names, as many as there are.
func difference(ours, floor [][]float64, q float64, draw func(n int) int) float64 {
	rounds := make([]float64, len(ours))
	for r := range ours {
		n := len(ours[r])
		a, f := make([]float64, n), make([]float64, n)
		for i := range n {
			beat := draw(n)
			a[i], f[i] = ours[r][beat], floor[r][beat]
		}
		rounds[r] = quantile(a, q) - quantile(f, q)
	}
	return quantile(rounds, 0.5)
}

func TestAddedIsTheMedianOfThePairedDifferences(t *testing.T) {
	var ours, floor [][]float64
	for r := range 5 { // a round is as slow as it likes: what is common to both goes
		var a, f []float64
		for beat := range 100 {
			base := float64(r*10 + beat%10)
			a, f = append(a, base+2), append(f, base)
		}
		ours, floor = append(ours, a), append(floor, f)
	}
	for _, q := range []float64{0.5, 0.99} {
		if diff := cmp.Diff(estimate{2, 2, 2}, added(ours, floor, q)); diff != "" {
			t.Errorf("p%g (-want +got):\n%s", 100*q, diff)
		}
	}
}

package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ballast/planner/index"
	"ballast/planner/normalize"
)

// fleet is six normalized metrics over clusters whose work is lognormal with sigma 1, always the same.
func fleet(clusters int) (cols []normalize.Column, weights map[string]float64) {
	r := rand.New(rand.NewPCG(1, uint64(clusters)))
	cols, weights = make([]normalize.Column, 6), map[string]float64{}
	for i := range cols {
		cols[i] = col(fmt.Sprintf("metric-%d", i), make([]float64, clusters)...)
		weights[cols[i].ID] = 1.0 / 6
		for j := range cols[i].Values {
			cols[i].Values[j] = math.Exp(r.NormFloat64()) / float64(clusters)
		}
	}
	return cols, weights
}

func BenchmarkPNorm(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		cols, weights := fleet(n)
		for _, p := range []float64{1, 2, 3} {
			b.Run(fmt.Sprintf("p=%g/clusters=%d", p, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := index.PNorm(cols, p, weights); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package normalize_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ballast/planner/normalize"
)

// fleet is six metrics over clusters whose work is lognormal with sigma 1, always the same.
func fleet(clusters int) []normalize.Column {
	r := rand.New(rand.NewPCG(1, uint64(clusters)))
	cols := make([]normalize.Column, 6)
	for i := range cols {
		cols[i] = col(fmt.Sprintf("metric-%d", i), make([]float64, clusters)...)
		for j := range cols[i].Values {
			cols[i].Values[j] = 100 * math.Exp(r.NormFloat64())
		}
	}
	return cols
}

func BenchmarkNormalize(b *testing.B) {
	e := 0.01
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		cols := fleet(n)
		refs := anchors(b, cols)
		for _, bench := range []struct {
			name string
			call func() ([]normalize.Column, error)
		}{
			{"reference", func() ([]normalize.Column, error) { return normalize.Reference(cols, refs) }},
			{"robust", func() ([]normalize.Column, error) { return normalize.Robust(cols, &e) }},
			{"minMax", func() ([]normalize.Column, error) { return normalize.MinMax(cols) }},
		} {
			b.Run(fmt.Sprintf("%s/clusters=%d", bench.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := bench.call(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package evaluate_test

import (
	"fmt"
	"testing"
	"time"

	"ballast/planner/evaluate"
)

// BenchmarkMostWanted is one cycle of a vote that has nine samples, all of them different.
func BenchmarkMostWanted(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		h := busy(n, 9, 64)
		var c evaluate.Candidate
		for _, c = range busy(n, 1, 64).Candidates {
			break
		}
		o := evaluate.MostWantedOptions{Window: time.Hour, MinSamples: 60, MaxAssignments: 20 * n}
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				evaluate.MostWanted(h, c, h.Basis, at(30), o)
			}
		})
	}
}

func BenchmarkHistory(b *testing.B) {
	h := busy(5_000, 60, 64)
	data, err := h.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("pack/clusters=5000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.MarshalBinary(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unpack/clusters=5000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var got evaluate.Vote
			if err := got.UnmarshalBinary(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

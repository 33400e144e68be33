package lastgood

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestRoundKeepsSevenDigits of whatever number, as they are printed, and changes none that it made.
func TestRoundKeepsSevenDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-1e9, 1e9), rapid.Float64Range(0, 1e-3), rapid.SampledFrom([]float64{0, 1, 999999.95, 9999999.5, 1e22, 1e-22, math.MaxFloat64, math.SmallestNonzeroFloat64})).Draw(t, "v")
		got := Round(v)
		if off := math.Abs(got - v); off > 5.000001e-7*math.Abs(v) {
			t.Fatalf("Round(%v) = %v, off by %v", v, got, off/v)
		}
		if again := Round(got); again != got {
			t.Fatalf("Round(%v) = %v, and that again is %v", v, got, again)
		}
		printed, err := strconv.ParseFloat(strconv.FormatFloat(got, 'g', 7, 64), 64)
		if err != nil || printed != got {
			t.Fatalf("Round(%v) = %v, which has more than seven digits", v, got)
		}
	})
}

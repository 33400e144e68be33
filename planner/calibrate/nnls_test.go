package calibrate

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// equations are drawn with columns that depend on each other now and then, and of very different sizes.
func equations(t *rapid.T) (*mat.Dense, []float64) {
	rows, n := rapid.IntRange(1, 30).Draw(t, "rows"), rapid.IntRange(1, 8).Draw(t, "columns")
	a := mat.NewDense(rows, n, nil)
	for j := range n {
		size := math.Pow(10, float64(rapid.IntRange(-3, 6).Draw(t, "size")))
		twin := rapid.IntRange(0, 4).Draw(t, "twin") == 0 && j > 0
		for i := range rows {
			v := size * float64(rapid.IntRange(-5, 20).Draw(t, "v"))
			if twin {
				v = 3 * a.At(i, j-1)
			}
			a.Set(i, j, v)
		}
	}
	b := make([]float64, rows)
	for i := range b {
		b[i] = 1e6 * float64(rapid.IntRange(-10, 100).Draw(t, "b"))
	}
	return a, b
}

// A solution is one if no number is negative, no other number would shorten the rest, and none that counts would by being less or
// more: the conditions of Karush, Kuhn and Tucker.
func TestTheSolutionIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := equations(t)
		x, err := NNLS(a, b)
		if err != nil {
			t.Fatal(err)
		}
		length := mat.Norm(mat.NewVecDense(len(b), b), 2)
		for j, v := range x {
			if v < 0 || math.IsNaN(v) {
				t.Fatalf("%v is negative", x)
			}
			column := mat.NewVecDense(len(b), mat.Col(nil, j, a))
			slope := 0.0
			for i := range b {
				left := b[i]
				for k, xk := range x {
					left -= xk * a.At(i, k)
				}
				slope += left * column.AtVec(i)
			}
			norm := mat.Norm(column, 2) * length
			if norm > 0 && (slope/norm > 1e-6 || v > 0 && math.Abs(slope/norm) > 1e-6) {
				t.Fatalf("%v: the slope of %d is %g", x, j, slope/norm)
			}
		}
	})
}

// Numbers that made the values are found, to what rounding leaves.
func TestKnownNumbersAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "columns")
		rows := 3*n + rapid.IntRange(0, 40).Draw(t, "rows")
		a, want, b := mat.NewDense(rows, n, nil), make([]float64, n), make([]float64, rows)
		for j := range n {
			want[j] = float64(rapid.IntRange(0, 50).Draw(t, "number"))
			for i := range rows { // each column has rows of its own
				v := float64(rapid.IntRange(0, 9).Draw(t, "v"))
				if i%n == j && i < 3*n {
					v += 100
				}
				a.Set(i, j, v)
			}
		}
		for i := range b {
			for j := range n {
				b[i] += want[j] * a.At(i, j)
			}
		}
		x, err := NNLS(a, b)
		if err != nil {
			t.Fatal(err)
		}
		for j := range x {
			if math.Abs(x[j]-want[j]) > 1e-6*(1+slices.Max(want)) {
				t.Fatalf("%v, want %v", x, want)
			}
		}
	})
}

func TestWhatNobodyCanFit(t *testing.T) {
	one := mat.NewDense(2, 1, []float64{1, 2})
	for name, test := range map[string]struct {
		a    *mat.Dense
		b    []float64
		want string
	}{
		"another length": {one, []float64{1}, "fitting 2 equations to 1 values"},
		"no number":      {mat.NewDense(1, 1, []float64{math.NaN()}), []float64{1}, "fitting what is no finite number"},
		"no end":         {one, []float64{1, math.Inf(1)}, "fitting what is no finite number"},
	} {
		if _, err := NNLS(test.a, test.b); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	for name, test := range map[string]struct {
		a    *mat.Dense
		b    []float64
		want []float64
	}{
		"the rest is below 0":    {one, []float64{-1, -2}, []float64{0}},
		"a column of nothing":    {mat.NewDense(2, 2, []float64{0, 1, 0, 2}), []float64{3, 6}, []float64{0, 3}},
		"two that say the same":  {mat.NewDense(2, 2, []float64{1, 1, 2, 2}), []float64{3, 6}, []float64{3, 0}},
		"nothing to fit":         {one, []float64{0, 0}, []float64{0}},
		"one that would be less": {mat.NewDense(2, 2, []float64{1, 1, 0, 1}), []float64{2, -1}, []float64{2, 0}},
	} {
		got, err := NNLS(test.a, test.b)
		for i := range got {
			got[i] = math.Round(1e9*got[i]) / 1e9
		}
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v (%v), want %v", name, got, err, test.want)
		}
	}
}

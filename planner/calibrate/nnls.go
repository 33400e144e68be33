package calibrate

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

const (
	// dependent is the share of a column that must be its own, beside what the others say already, to count.
	dependent = 1e-6
	// downhill is by how much of the right side's length a column must shorten the rest to be taken.
	downhill = 1e-9
)

// NNLS is the non-negative least squares solution of a x = b, by Lawson and Hanson's active sets. A column that depends
// on those that are taken already is left at 0: nobody could say which of them it is. Where several would do as well
// the first is taken.
func NNLS(a *mat.Dense, b []float64) ([]float64, error) {
	rows, columns := a.Dims()
	if rows != len(b) {
		return nil, fmt.Errorf("fitting %d equations to %d values", rows, len(b))
	}
	for _, v := range slices.Concat(a.RawMatrix().Data, b) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("fitting what is no finite number")
		}
	}
	s := newSolver(a, b)
	for range 3*columns + 10 {
		j := s.steepest()
		if j < 0 {
			return s.unscaled(), nil
		}
		s.take(j)
	}
	return nil, fmt.Errorf("fitting %d columns: no end after %d steps", columns, 3*columns+10)
}

// solver has the equations as a triangle, which has the same solutions: columns of length 1, the right side last.
type solver struct {
	r      *mat.Dense // upper triangular, columns+1 wide; fewer rows where there are fewer equations
	length []float64  // that each column had
	right  float64    // and the right side
	x      []float64
	taken  []bool
	out    []bool // columns that depend on those taken
}

func newSolver(a *mat.Dense, b []float64) *solver {
	rows, n := a.Dims()
	s := &solver{length: make([]float64, n), x: make([]float64, n), taken: make([]bool, n), out: make([]bool, n)}
	all := mat.NewDense(max(rows, n+1), n+1, nil) // QR takes no fewer rows than columns
	for j := range n {
		column := mat.Col(nil, j, a)
		s.length[j] = scaled(column)
		for i, v := range column {
			all.Set(i, j, v)
		}
	}
	right := slices.Clone(b)
	s.right = scaled(right)
	for i, v := range right {
		all.Set(i, n, v)
	}
	var qr mat.QR
	qr.Factorize(all)
	var r mat.Dense
	qr.RTo(&r)
	s.r = mat.DenseCopyOf(r.Slice(0, n+1, 0, n+1))
	return s
}

// scaled makes a column one of length 1, and answers what it had.
func scaled(column []float64) float64 {
	most := 0.0
	for _, v := range column {
		most = max(most, math.Abs(v))
	}
	if most == 0 {
		return 0
	}
	sum := 0.0
	for i := range column {
		column[i] /= most
		sum += column[i] * column[i]
	}
	for i := range column {
		column[i] /= math.Sqrt(sum)
	}
	return most * math.Sqrt(sum)
}

// rest is what the solution leaves of the right side.
func (s *solver) rest() []float64 {
	n := len(s.x)
	rest := mat.Col(nil, n, s.r)
	for j, x := range s.x {
		for i := range rest {
			rest[i] -= x * s.r.At(i, j)
		}
	}
	return rest
}

// steepest is the column that shortens the rest most; -1: none does.
func (s *solver) steepest() int {
	rest, best, most := s.rest(), -1, downhill
	for j := range s.x {
		if s.taken[j] || s.out[j] || s.length[j] == 0 {
			continue
		}
		slope := 0.0
		for i, v := range rest {
			slope += v * s.r.At(i, j)
		}
		if slope > most*(1+1e-9) { // the first of those that are equal
			best, most = j, slope
		}
	}
	return best
}

// take lets a column count, and lets go of those that would be negative then.
func (s *solver) take(j int) {
	if s.depends(j) {
		s.out[j] = true
		return
	}
	s.taken[j] = true
	for range len(s.x) + 1 {
		z := s.solve()
		step, negative := 1.0, false
		for k := range s.x {
			if s.taken[k] && z[k] <= 0 {
				negative = true
				step = min(step, s.x[k]/(s.x[k]-z[k]))
			}
		}
		if !negative {
			s.x = z
			return
		}
		for k := range s.x {
			s.x[k] += step * (z[k] - s.x[k])
			crossed := z[k] <= 0 && s.x[k]/(s.x[k]-z[k]) <= step
			if s.taken[k] && (s.x[k] <= 1e-15 || crossed) {
				s.taken[k], s.x[k] = false, 0
			}
		}
		clear(s.out) // they depended on what is gone
		if j >= 0 && !s.taken[j] {
			s.out[j] = true // it was no way down but by rounding
		}
	}
}

// columns are those taken, and their numbers.
func (s *solver) columns() (*mat.Dense, []int) {
	var of []int
	for k, taken := range s.taken {
		if taken {
			of = append(of, k)
		}
	}
	if len(of) == 0 {
		return nil, nil
	}
	rows, _ := s.r.Dims()
	a := mat.NewDense(rows, len(of), nil)
	for at, k := range of {
		a.SetCol(at, mat.Col(nil, k, s.r))
	}
	return a, of
}

// solve is the least squares solution over the columns taken, whatever its signs.
func (s *solver) solve() []float64 {
	z := make([]float64, len(s.x))
	a, of := s.columns()
	if a == nil {
		return z
	}
	for at, v := range leastSquares(a, mat.Col(nil, len(s.x), s.r)) {
		z[of[at]] = v
	}
	return z
}

// depends reports whether a column says nothing beside those taken.
func (s *solver) depends(j int) bool {
	a, _ := s.columns()
	if a == nil {
		return false
	}
	column := mat.Col(nil, j, s.r)
	by := leastSquares(a, column)
	sum := 0.0
	for i, v := range column {
		for at, x := range by {
			v -= x * a.At(i, at)
		}
		sum += v * v
	}
	return math.Sqrt(sum) < dependent
}

// leastSquares of columns that do not depend on each other.
func leastSquares(a *mat.Dense, b []float64) []float64 {
	var qr mat.QR
	qr.Factorize(a)
	var x mat.VecDense
	if err := qr.SolveVecTo(&x, false, mat.NewVecDense(len(b), b)); err != nil {
		var nearly mat.Condition
		if !errors.As(err, &nearly) || math.IsInf(float64(nearly), 1) {
			return make([]float64, x.Len())
		}
	}
	return mat.Col(nil, 0, &x)
}

func (s *solver) unscaled() []float64 {
	x := make([]float64, len(s.x))
	for j := range x {
		if s.taken[j] {
			x[j] = s.x[j] * s.right / s.length[j]
		}
	}
	return x
}

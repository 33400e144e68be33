package size

import (
	"math"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxMilli bounds every result: 4.6 PB, or as many thousands of cores. Sums of two still are an int64.
const maxMilli = math.MaxInt64 / 2

// tolerance is how far above a multiple a quotient may lie and still count as that multiple.
var tolerance = big.NewRat(1, 1000)

// exact is a quantity without rounding.
func exact(q resource.Quantity) *big.Rat {
	if i, whole := q.AsInt64(); whole {
		return new(big.Rat).SetInt64(i)
	}
	q = q.DeepCopy()
	dec := q.AsDec()
	r := new(big.Rat).SetInt(dec.UnscaledBig())
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(absolute(int(dec.Scale())))), nil)
	if dec.Scale() < 0 {
		return r.Mul(r, new(big.Rat).SetInt(ten))
	}
	return r.Quo(r, new(big.Rat).SetInt(ten))
}

func absolute(i int) int { return max(i, -i) }

// finite is an input as an exact number; what is none is 0.
func finite(input float64) *big.Rat {
	if math.IsNaN(input) || math.IsInf(input, 0) {
		return new(big.Rat)
	}
	return new(big.Rat).SetFloat64(input)
}

// segment is the one with the largest At that is not above the input, of equal ones the first; nil below every At.
func segment(segments []Segment, input *big.Rat) *Segment {
	var best *Segment
	for i, s := range segments {
		if exact(s.At).Cmp(input) > 0 {
			continue
		}
		if best == nil || best.At.Cmp(s.At) < 0 {
			best = &segments[i]
		}
	}
	return best
}

// ceiling rounds up to a whole number.
func ceiling(r *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func roundIn(s *Segment, input *big.Rat) *big.Rat {
	if s == nil || s.Every.Sign() <= 0 {
		return input
	}
	every := exact(s.Every)
	quotient := new(big.Rat).Quo(input, every)
	return every.Mul(every, new(big.Rat).SetInt(ceiling(quotient.Sub(quotient, tolerance))))
}

// Round rounds an input up by the segment that it lies in; below every segment, and without any, it stays.
func Round(segments []Segment, input float64) float64 {
	in := finite(input)
	out, _ := roundIn(segment(segments, in), in).Float64()
	return out
}

// Value is what the rule computes of an input. Where the input is not known it is the base. It is never below 0, and has
// the base's format, else the slope's.
func (r Rule) Value(input float64, known bool) resource.Quantity {
	return r.value(finite(input), known)
}

func (r Rule) value(in *big.Rat, known bool) resource.Quantity {
	sum := exact(r.Base)
	if known && r.Input != "" {
		part := new(big.Rat).Mul(exact(r.Slope), roundIn(segment(r.Segments, in), in))
		if r.Per.Sign() > 0 {
			part.Quo(part, exact(r.Per))
		}
		sum.Add(sum, part)
	}
	format := r.Base.Format
	if r.Base.IsZero() {
		format = r.Slope.Format
	}
	return r.bounded(quantity(sum, format))
}

// bounded rounds to the quantum and keeps to the rule's bounds.
func (r Rule) bounded(q resource.Quantity) resource.Quantity {
	if r.Quantum != nil {
		q = r.Quantum.Round(q)
	}
	if r.Min != nil && q.Cmp(*r.Min) < 0 {
		q = *r.Min
	}
	if r.Max != nil && q.Cmp(*r.Max) > 0 {
		q = *r.Max
	}
	if q.Sign() < 0 {
		q = *resource.NewMilliQuantity(0, q.Format)
	}
	return q
}

// quantity cuts off what is less than a thousandth.
func quantity(r *big.Rat, format resource.Format) resource.Quantity {
	return *resource.NewMilliQuantity(milli(r), format)
}

// lost is what a float may have lost: 459.99999999999994 cores are 460.
var lost = big.NewRat(1, 1_000_000)

// milli is whole thousandths, cut and bounded.
func milli(r *big.Rat) int64 {
	n := new(big.Rat).Mul(r, big.NewRat(1000, 1))
	n.Add(n, lost)
	whole := new(big.Int).Quo(n.Num(), n.Denom())
	switch {
	case whole.Cmp(big.NewInt(maxMilli)) > 0:
		return maxMilli
	case whole.Cmp(big.NewInt(-maxMilli)) < 0:
		return -maxMilli
	}
	return whole.Int64()
}

// add is the sum in the first's format.
func add(a, b resource.Quantity) resource.Quantity {
	sum := new(big.Rat).Add(exact(a), exact(b))
	return quantity(sum, a.Format)
}

// share is q * part / whole; q where whole is nothing.
func share(q, part, whole resource.Quantity) resource.Quantity {
	if whole.Sign() <= 0 {
		return q
	}
	n := new(big.Rat).Mul(exact(q), exact(part))
	return quantity(n.Quo(n, exact(whole)), q.Format)
}

// Whole is a size as it can be written: memory in whole bytes, the next above.
func Whole(name string, q resource.Quantity) resource.Quantity {
	if name != Memory {
		return q
	}
	if n := ceiling(exact(q)); n.IsInt64() {
		return *resource.NewQuantity(n.Int64(), q.Format)
	}
	return q
}

// Times is a quantity times a number, in whole thousandths.
func Times(q resource.Quantity, n *big.Rat) resource.Quantity {
	return quantity(new(big.Rat).Mul(exact(q), n), q.Format)
}

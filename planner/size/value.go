package size

import (
	"math"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/size/rational"
)

// tolerance is how far above a multiple a quotient may lie and still count as that multiple.
var tolerance = big.NewRat(1, 1000)

// segment is the one with the largest At that is not above the input, of equal ones the first; nil below every At.
func segment(segments []Segment, input *big.Rat) *Segment {
	var best *Segment
	for i, s := range segments {
		if rational.Of(s.At).Cmp(input) > 0 {
			continue
		}
		if best == nil || best.At.Cmp(s.At) < 0 {
			best = &segments[i]
		}
	}
	return best
}

func roundIn(s *Segment, input *big.Rat) *big.Rat {
	if s == nil || s.Every.Sign() <= 0 {
		return input
	}
	every := rational.Of(s.Every)
	quotient := new(big.Rat).Quo(input, every)
	return every.Mul(every, new(big.Rat).SetInt(rational.Ceiling(quotient.Sub(quotient, tolerance))))
}

// Round rounds an input up by the segment that it lies in; below every segment, and without any, it stays.
func Round(segments []Segment, input float64) float64 {
	in := rational.Finite(input)
	out, _ := roundIn(segment(segments, in), in).Float64()
	return out
}

// Value is what the rule computes of an input. Where the input is not known it is the base. It is never below 0, and
// has the base's format, else the slope's.
func (r Rule) Value(input float64, known bool) resource.Quantity {
	return r.value(rational.Finite(input), known)
}

func (r Rule) value(in *big.Rat, known bool) resource.Quantity {
	sum := rational.Of(r.Base)
	if known && r.Input != "" {
		part := new(big.Rat).Mul(rational.Of(r.Slope), roundIn(segment(r.Segments, in), in))
		if r.Per.Sign() > 0 {
			part.Quo(part, rational.Of(r.Per))
		}
		sum.Add(sum, part)
	}
	format := r.Base.Format
	if r.Base.IsZero() {
		format = r.Slope.Format
	}
	return r.bounded(rational.Quantity(sum, format))
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

// Whole is a size as it can be written: memory in whole bytes, the next above.
func Whole(name string, q resource.Quantity) resource.Quantity {
	if name != Memory {
		return q
	}
	if n := rational.Ceiling(rational.Of(q)); n.IsInt64() {
		return *resource.NewQuantity(n.Int64(), q.Format)
	}
	return q
}

// manySteps is how many growing steps are counted one by one; with any ratio that Validate lets through the steps have
// outgrown every quantity by then.
const manySteps = 10_000

// Round is the lowest of the quantum's levels that is not below q. Without a step it is q, or Base where that is above.
func (u Quantum) Round(q resource.Quantity) resource.Quantity {
	level, want, step := rational.MilliUp(u.Base), rational.MilliUp(q), float64(rational.MilliUp(u.Step))
	most := float64(rational.MilliUp(u.MaxStep))
	for range manySteps {
		if level >= want {
			return *resource.NewMilliQuantity(level, q.Format)
		}
		if step < 1 {
			return q
		}
		if u.Ratio <= 1 || most > 0 && step >= most { // all further steps are alike
			return *resource.NewMilliQuantity(upTo(level, want, int64(step)), q.Format)
		}
		level = min(level+int64(math.Min(step, rational.MaxMilli)), rational.MaxMilli)
		if step *= u.Ratio; most > 0 {
			step = math.Min(step, most)
		}
	}
	return q
}

// upTo is the first of level, level+step, and so on that is not below want.
func upTo(level, want, step int64) int64 {
	steps := (want - level + step - 1) / step
	if steps > (rational.MaxMilli-level)/step {
		return rational.MaxMilli
	}
	return level + steps*step
}

// Package rational has exact arithmetic of quantities.
package rational

import (
	"math"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"
)

// MaxMilli bounds every result: 4.6 PB, or as many thousands of cores. Sums of two still are an int64.
const MaxMilli = math.MaxInt64 / 2

// Of is a quantity without rounding.
func Of(q resource.Quantity) *big.Rat {
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

// Finite is an input as an exact number; what is none is 0.
func Finite(input float64) *big.Rat {
	if math.IsNaN(input) || math.IsInf(input, 0) {
		return new(big.Rat)
	}
	return new(big.Rat).SetFloat64(input)
}

// Ceiling rounds up to a whole number.
func Ceiling(r *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// Quantity cuts off what is less than a thousandth.
func Quantity(r *big.Rat, format resource.Format) resource.Quantity {
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
	case whole.Cmp(big.NewInt(MaxMilli)) > 0:
		return MaxMilli
	case whole.Cmp(big.NewInt(-MaxMilli)) < 0:
		return -MaxMilli
	}
	return whole.Int64()
}

// Add is the sum in the first's format.
func Add(a, b resource.Quantity) resource.Quantity {
	sum := new(big.Rat).Add(Of(a), Of(b))
	return Quantity(sum, a.Format)
}

// Share is q * part / whole; q where whole is nothing.
func Share(q, part, whole resource.Quantity) resource.Quantity {
	if whole.Sign() <= 0 {
		return q
	}
	n := new(big.Rat).Mul(Of(q), Of(part))
	return Quantity(n.Quo(n, Of(whole)), q.Format)
}

// Times is a quantity times a number, in whole thousandths.
func Times(q resource.Quantity, n *big.Rat) resource.Quantity {
	return Quantity(new(big.Rat).Mul(Of(q), n), q.Format)
}

// Bytes is that many bytes; nil where no quantity has them.
func Bytes(bytes float64) *resource.Quantity {
	n := Ceiling(Finite(bytes))
	if !n.IsInt64() {
		return nil
	}
	return resource.NewQuantity(n.Int64(), resource.BinarySI)
}

// MilliUp is whole thousandths, rounded up and bounded.
func MilliUp(q resource.Quantity) int64 {
	n := Ceiling(new(big.Rat).Mul(Of(q), big.NewRat(1000, 1)))
	if n.Cmp(big.NewInt(MaxMilli)) > 0 {
		return MaxMilli
	}
	return max(n.Int64(), 0)
}

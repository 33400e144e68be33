package size

import (
	"math"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"
)

// manySteps is how many growing steps are counted one by one; with any ratio that Validate lets through the steps have
// outgrown every quantity by then.
const manySteps = 10_000

// Round is the lowest of the quantum's levels that is not below q. Without a step it is q, or Base where that is above.
func (u Quantum) Round(q resource.Quantity) resource.Quantity {
	level, want, step := milliUp(u.Base), milliUp(q), float64(milliUp(u.Step))
	most := float64(milliUp(u.MaxStep))
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
		level = min(level+int64(math.Min(step, maxMilli)), maxMilli)
		if step *= u.Ratio; most > 0 {
			step = math.Min(step, most)
		}
	}
	return q
}

// upTo is the first of level, level+step, and so on that is not below want.
func upTo(level, want, step int64) int64 {
	steps := (want - level + step - 1) / step
	if steps > (maxMilli-level)/step {
		return maxMilli
	}
	return level + steps*step
}

// milliUp is whole thousandths, rounded up and bounded.
func milliUp(q resource.Quantity) int64 {
	n := ceiling(new(big.Rat).Mul(exact(q), big.NewRat(1000, 1)))
	if n.Cmp(big.NewInt(maxMilli)) > 0 {
		return maxMilli
	}
	return max(n.Int64(), 0)
}

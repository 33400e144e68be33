package draft

import (
	"math"
	"math/bits"

	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// unit is what loads are counted in here: each is parts/loads of what was asked.
type unit struct{ loads, parts plan.Load }

// from is a load as it is counted here, to is the way back; both round down.
func (u unit) from(load plan.Load) plan.Load { return mulDiv(load, u.parts, u.loads) }
func (u unit) to(load plan.Load) plan.Load   { return mulDiv(load, u.loads, u.parts) }

// fine is how many parts the fleet has at least: a share of a load is rounded down to a part.
const fine = plan.Load(1) << 30

// refined counts loads in small enough parts. The setting's are divided by what they have in common: eight alike are 1
// each, of which 0.95 of an even share is no more than 3 of 4.
func refined(c *constraint.Setting) (*constraint.Setting, unit) {
	u := unit{loads: 1, parts: 1}
	for i, load := range c.Loads {
		if load > 0 {
			u.loads = c.Items[i].Load / load
			break
		}
	}
	whole := max(c.Total, c.Capacity)
	if c.Total == 0 || whole >= fine {
		return c, u
	}
	for whole*u.parts < fine {
		u.parts *= 2
	}
	q := *c
	q.Total *= u.parts
	q.Capacity *= u.parts
	q.Heaviest *= u.parts
	q.Loads = make([]plan.Load, len(c.Loads))
	for i, load := range c.Loads {
		q.Loads[i] = load * u.parts
	}
	return &q, u
}

// mulDiv is a*b/c, rounded down; it saturates.
func mulDiv(a, b, c plan.Load) plan.Load {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	quo, _ := bits.Div64(hi, lo, uint64(c))
	return plan.Load(min(quo, math.MaxInt64))
}

// Package weights says what share of growth is vertical, and how many replicas that makes.
package weights

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Interval is a range of total load in which Weight percent of the growth makes replicas larger, the rest makes more of
// them. It reaches from From up to the next one's.
type Interval struct {
	From   float64
	To     *float64 // nil: without end
	Weight int
}

// String is the interval in words.
func (i Interval) String() string {
	if i.To == nil {
		return fmt.Sprintf("from %v on", i.From)
	}
	return fmt.Sprintf("%v to %v", i.From, *i.To)
}

// Intervals are a whole: sorted, without a gap, from 0 without end.
type Intervals []Interval

// Check sorts intervals and refuses gaps, overlaps and weights that are no percentage, each with its ranges.
func Check(given []Interval) (Intervals, []string) {
	in := slices.Clone(given)
	slices.SortStableFunc(in, func(a, b Interval) int { return cmp.Compare(a.From, b.From) })
	var wrong []string
	at := 0.0
	for i, one := range in {
		wrong = append(wrong, one.wrong()...)
		switch {
		case one.From > at:
			wrong = append(wrong, fmt.Sprintf("nothing is said of a load of %v to %v: let the interval %v begin at %v",
				at, one.From, one, at))
		case one.From < at && i > 0:
			wrong = append(wrong, fmt.Sprintf("the intervals %v and %v overlap from %v to %v", in[i-1], one, one.From,
				end(one, at)))
		}
		at = math.Max(at, end(one, math.Inf(1)))
	}
	if len(in) > 0 && !math.IsInf(at, 1) {
		wrong = append(wrong, fmt.Sprintf("nothing is said of a load of %v and more: leave out the end of the interval %v", at, in[len(in)-1]))
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return in, nil
}

// end is where an interval ends, at most at a border.
func end(i Interval, border float64) float64 {
	if i.To == nil {
		return border
	}
	return math.Min(*i.To, border)
}

func (i Interval) wrong() (wrong []string) {
	bad := func(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) || f < 0 }
	if bad(i.From) || i.To != nil && (bad(*i.To) || *i.To <= i.From) {
		wrong = append(wrong, fmt.Sprintf("the interval %v is no range of loads", i))
	}
	if i.Weight < 0 || i.Weight > 100 {
		wrong = append(wrong, fmt.Sprintf("the weight %d of the interval %v is no percentage", i.Weight, i))
	}
	return wrong
}

// Holds is which interval a load lies in: the last that begins at or below it, the first below all of them. -1: none.
func (in Intervals) Holds(load float64) int {
	i, found := slices.BinarySearchFunc(in, load, func(one Interval, load float64) int { return cmp.Compare(one.From, load) })
	if found {
		return i
	}
	return max(i-1, min(0, len(in)-1))
}

// least is the smallest load that counts: that of nothing has no logarithm.
const least = 1e-9

// Growth is by what factor replicas become more while the load goes from one value to another: each part of the way
// counts with what the weight of its interval leaves. So it leaps at no border, and is the same whichever way the load
// came. Without intervals there is one weight for all of it.
func (in Intervals) Growth(from, to float64, otherwise int) float64 {
	if from <= 0 {
		return 1
	}
	if len(in) == 0 {
		in = Intervals{{Weight: otherwise}}
	}
	from, to = math.Max(from, least), math.Max(to, least)
	low, high, sum := math.Min(from, to), math.Max(from, to), 0.0
	for i, one := range in {
		begin, end := math.Max(one.From, low), high
		if i+1 < len(in) {
			end = math.Min(in[i+1].From, high)
		}
		if begin < end {
			sum += (math.Log(end) - math.Log(begin)) * (1 - float64(one.Weight)/100)
		}
	}
	if to < from {
		sum = -sum
	}
	return math.Exp(sum)
}

// Fleet is what replicas and their capacity follow from. Loads are in one unit.
type Fleet struct {
	Replicas   int                        // where the growth is counted from
	Capacity   float64                    // and what each of those carries
	Now        int                        // replicas in force; 0: Replicas are, and stay where they fit
	Load       float64                    // the whole
	Heaviest   float64                    // cluster
	Min, Max   int                        // replicas
	NodeCap    float64                    // the most load that one replica can be made to carry; 0: no bound
	Hysteresis float64                    // a share: how much more load fewer replicas must be enough for, and how far below capacity the fullest may be
	FullestOf  func(replicas int) float64 // the load of the fullest replica where there are so many
	// Request is what the largest of so many asks for, as a share of a node, with so much more of everything; nil:
	// NodeCap says.
	Request       func(replicas int, spare float64) float64
	Intervals     Intervals
	DefaultWeight int // without intervals
}

// Split is how many replicas there are to be, and what each must carry.
type Split struct {
	Replicas int
	Capacity float64
	Weight   int  // of the load's interval
	OverNode bool // even so the fullest replica is larger than a node
	Fewer    int  // replicas that the weights ask for, of which each would be larger than they ask; 0: none
	Why      string
}

// Decide shares the growth between more replicas and larger ones.
func (f Fleet) Decide() Split {
	s := Split{Replicas: clamp(f.Replicas, f.Min, f.Max), Weight: f.DefaultWeight}
	if i := f.Intervals.Holds(f.Load); i >= 0 {
		s.Weight = f.Intervals[i].Weight
	}
	if f.Now == 0 && f.fits(s.Replicas) {
		s.Capacity, s.Why = f.Capacity, "what is in force fits"
		return f.under(s)
	}
	s.Replicas = f.count(f.Load)
	if s.Replicas < f.Now {
		f.shrink(&s)
	}
	s.Capacity = f.needs(s.Replicas)
	s.Why = fmt.Sprintf("%d replicas of %.3g grow to %.2f for a load of %.3g", f.Replicas, f.Capacity, f.exact(f.Load),
		f.Load)
	return f.under(s)
}

// shrink takes away the replicas that are not needed for somewhat more load either, and none whose work makes the
// others larger than the weights ask.
func (f Fleet) shrink(s *Split) {
	s.Replicas = min(f.count(f.Load*(1+f.Hysteresis)), clamp(f.Now, f.Min, f.Max))
	asked, least := f.Asked()*(1+f.Hysteresis), s.Replicas
	for s.Replicas < min(f.Now, f.Max) && f.larger(s.Replicas, asked) {
		s.Replicas++
	}
	if s.Replicas > least {
		s.Fewer = least
	}
}

// larger reports whether the fullest of so many replicas is larger than that, and than it is of those in force.
func (f Fleet) larger(replicas int, asked float64) bool {
	need := f.needs(replicas)
	return need > asked*(1+rounding) && need > f.needs(f.Now)*(1+rounding)
}

// exact is how many replicas a load asks for, as a fraction.
func (f Fleet) exact(load float64) float64 {
	n := float64(f.Replicas) * f.Intervals.Growth(float64(f.Replicas)*f.Capacity, load, f.DefaultWeight)
	return math.Max(math.Min(n, 1<<20), least)
}

func (f Fleet) count(load float64) int {
	return clamp(int(math.Ceil(f.exact(load)-rounding)), f.Min, f.Max)
}

// Horizontal is how many replicas there would be if none became larger.
func (f Fleet) Horizontal() int {
	f.Intervals, f.DefaultWeight = nil, 0
	return f.count(f.Load)
}

// Asked is the load of one replica as the weights ask.
func (f Fleet) Asked() float64 { return f.Load / f.exact(f.Load) }

// rounding forgives what a power loses: 2.0000000001 replicas are two.
const rounding = 1e-9

// fits reports whether what is in force carries the load and is not too large for it.
func (f Fleet) fits(replicas int) bool {
	if replicas != f.Replicas || f.Capacity <= 0 {
		return false
	}
	need := f.needs(replicas)
	return need <= f.Capacity*(1+rounding) && need >= f.Capacity*(1-f.Hysteresis)
}

// needs is what the fullest of so many replicas must carry.
func (f Fleet) needs(replicas int) float64 {
	return math.Max(f.FullestOf(replicas), f.Heaviest)
}

// under adds the replicas by which none is larger than a node any more. Where no number does that, since a cluster or a
// rule asks for more than a node has whatever their number is, those come that make the largest smaller, and none goes.
func (f Fleet) under(s Split) Split {
	if f.overNode(s.Replicas) {
		s.Replicas, s.OverNode = f.roomier(s.Replicas)
		s.Capacity, s.Why = f.needs(s.Replicas), "the node cap asks for more replicas"
	}
	return s
}

// roomier is the least number of replicas, that or more, of which none is larger than a node; else over, and as many as
// there are, or as make the largest smallest.
func (f Fleet) roomier(replicas int) (found int, over bool) {
	found = replicas
	least := f.request(found, f.spare())
	for n := replicas + 1; n <= f.Max; n++ {
		if !f.overNode(n) {
			return n, false
		}
		if request := f.request(n, f.spare()); request < least*(1-smaller) {
			found, least = n, request
		}
	}
	return max(found, min(f.Now, f.Max)), true
}

// smaller is by what share more replicas must make the largest one smaller to be worth it.
const smaller = 0.01

// overNode reports whether one of so many is larger than a node with somewhat more of everything, since none stays
// level; of fewer than there are, with yet more.
func (f Fleet) overNode(replicas int) bool {
	spare := f.spare()
	if replicas < f.Now {
		spare *= spare
	}
	return f.request(replicas, spare) > 1
}

func (f Fleet) spare() float64 { return 1 + f.Hysteresis }

// request is what the largest of so many asks for, as a share of a node.
func (f Fleet) request(replicas int, spare float64) float64 {
	switch {
	case f.Request != nil:
		return f.Request(replicas, spare)
	case f.NodeCap > 0:
		return f.needs(replicas) / f.NodeCap
	}
	return 0
}

func clamp(n, low, high int) int { return max(min(n, high), low, 1) }

// String is for people: each interval with its weight.
func (in Intervals) String() string {
	parts := make([]string, len(in))
	for i, one := range in {
		parts[i] = fmt.Sprintf("%v: %d %%", one, one.Weight)
	}
	return strings.Join(parts, ", ")
}

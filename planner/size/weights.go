package size

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
			wrong = append(wrong, fmt.Sprintf("nothing is said of a load of %v to %v: let the interval %v begin at %v", at, one.From, one, at))
		case one.From < at && i > 0:
			wrong = append(wrong, fmt.Sprintf("the intervals %v and %v overlap from %v to %v", in[i-1], one, one.From, end(one, at)))
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

// Keeps is Holds, with memory: the interval that held last goes on to until the load is beyond its border by a share.
func (in Intervals) Keeps(load float64, last *float64, hysteresis float64) int {
	now := in.Holds(load)
	if last == nil || now < 0 {
		return now
	}
	was := in.Holds(*last)
	switch {
	case now > was && load < in[was+1].From*(1+hysteresis):
		return was
	case now < was && load > in[was].From*(1-hysteresis):
		return was
	}
	return now
}

// Fleet is what replicas and their capacity follow from. Loads are in one unit.
type Fleet struct {
	Replicas      int     // in force
	Capacity      float64 // in force, of each replica
	Load          float64 // the whole
	Heaviest      float64 // cluster
	Min, Max      int     // replicas
	NodeCap       float64 // the most load that one replica can be made to carry; 0: no bound
	Hysteresis    float64 // a share: how far below capacity the fullest replica may be, and beyond a border the load
	LastFrom      *float64
	FullestOf     func(replicas int) float64 // the load of the fullest replica where there are so many
	Intervals     Intervals
	DefaultWeight int // without intervals
}

// Split is how many replicas there are to be, and what each must carry.
type Split struct {
	Replicas int
	Capacity float64
	Weight   int
	From     *float64 // of the interval that holds: the next Fleet's LastFrom
	OverNode bool     // even so the fullest replica is larger than a node
	Why      string
}

// Decide shares the growth between more replicas and larger ones.
func (f Fleet) Decide() Split {
	s := Split{Replicas: clamp(f.Replicas, f.Min, f.Max), Weight: f.DefaultWeight}
	if i := f.Intervals.Keeps(f.Load, f.LastFrom, f.Hysteresis); i >= 0 {
		s.Weight, s.From = f.Intervals[i].Weight, &f.Intervals[i].From
	}
	if f.fits(s.Replicas) {
		s.Capacity, s.Why = f.Capacity, "what is in force fits"
		return f.under(s)
	}
	ratio := 1.0
	if whole := float64(f.Replicas) * f.Capacity; whole > 0 {
		ratio = f.Load / whole
	}
	n := float64(f.Replicas) * math.Pow(ratio, 1-float64(s.Weight)/100)
	s.Replicas = clamp(int(math.Ceil(math.Min(n, 1<<20)-rounding)), f.Min, f.Max)
	s.Capacity = f.needs(s.Replicas)
	s.Why = fmt.Sprintf("%d %% of a load of %.3g of what is in force makes replicas larger", s.Weight, ratio)
	return f.under(s)
}

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

// under adds replicas while the fullest one is larger than a node and more of them make it smaller.
func (f Fleet) under(s Split) Split {
	if f.NodeCap <= 0 || s.Capacity <= f.NodeCap {
		return s
	}
	for s.Replicas < f.Max && s.Capacity > f.NodeCap && s.Capacity > f.Heaviest {
		s.Replicas++
		s.Capacity = f.needs(s.Replicas)
		s.Why = "the node cap asks for more replicas"
	}
	s.OverNode = s.Capacity > f.NodeCap
	return s
}

func clamp(n, low, high int) int { return max(min(n, high), low, 1) }

// Fullest is the load of the fullest replica where each cluster, the heaviest first, goes to the least loaded one: what
// Fleet.FullestOf is where no partitioner is at hand.
func Fullest(clusters []float64) func(replicas int) float64 {
	loads := slices.Clone(clusters)
	slices.SortFunc(loads, func(a, b float64) int { return cmp.Compare(b, a) })
	return func(replicas int) float64 {
		bins := make([]float64, max(replicas, 1))
		for _, load := range loads {
			least := 0
			for i := range bins {
				if bins[i] < bins[least] {
					least = i
				}
			}
			bins[least] += load
		}
		return slices.Max(bins)
	}
}

// String is for people: each interval with its weight.
func (in Intervals) String() string {
	parts := make([]string, len(in))
	for i, one := range in {
		parts[i] = fmt.Sprintf("%v: %d %%", one, one.Weight)
	}
	return strings.Join(parts, ", ")
}

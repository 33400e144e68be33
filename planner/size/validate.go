package size

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/plan"
	"ballast/planner/size/rational"
)

// Wrong is a mistake in a rule: the field's path in it, and what to write instead.
type Wrong struct {
	Field, Why string
}

// The bounds of a rule.
const (
	MaxDelay    = 7 * 24 * time.Hour
	MaxSegments = 64
	MaxRules    = 64
	maxRatio    = 16
	minGrowth   = 1.01 // below, a quantum's steps grow too slowly to be counted
)

type mistakes []Wrong

func (m *mistakes) add(wrong bool, field, why string, args ...any) {
	if wrong {
		*m = append(*m, Wrong{field, fmt.Sprintf(why, args...)})
	}
}

// Wrong lists the rule's mistakes, none for one that can be evaluated.
func (r Rule) Wrong() []Wrong {
	var m mistakes
	m.add(r.List != Requests && r.List != Limits, "list", "write %s or %s", Requests, Limits)
	m.add(r.Resource != CPU && r.Resource != Memory, "resource", "write %s or %s: nothing else can be resized in place",
		CPU, Memory)
	m.add(!slices.Contains([]Scope{Total, Replica, Cluster}, r.Scope), "scope", "write %s, %s or %s", Total, Replica,
		Cluster)
	m.add(r.Base.Sign() < 0, "base", "is below 0")
	m.add(r.Base.IsZero() && r.Slope.IsZero(), "base", "base and slope are 0: the rule gives nothing")
	m.add(r.Input == "" && !r.Slope.IsZero(), "input", "a slope needs an input")
	m.add(r.Per.Sign() < 0, "per", "is below 0")
	m.add(r.Slope.Sign() < 0 && (r.Min == nil || r.Min.Sign() <= 0), "min", "a slope below 0 needs a min above 0")
	m.add(r.Min != nil && r.Min.Sign() < 0, "min", "is below 0")
	m.add(r.Max != nil && r.Max.Sign() <= 0, "max", "is not above 0")
	m.add(r.Min != nil && r.Max != nil && r.Min.Cmp(*r.Max) > 0, "max", "is below min")
	m.segments(r.Segments)
	m.delay("delayScaleUp", r.DelayUp)
	m.delay("delayScaleDown", r.DelayDown)
	m.quantum(r.Quantum)
	m.smoothing(r.Smoothing)
	return m
}

func (m *mistakes) delay(field string, d Delay) {
	m.add(d.Max.Sign() < 0, field+".max", "is below 0")
	m.add(d.For < 0 || d.For > MaxDelay, field+".delaySeconds", "write 0 to %d", int(MaxDelay/time.Second))
}

func (m *mistakes) quantum(u *Quantum) {
	if u == nil {
		return
	}
	ratio := u.Ratio == 0 || u.Ratio == 1 || u.Ratio >= minGrowth && u.Ratio <= maxRatio
	m.add(u.Base.Sign() < 0, "quantize.base", "is below 0")
	m.add(u.Step.Sign() <= 0, "quantize.step", "is not above 0")
	m.add(!ratio, "quantize.stepRatio", "write 1, or %v to %d", minGrowth, maxRatio)
	m.add(u.MaxStep.Sign() < 0, "quantize.maxStep", "is below 0")
	m.add(u.MaxStep.Sign() > 0 && u.MaxStep.Cmp(u.Step) < 0, "quantize.maxStep", "is below step")
}

func (m *mistakes) smoothing(s *Smoothing) {
	if s == nil {
		return
	}
	d := s.WithDefaults()
	inOrder := 0 <= d.Low && d.Low <= d.Target && d.Target <= d.High && d.High <= 1000
	m.add(!inOrder, "smooth", "low, target and high are no percentiles in this order")
	m.add(d.Samples < minSamples || d.Samples > MaxSamples, "smooth.samples", "write %d to %d", minSamples, MaxSamples)
}

// segments refuses what makes a larger input give a smaller result: where a segment begins it must not round to less
// than the one before it does.
func (m *mistakes) segments(segments []Segment) {
	m.add(len(segments) > MaxSegments, "segments", "are more than %d", MaxSegments)
	sorted := slices.Clone(segments)
	slices.SortStableFunc(sorted, func(a, b Segment) int { return a.At.Cmp(b.At) })
	var before *Segment
	for i, s := range sorted {
		field := fmt.Sprintf("segments[%d]", slices.IndexFunc(segments, func(o Segment) bool { return o.At.Cmp(s.At) == 0 && o.Every.Cmp(s.Every) == 0 }))
		m.add(s.At.Sign() < 0, field+".at", "is below 0")
		m.add(s.Every.Sign() <= 0, field+".every", "is not above 0")
		if s.Every.Sign() <= 0 {
			continue
		}
		m.add(before != nil && before.At.Cmp(s.At) == 0, field+".at", "another segment begins at %s", s.At.String())
		at := rational.Of(s.At)
		earlier, here := roundIn(before, at), roundIn(&sorted[i], at)
		m.add(earlier.Cmp(here) > 0, field+".every",
			"an input of %s would give less than one just below it: %s instead of %s",
			s.At.String(), short(here), short(earlier))
		before = &sorted[i]
	}
}

func short(r *big.Rat) string {
	f, _ := r.Float64()
	return fmt.Sprint(math.Round(f*1000) / 1000)
}

// Twice lists the rules of one policy that have a field and a name in common.
func (p Policy) Twice() (indices []int) {
	type key struct {
		field Field
		name  string
	}
	seen := map[key]bool{}
	for i, r := range p.Rules {
		k := key{r.Field(), r.Name}
		if seen[k] {
			indices = append(indices, i)
		}
		seen[k] = true
	}
	return indices
}

// ParseQuantity reads a quantity of at most 32 characters: apimachinery's own parser takes any number of digits.
func ParseQuantity(text string) (resource.Quantity, error) {
	const most = 32
	if len(text) > most {
		return resource.Quantity{}, fmt.Errorf("reading the quantity %.40q: it has more than %d characters", text, most)
	}
	q, err := plan.ReadQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("reading the quantity %q: %w", text, err)
	}
	return q, nil
}

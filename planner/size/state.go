package size

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/size/rational"
)

// buckets is into how many stretches a delay's time is cut. Samples of one stretch share one entry, which counts until
// its latest is too old: a change waits longer by a 60th at most, never shorter.
const buckets = 60

// State is what a rule remembers of one replica: the samples that its delays ask for, and what it last decided. It is
// a value: nothing here changes the one it was given. Seconds are since 1970.
type State struct {
	Since    int64              `json:"since,omitempty"` // of the first sample
	LastUp   int64              `json:"up,omitempty"`    // of the last change that had to wait for DelayUp.For
	LastDown int64              `json:"down,omitempty"`
	At       int64              `json:"at,omitempty"` // of the latest sample
	Input    float64            `json:"in,omitempty"`
	Window   []Stretch          `json:"window,omitempty"` // oldest first
	Ring     []float64          `json:"ring,omitempty"`   // oldest first
	RingAt   int64              `json:"ringAt,omitempty"` // of the ring's latest
	Value    *resource.Quantity `json:"value,omitempty"`  // what was decided last
}

// UnmarshalJSON reads what was decided last as sizes are read everywhere: twelve letters must not be a number of
// gigabytes.
func (s *State) UnmarshalJSON(data []byte) error {
	type plain State
	read := struct {
		*plain
		Value *string `json:"value"` // instead of plain's
	}{plain: (*plain)(s)}
	if err := json.Unmarshal(data, &read); err != nil || read.Value == nil {
		return err
	}
	q, err := ParseQuantity(*read.Value)
	if err != nil {
		return err
	}
	s.Value = &q
	return nil
}

// Stretch is the samples of a stretch of time: when the latest was, the lowest and the highest.
type Stretch struct {
	At     int64
	Lo, Hi float64
}

// MarshalJSON writes a list of three.
func (s Stretch) MarshalJSON() ([]byte, error) { return json.Marshal([]any{s.At, s.Lo, s.Hi}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Stretch) UnmarshalJSON(data []byte) error {
	var row []float64
	if err := json.Unmarshal(data, &row); err != nil {
		return fmt.Errorf("reading samples: %w", err)
	}
	if len(row) != 3 || row[0] < 0 || row[0] > maxUnix {
		return fmt.Errorf("reading samples: %v is not a time, the lowest and the highest", row)
	}
	*s = Stretch{int64(row[0]), row[1], row[2]}
	return nil
}

const maxUnix = 1 << 33 // the year 2242

// Observe remembers a sample of the rule's input. What is no number is not remembered. A clock that went back counts as
// no time passed.
func (s State) Observe(r Rule, now time.Time, input float64) State {
	if math.IsNaN(input) || math.IsInf(input, 0) {
		return s
	}
	s = s.until(now)
	t := now.Unix()
	if s.Since == 0 {
		s.Since = t
	}
	s.At, s.Input = t, input
	s.Window = windowed(s.Window, Stretch{t, input, input}, int64(max(r.DelayUp.For, r.DelayDown.For)/time.Second))
	return s.ring(r.Smoothing, t, input)
}

// ring adds a sample to those of which percentiles are taken: one of each Every, the latest. Cycles come more often
// than that while a rollout is under way, and of one answer each would count again.
func (s State) ring(m *Smoothing, t int64, input float64) State {
	if m == nil {
		s.Ring, s.RingAt = nil, 0
		return s
	}
	every := max(int64(m.Every/time.Second), 1)
	before := s.Ring
	if len(before) > 0 && s.RingAt/every == t/every && m.Every > 0 {
		before = before[:len(before)-1]
	}
	keep := max(min(m.WithDefaults().Samples, MaxSamples), 1)
	s.Ring, s.RingAt = append(slices.Clone(before[max(0, len(before)-keep+1):]), input), t
	return s
}

// windowed adds a sample and forgets what is older than keep seconds.
func windowed(w []Stretch, now Stretch, keep int64) []Stretch {
	w = slices.DeleteFunc(slices.Clone(w), func(s Stretch) bool { return now.At-s.At > keep })
	width := keep/buckets + 1
	if len(w) > 0 && w[len(w)-1].At/width == now.At/width {
		last := &w[len(w)-1]
		*last = Stretch{now.At, math.Min(last.Lo, now.Lo), math.Max(last.Hi, now.Hi)}
		return w
	}
	return extremes(append(w, now))
}

// few is how many stretches are kept whatever they say.
const few = 16

// extremes leaves out what can be no extreme any more, because something later is at least as low, and something as
// high: what is left of a day's samples are a dozen.
func extremes(w []Stretch) []Stretch {
	if len(w) <= few {
		return w
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	var kept []Stretch
	for _, s := range slices.Backward(w) {
		if s.Lo < lo || s.Hi > hi {
			kept = append(kept, s)
		}
		lo, hi = math.Min(lo, s.Lo), math.Max(hi, s.Hi)
	}
	slices.Reverse(kept)
	return kept[max(0, len(kept)-2*buckets):] // more only after a reload that made the delays shorter
}

// until takes times that lie ahead as now.
func (s State) until(now time.Time) State {
	t := now.Unix()
	s.Since, s.LastUp, s.LastDown, s.At = min(s.Since, t), min(s.LastUp, t), min(s.LastDown, t), min(s.At, t)
	s.RingAt = min(s.RingAt, t)
	if len(s.Window) == 0 || s.Window[len(s.Window)-1].At <= t {
		return s
	}
	s.Window = slices.Clone(s.Window)
	for i := range s.Window {
		s.Window[i].At = min(s.Window[i].At, t)
	}
	return s
}

// Extremes are the lowest and the highest sample that is not older than a time, and whether there is one.
func (s State) Extremes(now time.Time, within time.Duration) (lo, hi float64, any bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, w := range s.Window {
		if now.Unix()-w.At > int64(within/time.Second) {
			continue
		}
		lo, hi, any = math.Min(lo, w.Lo), math.Max(hi, w.Hi), true
	}
	return lo, hi, any
}

// percentile is the sample below whose value that many thousandths of the values lie.
func (s State) percentile(r Rule, thousandths int) float64 {
	sorted := slices.Sorted(slices.Values(s.Ring))
	if r.Slope.Sign() < 0 {
		slices.Reverse(sorted)
	}
	return sorted[min(len(sorted)*thousandths/1000, len(sorted)-1)]
}

// Decision is what a rule decided of one replica, for people.
type Decision struct {
	Computed resource.Quantity // of the latest input
	Value    resource.Quantity // what it wants, after its delays
	Held     string            // why the two differ: a delay's name, or empty
}

// The names of what holds a computed value back.
const (
	HeldDelayUp   = "delayScaleUp"
	HeldDelayDown = "delayScaleDown"
	HeldSmoothing = "smoothing"
	HeldNoInput   = "noInput"
)

// Decide is what the rule wants where the value in force is current; nil where there is none.
func (s State) Decide(r Rule, now time.Time, current *resource.Quantity) (Decision, State) {
	s = s.until(now)
	if r.Input == "" {
		v := r.Value(0, false)
		return s.keep(Decision{v, v, ""})
	}
	if s.Since == 0 {
		d := Decision{r.Value(0, false), r.Value(0, false), HeldNoInput}
		if current == nil {
			return d, s
		}
		d.Value = *current
		return s.keep(d)
	}
	d := Decision{Computed: r.Value(s.Input, true)}
	input := s.Input
	if r.Smoothing != nil {
		if len(s.Ring) < minSamples && current == nil {
			d.Value, d.Held = d.Computed, HeldNoInput
			return d, s
		}
		var held bool
		if input, held = s.smoothed(r, current); held {
			d.Value, d.Held = *current, HeldSmoothing
			return s.keep(d)
		}
	}
	target := r.Value(input, true)
	if current == nil || current.Cmp(target) == 0 {
		d.Value = target
		return s.keep(d)
	}
	way := down
	if current.Cmp(target) < 0 {
		way = up
	}
	var waited bool
	if d.Value, d.Held, waited = s.delayed(r, now, way, input, *current, target); waited {
		*way.last(&s) = now.Unix()
	}
	return s.keep(d)
}

// keep remembers what was decided.
func (s State) keep(d Decision) (Decision, State) {
	value := d.Value.DeepCopy()
	s.Value = &value
	return d, s
}

// smoothed is the target percentile of the samples. held tells that the value in force stays: it is in range, or there
// are too few samples.
func (s State) smoothed(r Rule, current *resource.Quantity) (input float64, held bool) {
	smooth := r.Smoothing.WithDefaults()
	if len(s.Ring) < minSamples {
		return s.Input, current != nil
	}
	if current != nil {
		low, high := r.Value(s.percentile(r, smooth.Low), true), r.Value(s.percentile(r, smooth.High), true)
		held = current.Cmp(low) >= 0 && current.Cmp(high) <= 0
	}
	return s.percentile(r, smooth.Target), held
}

// way is a direction of a value: the sign of the value in force compared with the target.
type way int

const (
	up   way = -1
	down way = 1
)

func (w way) delay(r Rule) (Delay, string) {
	if w == up {
		return r.DelayUp, HeldDelayUp
	}
	return r.DelayDown, HeldDelayDown
}

func (w way) last(s *State) *int64 {
	if w == up {
		return &s.LastUp
	}
	return &s.LastDown
}

// delayed is where the delays let the value go. waited tells that it goes because a delay's time is over.
func (s State) delayed(r Rule, now time.Time, w way, input float64, current, target resource.Quantity) (value resource.Quantity, held string, waited bool) {
	delay, held := w.delay(r)
	byInput, byTime := delay.Max.Sign() > 0, delay.For > 0
	if !byInput && !byTime {
		return target, "", false
	}
	if byInput {
		shifted := new(big.Rat).Mul(rational.Of(delay.Max), big.NewRat(int64(w), 1))
		if border := r.value(shifted.Add(shifted, rational.Finite(input)), true); current.Cmp(border) == int(w) {
			return target, "", false
		}
	}
	seconds, last := int64(delay.For/time.Second), *w.last(&s)
	lo, hi, any := s.Extremes(now, delay.For)
	quiet := now.Unix()-s.Since > seconds && (last == 0 || now.Unix()-last > seconds)
	if !byTime || !any || !quiet {
		return current, held, false
	}
	far := extreme(r, lo, hi, w)
	if current.Cmp(far) != int(w) {
		return current, held, false
	}
	return far, "", true
}

// extreme is the value nearest to the one in force that the samples gave: down the highest, up the lowest.
func extreme(r Rule, lo, hi float64, w way) resource.Quantity {
	a, b := r.Value(lo, true), r.Value(hi, true)
	if a.Cmp(b) == int(w) {
		return a
	}
	return b
}

package replay

import (
	"maps"
	"math"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
	"ballast/planner/replay/bill"
)

// TooFull is how much more than it would have in an ideal plan the fullest replica may carry until it counts as too
// full.
const TooFull = 1.2

// Report is what a setup made of a trace. MaxOverIdeal is what the fullest replica carried over what it would in an
// ideal plan for as many replicas: an even share, or the heaviest cluster where that is more.
type Report struct {
	Name           string     `json:"name"`
	From           time.Time  `json:"from"`
	To             time.Time  `json:"to"`
	Cycles         int        `json:"cycles"`
	Clusters       int        `json:"clusters"`        // the most at once
	Plans          int        `json:"plans"`           // how often the plan was written
	Rollouts       int        `json:"rollouts"`        // that began, whatever their cause
	Rebalances     int        `json:"rebalances"`      // those of them that level or change the number of replicas
	Moves          int        `json:"moves"`           // clusters that changed their replica
	Replicas       Replicas   `json:"replicas"`        // over time
	MaxOverIdeal   Levels     `json:"maxOverIdeal"`    // over time
	AboveTooFull   float64    `json:"aboveTooFull"`    // share of the time in which it was above 1.2
	Capacity       float64    `json:"capacity"`        // partition.capacity; 0: the configuration has none
	AboveCapacity  *float64   `json:"aboveCapacity"`   // share of the time in which a replica carried more than that; null without one
	Unmeasured     int        `json:"unmeasured"`      // cycles in which no load was known
	Kept           []Count    `json:"kept,omitempty"`  // why loads moved nothing, by kind of problem, in so many cycles
	Sizes          *bill.Bill `json:"sizes,omitempty"` // what sizes cost; nil without size policies
	SeriesInterval string     `json:"seriesInterval"`
	Series         []Point    `json:"series"`
}

// Sized reports whether any of these has sizes.
func Sized(reports []Report) bool {
	return slices.ContainsFunc(reports, func(r Report) bool { return r.Sizes != nil })
}

// Replicas is how many there were.
type Replicas struct {
	First int     `json:"first"`
	Last  int     `json:"last"`
	Least int     `json:"least"`
	Most  int     `json:"most"`
	Mean  float64 `json:"mean"`
}

// Levels is a number over time.
type Levels struct {
	Mean float64 `json:"mean"`
	Most float64 `json:"most"`
	Last float64 `json:"last"`
}

// Count is how often something was.
type Count struct {
	Kind   string `json:"kind"`
	Cycles int    `json:"cycles"`
}

// Point is a stretch of time: the replicas and moves at its end, and the most that it had over the ideal; 0 where no
// load was known.
type Point struct {
	At           time.Time `json:"at"` // its begin
	Replicas     int       `json:"replicas"`
	MaxOverIdeal float64   `json:"maxOverIdeal"`
	Moves        int       `json:"moves"`               // so far
	Memory       float64   `json:"memoryGiB,omitempty"` // that sizes request of all replicas, at its end
}

// tally counts while a run goes on.
type tally struct {
	Report
	capacity         plan.Load
	measured, tooFul int
	above            int
	replicas         int // summed over measured cycles
	level            float64
	kept             map[string]int
	bill             bill.Tally
	series           series
}

func newTally(name string, c config.PlannerConfig) tally {
	t := tally{Report: Report{Name: name}, kept: map[string]int{}, series: series{width: time.Duration(c.Interval)}}
	if c.Partition.Capacity != nil {
		t.Capacity = c.Partition.Capacity.Float()
		t.capacity, _ = plan.NewLoad(t.Capacity) // the configuration was judged
	}
	return t
}

func (t *tally) moved() { t.Moves++ }

// count takes in a cycle.
func (t *tally) count(in input.Inputs, out cycle.Outcome) {
	if t.Cycles++; t.From.IsZero() {
		t.From = in.Now
	}
	if out.Changed {
		t.Plans++
	}
	rollout, levels := began(out)
	if rollout {
		t.Rollouts++
	}
	if levels {
		t.Rebalances++
	}
	seen := map[string]bool{}
	for _, p := range out.Problems {
		if kind := string(p.Phase) + "/" + p.Kind; p.Keeps && !seen[kind] {
			seen[kind] = true
			t.kept[kind]++
		}
	}
	t.Clusters = max(t.Clusters, len(out.Fleet.Clusters))
	over := 0.0
	if out.Loads == nil || len(out.Now) == 0 {
		t.Unmeasured++
	} else {
		over = t.measure(out)
	}
	t.bill.Count(in.Now, out.Sizing, out.Next, in.Workload.Replicas, time.Duration(in.Config.Interval))
	t.series.add(in.Now, Point{Replicas: in.Workload.Replicas, MaxOverIdeal: over, Moves: t.Moves,
		Memory: t.bill.Reserved()})
}

// began reports whether a rollout began, and whether it levels the fleet: another env alone, which live rollouts need
// once, does not.
func began(out cycle.Outcome) (rollout, levels bool) {
	next := out.Next.Rollout
	if !out.Decided || next == nil {
		return false, false
	}
	changes := out.Memory.Changes
	does := next.Replicas != next.From.Replicas || len(changes.Target)+len(next.Moves) > 0
	return true, does && changes.Cause == change.Balance
}

// measure takes in how level the fleet stands.
func (t *tally) measure(out cycle.Outcome) float64 {
	most, over := overIdeal(out)
	n := len(out.Now)
	if t.measured++; t.measured == 1 {
		t.Replicas.First, t.Replicas.Least = n, n
	}
	t.Replicas.Last, t.Replicas.Least, t.Replicas.Most = n, min(t.Replicas.Least, n), max(t.Replicas.Most, n)
	t.replicas += n
	t.level += over
	t.MaxOverIdeal.Last, t.MaxOverIdeal.Most = over, max(t.MaxOverIdeal.Most, over)
	if over > TooFull {
		t.tooFul++
	}
	if t.capacity > 0 && most > t.capacity {
		t.above++
	}
	return over
}

// overIdeal is what the fullest replica carries, and that over what it would in an ideal plan; 1 for a fleet without
// load.
func overIdeal(out cycle.Outcome) (most plan.Load, over float64) {
	var total, heaviest plan.Load
	for _, r := range out.Now {
		most, total = max(most, r.TotalLoad), total+r.TotalLoad
	}
	for _, u := range out.Fleet.Units {
		var unit plan.Load
		for _, i := range u.Clusters {
			unit += out.Loads[i]
		}
		heaviest = max(heaviest, unit)
	}
	ideal := max(float64(total)/float64(len(out.Now)), float64(heaviest))
	if ideal == 0 {
		return most, 1
	}
	return most, float64(most) / ideal
}

// report is what was counted, in numbers that are the same on every machine.
func (t *tally) report(last time.Time) Report {
	r := t.Report
	r.To = last
	if t.measured > 0 {
		n := float64(t.measured)
		r.Replicas.Mean = rounded(float64(t.replicas) / n)
		r.MaxOverIdeal = Levels{Mean: rounded(t.level / n), Most: rounded(r.MaxOverIdeal.Most),
			Last: rounded(r.MaxOverIdeal.Last)}
		r.AboveTooFull = rounded(float64(t.tooFul) / n)
		if t.capacity > 0 {
			above := rounded(float64(t.above) / n)
			r.AboveCapacity = &above
		}
	}
	r.Kept, r.Sizes = sortedCounts(t.kept), t.bill.Bill()
	r.Series, r.SeriesInterval = t.series.points, config.Duration(t.series.width).String()
	return r
}

// sortedCounts are counts in the order of their names.
func sortedCounts(counts map[string]int) []Count {
	var all []Count
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, Count{name, counts[name]})
	}
	return all
}

// rounded keeps four digits behind the point.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// mostPoints bounds a series: a picture has no more pixels to show them.
const mostPoints = 512

// series is a run over time in stretches that grow with it.
type series struct {
	from   time.Time
	width  time.Duration
	points []Point
}

// add takes in a cycle.
func (s *series) add(at time.Time, p Point) {
	if s.points == nil {
		s.from = at
	}
	for at.Sub(s.from) >= mostPoints*s.width {
		s.halve()
	}
	p.MaxOverIdeal = rounded(p.MaxOverIdeal)
	p.At = s.from.Add(at.Sub(s.from).Truncate(s.width))
	if n := len(s.points); n > 0 && s.points[n-1].At.Equal(p.At) {
		s.points[n-1] = joined(s.points[n-1], p)
		return
	}
	s.points = append(s.points, p)
}

// halve makes each stretch twice as long.
func (s *series) halve() {
	s.width *= 2
	kept := s.points[:0]
	for _, p := range s.points {
		p.At = s.from.Add(p.At.Sub(s.from).Truncate(s.width))
		if n := len(kept); n > 0 && kept[n-1].At.Equal(p.At) {
			kept[n-1] = joined(kept[n-1], p)
			continue
		}
		kept = append(kept, p)
	}
	s.points = kept
}

func joined(a, b Point) Point {
	b.At, b.MaxOverIdeal = a.At, max(a.MaxOverIdeal, b.MaxOverIdeal)
	return b
}

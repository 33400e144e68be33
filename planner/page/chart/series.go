// Package chart draws a page's pictures of load: replicas as columns of stacked clusters, and loads over time.
package chart

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/planner/page/wording"
	"ballast/planner/plan"
	"ballast/planner/trend"
)

// The series' measures, in pixels.
const (
	overWidth, overFoot = 520, 30
	overLeft, overRight = 56, 12
)

// Decided says when a plan was decided, by whom and why.
type Decided struct {
	At     time.Time
	By     string
	Reason string
}

// Kept is a plan of the history.
type Kept struct {
	Plan plan.Plan
	Decided
}

// Series is the load over time: of each quarter of an hour, and, before those, as of each decision that is kept.
type Series struct {
	Says, Highest string
	Width, Height int
	Left, Right   int
	Fullest, Mean string // paths
	Points        []Point
	Grid          []Rung
	Times         []Time
}

// Point is a decision in the series.
type Point struct{ X, Y, Says string }

// Time is a label below.
type Time struct{ X, Anchor, Label string }

// carried is what one decision had replicas carry.
type carried struct {
	at            time.Time
	revision      int64
	Fullest, Mean plan.Load
	replicas      int
}

// CarriedBy is what replicas carried by a plan.
func CarriedBy(k Kept) carried {
	c := carried{at: k.At, revision: k.Plan.Revision, replicas: k.Plan.Replicas}
	for _, row := range k.Plan.Clusters {
		c.replicas = max(c.replicas, row.Replica+1)
	}
	each, all := map[int]plan.Load{}, plan.Load(0)
	for _, row := range k.Plan.Clusters {
		l := max(plan.LoadOf(row.Load), 0)
		each[row.Replica], all = each[row.Replica].Plus(l), all.Plus(l)
	}
	for _, l := range each {
		c.Fullest = max(c.Fullest, l)
	}
	if c.replicas > 0 {
		c.Mean = all / plan.Load(c.replicas)
	}
	return c
}

// lasting is for how long a line stays at a height.
type lasting struct {
	carried
	until time.Time
}

// Over draws what the fullest replica carried, and what they did on average, since the oldest plan that is kept or the
// first level of the trend. Nil: there are fewer than two.
func Over(kept []Kept, t trend.Trend, now time.Time) *Series {
	var decided []carried
	for _, k := range kept {
		if !k.At.IsZero() && !k.At.After(now) {
			decided = append(decided, CarriedBy(k))
		}
	}
	slices.SortStableFunc(decided, func(a, b carried) int { return a.at.Compare(b.at) })
	line, levels := spans(decided, t, now)
	if len(line) < 2 || !line[0].at.Before(now) {
		return nil
	}
	most, first := line[0], line[0].at
	for _, c := range line {
		if c.Fullest > most.Fullest {
			most = c
		}
	}
	top := most.Fullest
	for _, c := range decided {
		top = max(top, c.Fullest)
	}
	scale := ladder(top.Float())
	s := &Series{Width: overWidth, Height: plotTop + plotHeight + overFoot, Left: overLeft,
		Right: overWidth - overRight, Grid: scale.grid()}
	x := func(at time.Time) float64 {
		return overLeft + (overWidth-overLeft-overRight)*float64(at.Sub(first))/float64(now.Sub(first))
	}
	s.Fullest = steps(line, x, func(c carried) float64 { return scale.y(c.Fullest.Float()) })
	s.Mean = steps(line, x, func(c carried) float64 { return scale.y(c.Mean.Float()) })
	for _, c := range decided {
		s.Points = append(s.Points, Point{X: px(x(c.at)), Y: px(scale.y(c.Fullest.Float())),
			Says: fmt.Sprintf("%s, revision %d: the fullest of %s carries %s, on average they carry %s",
				wording.Moment(c.at), c.revision, wording.Plural(c.replicas, "replica"), c.Fullest.Display(),
				c.Mean.Display())})
	}
	s.Times = times(first, now, x)
	last := line[len(line)-1]
	s.Says = fmt.Sprintf("From %s to now the load of the fullest replica went from %s to %s, and the average from %s to %s, %s. The list of decisions has each.",
		wording.Moment(first), line[0].Fullest.Display(), last.Fullest.Display(), line[0].Mean.Display(),
		last.Mean.Display(), asOf(len(decided), levels))
	if levels > 0 {
		s.Highest = highest(most)
	}
	return s
}

// spans are the decisions up to the trend's first level, and its levels, each with its end. Where nobody looked there
// is none.
func spans(decided []carried, t trend.Trend, now time.Time) (line []lasting, levels int) {
	var measured []carried
	for _, l := range t.Levels {
		if !l.At.After(now) {
			measured = append(measured, carried{at: l.At, Fullest: l.Fullest, Mean: l.Mean, replicas: l.Replicas})
		}
	}
	for i, c := range decided {
		if len(measured) > 0 && !c.at.Before(measured[0].at) {
			break
		}
		until := now
		if i+1 < len(decided) {
			until = decided[i+1].at
		}
		if len(measured) > 0 && measured[0].at.Before(until) {
			until = measured[0].at
		}
		line = append(line, lasting{c, until})
	}
	for i, c := range measured {
		next := now
		if i+1 < len(measured) {
			next = measured[i+1].at
		}
		until := c.at.Add(trend.Every)
		if next.Sub(c.at) <= 2*trend.Every { // one that was missed is no gap
			until = next
		}
		line = append(line, lasting{c, until})
	}
	return line, len(measured)
}

// asOf says what a line was drawn of.
func asOf(decisions, levels int) string {
	if levels == 0 {
		return fmt.Sprintf("as of %d decisions", decisions)
	}
	return fmt.Sprintf("as of %s of a quarter of an hour and %s", wording.Plural(levels, "level"),
		wording.Plural(decisions, "decision"))
}

// highest says when the fullest replica carried most.
func highest(c lasting) string {
	text := fmt.Sprintf("The highest is of %s: the fullest of %s carried %s", wording.Moment(c.at),
		wording.Plural(c.replicas, "replica"), c.Fullest.Display())
	if c.Mean > 0 {
		text += fmt.Sprintf(", %.2f of the mean", float64(c.Fullest)/float64(c.Mean))
	}
	return text + "."
}

// steps is a line that holds until the next value, with a gap where there is none.
func steps(line []lasting, x func(time.Time) float64, y func(carried) float64) string {
	var b strings.Builder
	for i, c := range line {
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%s %s", px(x(c.at)), px(y(c.carried)))
		case line[i-1].until.Before(c.at):
			fmt.Fprintf(&b, "H%sM%s %s", px(x(line[i-1].until)), px(x(c.at)), px(y(c.carried)))
		default:
			fmt.Fprintf(&b, "H%sV%s", px(x(c.at)), px(y(c.carried)))
		}
	}
	fmt.Fprintf(&b, "H%s", px(x(line[len(line)-1].until)))
	return b.String()
}

func times(first, now time.Time, x func(time.Time) float64) []Time {
	format, whole := "Jan 2 15:04", now.Sub(first)
	switch {
	case whole < 12*time.Hour:
		format = "15:04"
	case whole > 4*24*time.Hour:
		format = "Jan 2"
	}
	const marks = 4
	var list []Time
	for i := range marks + 1 {
		at, anchor := first.Add(whole*time.Duration(i)/marks), "middle"
		switch i {
		case 0:
			anchor = "start"
		case marks:
			anchor = "end"
		}
		list = append(list, Time{X: px(x(at)), Anchor: anchor, Label: at.UTC().Format(format)})
	}
	return list
}

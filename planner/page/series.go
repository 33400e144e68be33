package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/planner/plan"
)

// The series' measures, in pixels.
const (
	overWidth, overFoot = 520, 30
	overLeft, overRight = 56, 12
)

// Series is the load over time, as of each decision that is kept.
type Series struct {
	Says          string
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
	fullest, mean plan.Load
	replicas      int
}

func carriedBy(k Kept) carried {
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
		c.fullest = max(c.fullest, l)
	}
	if c.replicas > 0 {
		c.mean = all / plan.Load(c.replicas)
	}
	return c
}

// over draws what the fullest replica carried, and what they did on average, since the oldest plan that is kept. Nil:
// fewer than two are.
func over(kept []Kept, now time.Time) *Series {
	var list []carried
	for _, k := range kept {
		if !k.At.IsZero() && !k.At.After(now) {
			list = append(list, carriedBy(k))
		}
	}
	slices.SortStableFunc(list, func(a, b carried) int { return a.at.Compare(b.at) })
	if len(list) < 2 || !list[0].at.Before(now) {
		return nil
	}
	var most plan.Load
	for _, c := range list {
		most = max(most, c.fullest)
	}
	scale, first := ladder(most.Float()), list[0].at
	s := &Series{Width: overWidth, Height: plotTop + plotHeight + overFoot, Left: overLeft, Right: overWidth - overRight, Grid: scale.grid()}
	x := func(at time.Time) float64 {
		return overLeft + (overWidth-overLeft-overRight)*float64(at.Sub(first))/float64(now.Sub(first))
	}
	s.Fullest = steps(list, x, func(c carried) float64 { return scale.y(c.fullest.Float()) })
	s.Mean = steps(list, x, func(c carried) float64 { return scale.y(c.mean.Float()) })
	for _, c := range list {
		s.Points = append(s.Points, Point{X: px(x(c.at)), Y: px(scale.y(c.fullest.Float())),
			Says: fmt.Sprintf("%s, revision %d: the fullest of %s carries %s, on average they carry %s",
				moment(c.at), c.revision, plural(c.replicas, "replica"), c.fullest.Display(), c.mean.Display())})
	}
	s.Times = times(first, now, x)
	last := list[len(list)-1]
	s.Says = fmt.Sprintf("From %s to now the load of the fullest replica went from %s to %s, and the average from %s to %s, as of %d decisions. The list of decisions has each.",
		moment(first), list[0].fullest.Display(), last.fullest.Display(), list[0].mean.Display(), last.mean.Display(), len(list))
	return s
}

// steps is a line that holds until the next decision.
func steps(list []carried, x func(time.Time) float64, y func(carried) float64) string {
	var b strings.Builder
	for i, c := range list {
		if i == 0 {
			fmt.Fprintf(&b, "M%s %s", px(x(c.at)), px(y(c)))
			continue
		}
		fmt.Fprintf(&b, "H%sV%s", px(x(c.at)), px(y(c)))
	}
	fmt.Fprintf(&b, "H%d", overWidth-overRight)
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

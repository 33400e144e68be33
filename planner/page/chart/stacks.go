package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"ballast/planner/page/wording"
	"ballast/planner/plan"
)

// The drawing's measures, in pixels.
const (
	plotTop, plotHeight, plotFoot = 22, 250, 56
	plotLeft, plotRight           = 56, 12
	plotWidth                     = 1080 // of few replicas; many have as much as they need
	widestColumn, leastColumn     = 96, 22
	roomForWords, roomForFigures  = 80, 48
	leastBox                      = 2.0 // a cluster that is thinner is drawn together with others
	leastMark                     = 3.0 // what is marked shows, however light
)

// Stack is the picture of replicas as columns of stacked clusters.
type Stack struct {
	ID, Title, Says string
	Width, Height   int
	Left, Right     int
	Base            string // the y of an empty column
	Columns         []Column
	Grid            []Rung
	Capacity        *Rung

	Rest, Pins, Leaves, Came, Arrives bool // whether the legend needs them
}

// Rung is a horizontal line with its label.
type Rung struct{ Y, Label, Says string }

// Column is a replica. Load and Count are empty where there is no room for them.
type Column struct {
	X, Width, Mid, Top string
	ID, Load, Count    string
	Over               bool // above the capacity
	Boxes              []Box
}

// Box is a cluster, or several that are too light to be drawn alone. Over is the pattern over its colour, by which
// those who do not see the colour know it.
type Box struct{ X, Y, W, H, Class, Over, Says string }

// The kinds of boxes, from the bottom up.
const (
	boxPlain = iota
	BoxPinned
	BoxLeaving
	BoxCame     // what would be here after its move
	BoxArriving // of a cluster that is elsewhere yet: it adds nothing to what the column carries
)

var boxClass = map[int]string{boxPlain: "c", BoxPinned: "p", BoxLeaving: "l", BoxCame: "m", BoxArriving: "a"}

// boxOver are the patterns: upright bars, which show however thin a box is, and hatching. What came or arrives has a
// dashed edge.
var boxOver = map[int]string{BoxPinned: "bars", BoxLeaving: "hatch"}

// Item is a cluster in a column.
type Item struct {
	Name string
	Load plan.Load
	Kind int
	Says string
}

// DrawStack draws columns of items, by replica. A capacity of 0 is not known.
func DrawStack(id, title string, columns [][]Item, capacity plan.Load, capacitySays string) Stack {
	loads := make([]plan.Load, len(columns))
	top := capacity
	for i, items := range columns {
		var high plan.Load
		for _, it := range items {
			high = high.Plus(it.Load)
			if it.Kind != BoxArriving {
				loads[i] = loads[i].Plus(it.Load)
			}
		}
		top = max(top, high)
	}
	s := Stack{ID: id, Title: title, Left: plotLeft, Height: plotTop + plotHeight + plotFoot}
	slot := min(max(float64(plotWidth-plotLeft-plotRight)/float64(max(len(columns), 1)), leastColumn), widestColumn)
	s.Width = plotLeft + plotRight + int(math.Ceil(slot*float64(len(columns))))
	s.Right, s.Base = s.Width-plotRight, px(plotTop+plotHeight)
	scale := ladder(top.Float())
	s.Grid = scale.grid()
	if capacity > 0 {
		s.Capacity = &Rung{Y: px(scale.y(capacity.Float())), Label: capacity.Display(), Says: capacitySays}
	}
	for i, items := range columns {
		c := Column{ID: strconv.Itoa(i), Over: capacity > 0 && loads[i] > capacity}
		switch {
		case slot >= roomForWords:
			c.Load, c.Count = loads[i].Display(), wording.Plural(countOf(items), "cluster")
		case slot >= roomForFigures:
			c.Load, c.Count = loads[i].Display(), wording.Count(countOf(items))
		}
		x, w := float64(plotLeft)+slot*float64(i)+slot*0.12, slot*0.76
		c.X, c.Width, c.Mid = px(x), px(w), px(x+w/2)
		c.Boxes, c.Top = boxes(items, x, w, scale)
		s.Rest = s.Rest || slices.ContainsFunc(c.Boxes, func(b Box) bool { return b.Class == boxClass[boxPlain]+" r" })
		s.Columns = append(s.Columns, c)
		for _, it := range items {
			s.Pins = s.Pins || it.Kind == BoxPinned
			s.Leaves = s.Leaves || it.Kind == BoxLeaving
			s.Came = s.Came || it.Kind == BoxCame
			s.Arrives = s.Arrives || it.Kind == BoxArriving
		}
	}
	s.Says = says(loads, columns, capacity)
	return s
}

func countOf(items []Item) (n int) {
	for _, it := range items {
		if it.Kind != BoxArriving {
			n++
		}
	}
	return n
}

// says is the picture in words.
func says(loads []plan.Load, columns [][]Item, capacity plan.Load) string {
	if len(loads) == 0 {
		return "There is no replica."
	}
	most, least, clusters := 0, 0, 0
	for i, l := range loads {
		if l > loads[most] {
			most = i
		}
		if l < loads[least] {
			least = i
		}
		clusters += countOf(columns[i])
	}
	text := fmt.Sprintf("%s carry %s. The fullest is replica %d with %s, the lightest replica %d with %s.",
		wording.Plural(len(loads), "replica"), wording.Plural(clusters, "cluster"), most, loads[most].Display(), least,
		loads[least].Display())
	if capacity > 0 {
		text += fmt.Sprintf(" The capacity line is at %s.", capacity.Display())
	}
	return text + " The tables of replicas and clusters below have each value."
}

// boxes stacks a column's clusters from the bottom: the heaviest of each kind first, and those that are too light as
// one.
func boxes(items []Item, x, w float64, scale axis) ([]Box, string) {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Load, a.Load), cmp.Compare(a.Name, b.Name))
	})
	var list []Box
	y, odd := float64(plotTop+plotHeight), false
	put := func(h float64, kind int, rest bool, says string) {
		class := boxClass[kind]
		switch {
		case rest:
			class += " r"
		case kind == boxPlain && odd:
			class += " o"
		}
		odd = !odd
		y -= h
		list = append(list, Box{X: px(x), Y: px(y), W: px(w), H: px(h), Class: class, Over: boxOver[kind], Says: says})
	}
	for i := 0; i < len(items); {
		it := items[i]
		if h := scale.h(it.Load.Float()); h >= leastBox {
			put(h, it.Kind, false, it.Says)
			i++
			continue
		}
		from, sum := i, plan.Load(0)
		for ; i < len(items) && items[i].Kind == it.Kind; i++ {
			sum = sum.Plus(items[i].Load)
		}
		h, text := scale.h(sum.Float()), it.Says
		if it.Kind != boxPlain {
			h = max(h, leastMark)
		}
		if i-from > 1 {
			text = fmt.Sprintf("%s too light to draw alone%s: %s together, the heaviest %s",
				wording.Plural(i-from, "cluster"), kindWords[it.Kind], sum.Display(), it.Load.Display())
		}
		if h >= 0.5 {
			put(h, it.Kind, it.Kind == boxPlain && i-from > 1, text)
		}
	}
	return list, px(y)
}

var kindWords = map[int]string{boxPlain: "", BoxPinned: ", pinned", BoxLeaving: ", about to leave",
	BoxCame: ", moved here", BoxArriving: ", on their way here"}

// axis is a scale from 0 to Top in steps.
type axis struct{ top, step float64 }

// ladder is an axis of four or so round steps that has room for a value.
func ladder(most float64) axis {
	if most <= 0 {
		return axis{1, 0.25}
	}
	power := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, round := range []float64{1, 2, 2.5, 5, 10} {
		if step := round * power; most/step <= 5 {
			return axis{step * math.Ceil(most/step-1e-9), step}
		}
	}
	return axis{10 * power, 2 * power}
}

func (a axis) h(v float64) float64 { return plotHeight * v / a.top }

func (a axis) y(v float64) float64 { return plotTop + plotHeight - a.h(v) }

func (a axis) grid() []Rung {
	var list []Rung
	for k := 0; float64(k)*a.step <= a.top*(1+1e-9); k++ {
		v := float64(k) * a.step
		list = append(list, Rung{Y: px(a.y(v)), Label: strconv.FormatFloat(math.Round(v/a.step*1000)/1000*a.step, 'g',
			4, 64)})
	}
	return list
}

// px is a measure with one decimal at most.
func px(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

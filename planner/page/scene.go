package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/cycle/compare"
	"ballast/planner/page/view"
	"ballast/planner/page/wording"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// most bounds how many replicas are drawn: a document may say anything.
const most = 1000

// scene is what a page's parts are made of.
type scene struct {
	Fleet
	view     *plan.View // nil: there is no plan
	clusters []known
	replicas int
	capacity plan.Load
	line     string // what the capacity is
}

// known is a cluster with where it is and what becomes of it.
type known struct {
	plan.Shard
	at   int // plan.NoReplica: nowhere
	load plan.Load
	planned, gone,
	pinned bool
	move   *cycle.Move
	faults []view.Mark
	apart  string
}

func sceneOf(f Fleet) scene {
	s := scene{Fleet: f}
	p := f.Document.Plan
	if p == nil {
		for _, c := range f.Clusters {
			s.clusters = append(s.clusters, known{Shard: c, at: plan.NoReplica})
		}
		slices.SortFunc(s.clusters, func(a, b known) int { return plan.CompareShards(a.Shard, b.Shard) })
		return s
	}
	s.view = plan.NewView(*p, f.Pins)
	s.clusters = knownOf(s.view, f)
	s.replicas = p.Replicas
	for _, c := range s.clusters {
		s.replicas = max(s.replicas, c.at+1)
		if c.move != nil {
			s.replicas = max(s.replicas, c.move.To+1)
		}
	}
	s.replicas = min(s.replicas, most)
	if f.Status != nil && f.Status.Line != nil {
		s.capacity, s.line = f.Status.Line.Load, lineText(*f.Status.Line)
	}
	return s
}

// knownOf is every cluster that a Secret or a row names, by name.
func knownOf(v *plan.View, f Fleet) []known {
	moves := map[string]*cycle.Move{}
	if v.Plan.Rollout != nil {
		for _, m := range compare.MovesUnderWay(v) {
			moves[m.Cluster] = &m
		}
	}
	faults, shards := faultsOf(f.Status), map[string]plan.Shard{}
	for _, c := range f.Clusters {
		shards[c.ID] = c
	}
	names := maps.Clone(shards)
	for n := range v.Plan.Clusters {
		if _, there := names[n]; !there {
			names[n] = plan.Shard{ID: n}
		}
	}
	list := make([]known, 0, len(names))
	for _, n := range slices.Sorted(maps.Keys(names)) {
		row, planned := v.Plan.Clusters[n]
		_, there := shards[n]
		_, pinned := f.Pins[n]
		c := known{Shard: names[n], at: plan.NoReplica, load: max(plan.LoadOf(row.Load), 0), planned: planned,
			gone:   f.Clusters != nil && !there,
			pinned: pinned || row.Pinned, move: moves[n], faults: faults[n], apart: f.Apart[n]}
		if at, _, ok := v.Effective(n); ok && at >= 0 && at < most {
			c.at = at
		}
		list = append(list, c)
	}
	return list
}

func faultsOf(said *status.Status) map[string][]view.Mark {
	marks := map[string][]view.Mark{}
	if said == nil {
		return marks
	}
	for _, f := range said.Orphaned {
		text := "no replica has it since " + wording.Moment(f.Since)
		if f.Last != nil {
			text += fmt.Sprintf("; replica %d had it last", *f.Last)
		}
		marks[f.Cluster] = append(marks[f.Cluster], view.Mark{Kind: view.Orphaned, Says: text})
	}
	for _, f := range said.Doubled {
		marks[f.Cluster] = append(marks[f.Cluster], view.Mark{Kind: view.Doubled,
			Says: fmt.Sprintf("replicas %s have it since %s", joined(f.Owners), wording.Moment(f.Since))})
	}
	return marks
}

func joined(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ", ")
}

// lineText says what a capacity is.
func lineText(l status.Line) string {
	if l.Configured {
		return "partition.capacity, what a replica may carry"
	}
	return "known to be borne since " + l.Since.UTC().Format(time.DateOnly)
}

// marks are what the table says of a cluster.
func (c known) marks(pins plan.Pins) []view.Mark {
	list := slices.Clone(c.faults)
	if c.move != nil {
		list = append(list, view.Mark{Kind: view.Moving, Says: moved(*c.move)})
	}
	if pin, ok := pins[c.ID]; ok {
		text := fmt.Sprintf("to replica %d", pin)
		if pin != c.at {
			text += ", which waits"
		}
		list = append(list, view.Mark{Kind: view.Pinned, Says: text})
	} else if c.pinned {
		list = append(list, view.Mark{Kind: view.Pinned, Says: ""})
	}
	switch {
	case c.apart != "":
		list = append(list, view.Mark{Kind: view.Apart, Says: wording.Line(c.apart)})
	case !c.planned:
		list = append(list, view.Mark{Kind: view.Unplanned, Says: "the plan does not have it yet"})
	case c.gone:
		list = append(list, view.Mark{Kind: view.Gone, Says: "its Secret is not there"})
	}
	slices.SortStableFunc(list, func(a, b view.Mark) int {
		return cmp.Compare(slices.Index(view.Kinds(), a.Kind), slices.Index(view.Kinds(), b.Kind))
	})
	return list
}

// says is a cluster in its column.
func (c known) says(pins plan.Pins) string {
	text := fmt.Sprintf("%s: load %s", wording.Name(c.ID), c.load.Display())
	for _, m := range c.marks(pins) {
		text += ", " + string(m.Kind)
		if m.Says != "" {
			text += " (" + m.Says + ")"
		}
	}
	return text
}

func moved(m cycle.Move) string {
	text := fmt.Sprintf("replica %d to %d", m.From, m.To)
	if m.From == plan.NoReplica {
		text = fmt.Sprintf("to replica %d", m.To)
	}
	if m.Reason != "" {
		text += ": " + string(m.Reason)
	}
	return text
}

// Package view is a page's content as it is printed, and its HTML.
package view

import (
	"fmt"
	"html/template"
	"strconv"

	"ballast/planner/page/chart"
	"ballast/planner/page/wording"
)

// View is a page's content: text that is fit for people, and figures as they are printed.
type View struct {
	Title, Mode, AsOf string
	Standing          []string // beside the head: which plan, who leads
	Live              bool     // it comes from a server, and can be loaded again
	Facts             []Fact
	Notes             []Note
	Conditions        []Condition
	Stacks            []chart.Stack
	Waits             []Wait
	Decisions         []Decision
	Over              *chart.Series
	OverNone          string // why there is no load over time
	Replicas          *Replicas
	Tables            []Table
	Drawings          []Drawing
	Clusters          Clusters
	Foot              []string
	Report            bool // of no fleet: it has no clusters, nothing waits, and no script runs
}

// Level says how much a thing asks for people.
type Level string

// The levels. Each has a shape and a word of its own beside its colour.
const (
	Good    Level = "good"
	Neutral Level = "neutral"
	Info    Level = "info"
	Warn    Level = "warn"
	Bad     Level = "bad"
)

// Word is what a level is called.
func (l Level) Word() string {
	return map[Level]string{Good: "Good", Neutral: "Neutral", Info: "Information", Warn: "Warning", Bad: "Problem"}[l]
}

// Fact is a figure of the head.
type Fact struct{ Label, Value, Says string }

// Note is a sentence above everything else.
type Note struct {
	Level       Level
	Title, Text string
}

// Condition is one of the leader's.
type Condition struct {
	Level                                Level
	Name, State, Reason, Message, Lasted string
}

// Wait is a change that is wanted and does not happen, or what is wrong.
type Wait struct {
	Level            Level
	What, Why, Times string
}

// Decision is a plan that was decided.
type Decision struct {
	Revision, At, Ago, By, Reason string
	Figures                       []string
}

// Replicas are the replicas, a row each.
type Replicas struct {
	Sizes bool // the plan holds sizes
	Rows  []ReplicaRow
}

// ReplicaRow is a replica.
type ReplicaRow struct {
	ID, Clusters, Load, Of, Pinned, Pod, State, Holds, Has string
	Level                                                  Level
}

// Table is a small table of plain cells, the first of which heads its row.
type Table struct {
	ID, Title, Caption string
	Head               []string
	Rows               [][]string
}

// Drawing is a picture that was drawn elsewhere, as SVG without a style or a script of its own. Says is the picture in
// words.
type Drawing struct {
	ID, Title, Says string
	SVG             template.HTML
}

// Clusters is the table of clusters. At are the replicas that can be chosen.
type Clusters struct {
	Shown bool // the first page of them is marked
	At    []string
	Marks []string
	Rows  []ClusterRow
	More  string // of clusters that have no row; empty: all have one
}

// ClusterRow is a cluster. Later says that it is beyond the first page.
type ClusterRow struct {
	Name, Called, Server, At, Load, Share string
	Marks                                 []Mark
	Later                                 bool
}

// Mark says something of a cluster.
type Mark struct {
	Kind Kind
	Says string
}

// Kind is a mark's kind, of a closed set.
type Kind string

// The kinds.
const (
	Pinned    Kind = "pinned"
	Moving    Kind = "moving"
	Orphaned  Kind = "orphaned"
	Doubled   Kind = "doubled"
	Unplanned Kind = "new"
	Gone      Kind = "gone"
	Apart     Kind = "apart" // ballast leaves it alone
)

// Kinds are all of them, in the order in which they are listed.
func Kinds() []Kind { return []Kind{Pinned, Moving, Orphaned, Doubled, Unplanned, Gone, Apart} }

// shownRows is how many clusters are shown at once, and mostRows how many a page has at all: whoever may create Secrets
// makes as many as they like, and each costs the planner that draws it.
const (
	shownRows = 100
	mostRows  = 5000
)

// ClustersOf is the table of all clusters on so many replicas, whose rows are asked for in order.
func ClustersOf(all, replicas int, row func(i int) ClusterRow) Clusters {
	t := Clusters{Shown: all > shownRows}
	if all > mostRows {
		t.More = fmt.Sprintf("%s more have no row: these are the first %s of %s.", wording.Count(all-mostRows),
			wording.Count(mostRows), wording.Plural(all, "cluster"))
	}
	found := map[Kind]bool{}
	for i := range min(all, mostRows) {
		r := row(i)
		r.Later = i >= shownRows
		for _, m := range r.Marks {
			found[m.Kind] = true
		}
		t.Rows = append(t.Rows, r)
	}
	for i := range replicas {
		t.At = append(t.At, strconv.Itoa(i))
	}
	for _, k := range Kinds() {
		if found[k] {
			t.Marks = append(t.Marks, string(k))
		}
	}
	return t
}

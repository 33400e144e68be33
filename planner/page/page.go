// Package page draws a fleet as one page of HTML: replicas as columns of stacked clusters, what waits and why, decisions,
// load over time, each replica and each cluster. It is a function of values: the same fleet makes the same bytes.
package page

import (
	"html/template"
	"time"

	"ballast/planner/measure"
	"ballast/planner/observed"
	"ballast/planner/page/chart"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/status"
	"ballast/planner/trend"
)

// Fleet is what a page is made of. Of cluster Secrets there are the name, the cluster's own name and its server.
type Fleet struct {
	Now      time.Time
	Document configmap.Document
	Decided  chart.Decided
	Pause    Pause             // where Document is paused
	Pins     plan.Pins         // the plan ConfigMap's beside the Secrets' own
	Clusters []plan.Shard      // nil: they could not be read, and the rows stand for them
	Apart    map[string]string // clusters that ballast leaves alone, and why
	Status   *status.Status    // nil: no leader said anything
	Kept     []chart.Kept      // earlier plans and the one in force, newest first
	Trend    trend.Trend       // what replicas carried in the last week
	Values   measure.LastGood  // of each cluster's metrics, as the leader kept them last
	Pods     []observed.Pod    // of the application-controller
	Unseen   []string          // sentences about what could not be read
}

// Pause says who paused it and why, as far as that is written.
type Pause struct{ By, Why string }

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

// Drawing is a picture that was drawn elsewhere, as SVG without a style or a script of its own. Says is the picture in words.
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

// kinds are all of them, in the order in which they are listed.
func kinds() []Kind { return []Kind{Pinned, Moving, Orphaned, Doubled, Unplanned, Gone, Apart} }

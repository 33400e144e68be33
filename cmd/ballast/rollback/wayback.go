package rollback

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/preview"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/size"
)

// difference is the way from the plan in force back to one that is kept.
type difference struct {
	From      int64             `json:"from"`
	To        int64             `json:"to"`
	Replicas  [2]int            `json:"replicas"` // now and then
	Moves     []cycle.Move      `json:"moves"`
	Displaced []string          `json:"displaced,omitempty"` // on a replica that goes, or then on one that there is not: the planner places them
	Pinned    []string          `json:"pinned,omitempty"`    // stay, though they were elsewhere
	Fixed     []string          `json:"fixed,omitempty"`     // stay, for nobody may write their Secret
	Cordoned  []string          `json:"cordoned,omitempty"`  // stay, for the replica they were on is cordoned
	Unwell    []string          `json:"unwell,omitempty"`    // stay, for the replica they were on is unwell
	Beyond    []string          `json:"beyond,omitempty"`    // stay, for the replica they were on is not there, and the replicas are people's
	Beside    []string          `json:"beside,omitempty"`    // stay with another Secret of their server, or for a group's sake
	Gone      []string          `json:"gone,omitempty"`      // were there then, and are no more
	Then      []plan.Replica    `json:"then"`
	Sizes     []resize.SizeBack `json:"sizes,omitempty"`
	Asked     string            `json:"asked,omitempty"` // a rollback that was asked for before
	Waits     string            `json:"waits,omitempty"`
	Changed   bool              `json:"changed"`
	DryRun    bool              `json:"dryRun,omitempty"`

	loads map[string]string
	asked bool // the planner was asked for it
	shown bool // a person saw it already
}

// wayBack says what would move, by the judgement of the planner and what people and Secrets say now.
func wayBack(doc configmap.Document, secrets steer.Standing, then plan.Plan, at time.Time) difference {
	now := *doc.Plan
	in := secrets.Inputs(doc, at)
	in.Rollback = &input.Rollback{Revision: then.Revision, Plan: &then}
	way := preview.PreviewRollback(in, secrets.Unwell(at)...)
	d := difference{From: now.Revision, To: then.Revision, Replicas: [2]int{steer.ReplicasAhead(now), way.Replicas},
		Moves: []cycle.Move{}, Sizes: way.Sizes, loads: map[string]string{}}
	view := plan.NewView(now, way.Pins)
	for _, name := range slices.Sorted(maps.Keys(now.Clusters)) {
		d.loads[name] = now.Clusters[name].Load
		at, _, _ := view.Effective(name)
		d.tell(name, at, way, secrets, then)
	}
	for _, name := range slices.Sorted(maps.Keys(then.Clusters)) {
		if !steer.Has(now.Clusters, name) {
			d.Gone = append(d.Gone, name)
		}
	}
	d.Then = steer.Carried(now, d.Replicas[1], func(name string) int { return way.Rows[name].Replica })
	return d
}

// tell says of a cluster what becomes of it that is at a replica now, and why where that is not what was then.
func (d *difference) tell(name string, at int, way preview.WayBack, secrets steer.Standing, then plan.Plan) {
	to, was := way.Rows[name].Replica, then.Clusters[name]
	differs := steer.Has(then.Clusters, name) && was.Replica != at
	switch {
	case secrets.Fixed[name]: // whatever its row becomes
		if differs {
			d.Fixed = append(d.Fixed, name)
		}
	case to != at && differs && to == was.Replica:
		d.Moves = append(d.Moves, cycle.Move{Cluster: name, From: at, To: to})
	case to != at:
		d.Displaced = append(d.Displaced, name)
	case !differs: // and stays
	case steer.Has(way.Pins, name):
		d.Pinned = append(d.Pinned, name)
	case slices.Contains(way.Cordoned, was.Replica):
		d.Cordoned = append(d.Cordoned, name)
	case slices.Contains(way.Unwell, was.Replica):
		d.Unwell = append(d.Unwell, name)
	case was.Replica >= way.Replicas:
		d.Beyond = append(d.Beyond, name)
	default:
		d.Beside = append(d.Beside, name)
	}
}

// nothing reports whether there is nothing to go back from.
func (d difference) nothing() bool {
	return len(d.Moves)+len(d.Displaced)+len(d.Sizes) == 0 && d.Replicas[0] == d.Replicas[1]
}

func (d difference) WriteTable(w io.Writer) error {
	if d.nothing() {
		say.To(w, "Nothing would move: the plan in force, revision %d, has every cluster where revision %d had it, or may not move it.\n", d.From, d.To)
		d.writeStays(w)
		return nil
	}
	if !d.shown {
		if err := d.writeWay(w); err != nil {
			return err
		}
	}
	if d.Waits != "" {
		say.To(w, "It waits: %s.\n", d.Waits)
	}
	switch {
	case d.DryRun:
		say.To(w, "Nothing was changed.\n")
	case d.asked && d.Changed && d.Waits == "":
		say.To(w, "The planner begins within its interval, in waves; ballast status shows how far it is, ballast rollback --off stops it.\n")
	case d.asked && d.Changed:
		say.To(w, "It is asked for; ballast rollback --off takes that back.\n")
	case d.asked:
		say.To(w, "It was asked for before; nothing was changed.\n")
	}
	return nil
}

func (d difference) writeWay(w io.Writer) error {
	replicas := fmt.Sprintf("with %s as now", say.Plural(d.Replicas[1], "replica"))
	if d.Replicas[0] != d.Replicas[1] {
		replicas = fmt.Sprintf("with %s instead of %d", say.Plural(d.Replicas[1], "replica"), d.Replicas[0])
	}
	say.To(w, "From revision %d back to %d: %s, %s.\n", d.From, d.To, say.Plural(len(d.Moves), "move"), replicas)
	if len(d.Moves) > 0 {
		if err := say.Moves(w, d.Moves, d.loads, 0); err != nil {
			return err
		}
	}
	d.writeStays(w)
	for _, s := range d.Sizes {
		who := fmt.Sprintf("replica %d", s.Replica)
		if s.Replica == size.All {
			who = "every replica"
		}
		say.To(w, "  - size of %s: %s instead of %s, as far as change.up and change.down let it\n", who,
			say.Size(s.Then), say.Size(s.Now))
	}
	say.To(w, "\nThen, by the loads of the last decision:\n")
	if err := say.Bars(w, d.Then); err != nil {
		return err
	}
	say.To(w, "\n")
	if d.Asked != "" {
		say.To(w, "Revision %s was asked for before.\n", d.Asked)
	}
	return nil
}

func (d difference) writeStays(w io.Writer) {
	for _, l := range []struct {
		names []string
		what  string
	}{
		{d.Pinned, "pinned, and stay: "},
		{d.Fixed, "immutable, unmanaged or not selected, and stay: "},
		{d.Cordoned, "were on a replica that is cordoned, and stay: "},
		{d.Unwell, "were on a replica that is unwell, and stay: "},
		{d.Beyond, "were on a replica that there is not now, and stay: "},
		{d.Beside, "stay with another Secret of their server, or since a group says so: "},
		{d.Displaced, "on a replica that goes or went, and placed anew: "},
		{d.Gone, "gone since then, and do not come back: "},
	} {
		if len(l.names) > 0 {
			say.To(w, "  - %s%s\n", l.what, say.Listed(l.names))
		}
	}
}

// keptList is the plans that are kept.
type keptList struct {
	InForce    int64      `json:"inForce"`
	RollbackTo string     `json:"rollbackTo,omitempty"` // what was asked for
	Plans      []keptPlan `json:"plans"`
	Hidden     int        `json:"hidden,omitempty"` // from the midst of a rollout

	now time.Time
}

func (l keptList) WriteTable(w io.Writer) error {
	say.To(w, "Revision %d is in force.\n", l.InForce)
	if l.RollbackTo != "" {
		say.To(w, "Going back to revision %s was asked for; ballast rollback --off stops it.\n", l.RollbackTo)
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say.To(t, "REVISION\tAGE\tBY\tREPLICAS\tMOVES FROM NOW\tREASON\n")
	for _, k := range l.Plans {
		if k.Revision == 0 {
			continue // a record of which nothing can be read is told below
		}
		moves, reason, replicas := "-", k.Reason, fmt.Sprint(k.Replicas)
		switch {
		case k.InForce:
			moves = "in force"
		case k.Moves != nil:
			moves = fmt.Sprint(*k.Moves)
		case k.Midst != "":
			reason = "(" + k.Midst + ") " + reason
		case k.Problem != "":
			reason, replicas = "cannot be read: "+k.Problem, "-"
		}
		say.To(t, "%d\t%s\t%s\t%s\t%s\t%s\n", k.Revision, age(l.now, k.DecidedAt), say.OrDash(k.DecidedBy), replicas,
			moves, reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, k := range l.Plans {
		if k.Revision == 0 {
			say.To(w, "A plan that is kept cannot be read: %s\n", k.Problem)
		}
	}
	if l.Hidden > 0 {
		say.To(w, "Not shown: %s from the midst of a rollout (--all shows them)\n", say.Plural(l.Hidden, "plan"))
	}
	return nil
}

func age(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(at), 0))
}

// cancelled is a rollback that is no longer asked for.
type cancelled struct {
	Was      string        `json:"was,omitempty"`
	Revision int64         `json:"revision,omitempty"`
	Rollout  *plan.Rollout `json:"rollout,omitempty"`
	Changed  bool          `json:"changed"`
}

func (c cancelled) WriteTable(w io.Writer) error {
	if !c.Changed {
		say.To(w, "No rollback was asked for; nothing was changed.\n")
		return nil
	}
	say.To(w, "Going back to revision %s is no longer asked for. What moved so far stays; revision %d is in force.\n",
		c.Was, c.Revision)
	if c.Rollout != nil {
		say.To(w, "Rollout    %s\n", say.Rollout(c.Rollout))
	}
	return nil
}

package evacuate

import (
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/cycle"
	"ballast/planner/cycle/preview"
	"ballast/planner/failover"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// evacuation is what is to come of a cordon, as it looks now.
type evacuation struct {
	Replica  int             `json:"replica"`
	Until    time.Time       `json:"until"`
	Revision int64           `json:"revision"`
	Moves    []cycle.Move    `json:"moves"`
	Notes    []failover.Note `json:"notes,omitempty"` // what stays, and why
	Waits    string          `json:"waits,omitempty"` // why the planner does not begin now
	Then     []plan.Replica  `json:"then"`
	Changed  bool            `json:"changed"`
	DryRun   bool            `json:"dryRun,omitempty"`

	now   time.Time
	loads map[string]string
}

// evacuating previews what the planner would do with the replica's clusters, by its own judgement, but for present
// loads and the capacity that it computes of them.
func evacuating(s steer.State, secrets steer.Standing, cordons []people.Cordon, replica int, now time.Time) evacuation {
	p := *s.Plan
	view := plan.NewView(p, secrets.Pins)
	in := secrets.Inputs(s.Document, now)
	in.Cordon = people.FormatCordons(cordons)
	answer := preview.PreviewEvacuation(in, secrets.Unwell(now)...)
	e := evacuation{Replica: replica, Revision: p.Revision, Waits: s.Waits(), Moves: []cycle.Move{}, now: now,
		loads: map[string]string{}}
	for _, c := range cordons {
		if c.Replica == replica {
			e.Until = c.Until
		}
	}
	for _, name := range slices.Sorted(maps.Keys(answer.Moves)) {
		if from, _, _ := view.Effective(name); from == replica {
			e.Moves = append(e.Moves, cycle.Move{Cluster: name, From: from, To: answer.Moves[name]})
		}
	}
	for _, n := range answer.Notes {
		if n.Replica == replica {
			e.Notes = append(e.Notes, n)
		}
	}
	e.Notes = append(e.Notes, secrets.Beside(p, view, replica).Notes(replica)...)
	e.Then = steer.Carried(p, steer.ReplicasAhead(p), func(name string) int {
		if to, moves := answer.Moves[name]; moves {
			return to
		}
		at, _, _ := view.Effective(name)
		return at
	})
	for name, row := range p.Clusters {
		e.loads[name] = row.Load
	}
	return e
}

func (e evacuation) WriteTable(w io.Writer) error {
	verb := "takes nothing and is emptied"
	if e.DryRun {
		verb = "would take nothing and be emptied"
	}
	say.To(w, "Replica %d %s until %s, for %s; by revision %d %s.\n", e.Replica, verb, e.Until.Format(time.RFC3339),
		e.Until.Sub(e.now).Round(time.Second), e.Revision, leaving(len(e.Moves)))
	if len(e.Moves) > 0 {
		if err := say.Moves(w, e.Moves, e.loads, 0); err != nil {
			return err
		}
	}
	for _, n := range e.Notes {
		say.To(w, "  - %s\n", n.Message)
	}
	say.To(w, "\nThen:\n")
	if err := say.Bars(w, e.Then); err != nil {
		return err
	}
	say.To(w, "\n")
	if e.Waits != "" {
		say.To(w, "It waits: %s.\n", e.Waits)
	}
	switch {
	case e.DryRun:
		say.To(w, "Nothing was changed.\n")
	case !e.Changed:
		say.To(w, "It was cordoned so before; nothing was changed.\n")
	case e.Waits == "":
		say.To(w, "The planner begins within its interval, in waves; ballast evacuate %d --wait tells how far it is, --off ends it.\n", e.Replica)
	default:
		say.To(w, "It is cordoned; ballast evacuate %d --wait tells how far it is, --off ends it.\n", e.Replica)
	}
	return nil
}

func leaving(clusters int) string {
	switch clusters {
	case 0:
		return "no cluster has to leave it"
	case 1:
		return "1 cluster leaves it"
	}
	return say.Plural(clusters, "cluster") + " leave it"
}

// cordonList is the replicas that are cordoned.
type cordonList struct {
	Cordons []steer.Cordoned `json:"cordons"`
	Changed bool             `json:"changed"`

	now   time.Time
	ended *int
}

func cordonsOf(s steer.State, now time.Time) (cordonList, error) {
	cordons, err := s.Cordons(now)
	if err != nil {
		return cordonList{}, err
	}
	l := cordonList{Cordons: make([]steer.Cordoned, 0, len(cordons)), now: now}
	has := map[int]int{}
	if s.Plan != nil {
		view := plan.NewView(*s.Plan, s.Pins)
		for name := range s.Plan.Clusters {
			at, _, _ := view.Effective(name)
			has[at]++
		}
	}
	for _, c := range cordons {
		l.Cordons = append(l.Cordons, steer.Cordoned{Replica: c.Replica, Until: c.Until, Clusters: has[c.Replica]})
	}
	return l, nil
}

func (l cordonList) WriteTable(w io.Writer) error {
	switch {
	case l.ended != nil && l.Changed:
		say.To(w, "Replica %d is no longer cordoned: it takes clusters again, as balance asks for.\n", *l.ended)
	case l.ended != nil:
		say.To(w, "Replica %d was not cordoned; nothing was changed.\n", *l.ended)
	}
	if len(l.Cordons) == 0 {
		say.To(w, "No replica is cordoned.\n")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say.To(t, "REPLICA\tUNTIL\tLEFT\tSTILL HAS\n")
	for _, c := range l.Cordons {
		say.To(t, "%d\t%s\t%s\t%s\n", c.Replica, c.Until.Format(time.RFC3339), c.Until.Sub(l.now).Round(time.Second),
			say.Plural(c.Clusters, "cluster"))
	}
	return t.Flush()
}

package main

import (
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/failover"
	"ballast/planner/plan"
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

// evacuating previews what the planner would do with the replica's clusters, by its own judgement, but for present loads
// and the capacity that it computes of them.
func evacuating(s planState, secrets standing, cordons []plan.Cordon, replica int, now time.Time) evacuation {
	p := *s.Plan
	view := plan.NewView(p, secrets.pins)
	in := secrets.inputs(s.Document, now)
	in.Cordon = plan.FormatCordons(cordons)
	answer := cycle.PreviewEvacuation(in)
	e := evacuation{Replica: replica, Revision: p.Revision, Waits: s.waits(), Moves: []cycle.Move{}, now: now, loads: map[string]string{}}
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
	e.Notes = append(e.Notes, secrets.beside(p, view, replica).notes(replica)...)
	e.Then = carried(p, replicasAhead(p), func(name string) int {
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

// carried is what each replica carries by the rows' loads, where of says which replica a cluster has.
func carried(p plan.Plan, replicas int, of func(name string) int) []plan.Replica {
	list := make([]plan.Replica, replicas)
	for _, name := range sortedKeys(p.Clusters) {
		at := of(name)
		if at < 0 || at >= replicas {
			continue
		}
		load := plan.LoadOf(p.Clusters[name].Load)
		list[at].LoadIndexes = append(list[at].LoadIndexes, plan.LoadIndex{Shard: plan.Shard{ID: name}, Value: load, DisplayValue: load.Display()})
		list[at].TotalLoad += load
	}
	for i := range list {
		list[i].ID, list[i].TotalLoadDisplay = i, list[i].TotalLoad.Display()
	}
	return list
}

func (e evacuation) write(w io.Writer) error {
	verb := "takes nothing and is emptied"
	if e.DryRun {
		verb = "would take nothing and be emptied"
	}
	say(w, "Replica %d %s until %s, for %s; by revision %d %s.\n", e.Replica, verb, e.Until.Format(time.RFC3339),
		e.Until.Sub(e.now).Round(time.Second), e.Revision, leaving(len(e.Moves)))
	if len(e.Moves) > 0 {
		if err := writeMoves(w, e.Moves, e.loads, 0); err != nil {
			return err
		}
	}
	for _, n := range e.Notes {
		say(w, "  - %s\n", n.Message)
	}
	say(w, "\nThen:\n")
	if err := writeBars(w, e.Then); err != nil {
		return err
	}
	say(w, "\n")
	if e.Waits != "" {
		say(w, "It waits: %s.\n", e.Waits)
	}
	switch {
	case e.DryRun:
		say(w, "Nothing was changed.\n")
	case !e.Changed:
		say(w, "It was cordoned so before; nothing was changed.\n")
	case e.Waits == "":
		say(w, "The planner begins within its interval, in waves; ballast evacuate %d --wait tells how far it is, --off ends it.\n", e.Replica)
	default:
		say(w, "It is cordoned; ballast evacuate %d --wait tells how far it is, --off ends it.\n", e.Replica)
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
	return plural(clusters, "cluster") + " leave it"
}

// cordonList is the replicas that are cordoned.
type cordonList struct {
	Cordons []cordoned `json:"cordons"`
	Changed bool       `json:"changed"`

	now   time.Time
	ended *int
}

type cordoned struct {
	Replica  int       `json:"replica"`
	Until    time.Time `json:"until"`
	Clusters int       `json:"clusters"` // that it still has, those that stay among them
}

func cordonsOf(s planState, now time.Time) (cordonList, error) {
	cordons, err := s.cordons(now)
	if err != nil {
		return cordonList{}, err
	}
	l := cordonList{Cordons: make([]cordoned, 0, len(cordons)), now: now}
	has := map[int]int{}
	if s.Plan != nil {
		view := plan.NewView(*s.Plan, s.Pins)
		for name := range s.Plan.Clusters {
			at, _, _ := view.Effective(name)
			has[at]++
		}
	}
	for _, c := range cordons {
		l.Cordons = append(l.Cordons, cordoned{c.Replica, c.Until, has[c.Replica]})
	}
	return l, nil
}

func (l cordonList) write(w io.Writer) error {
	switch {
	case l.ended != nil && l.Changed:
		say(w, "Replica %d is no longer cordoned: it takes clusters again, as balance asks for.\n", *l.ended)
	case l.ended != nil:
		say(w, "Replica %d was not cordoned; nothing was changed.\n", *l.ended)
	}
	if len(l.Cordons) == 0 {
		say(w, "No replica is cordoned.\n")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say(t, "REPLICA\tUNTIL\tLEFT\tSTILL HAS\n")
	for _, c := range l.Cordons {
		say(t, "%d\t%s\t%s\t%s\n", c.Replica, c.Until.Format(time.RFC3339), c.Until.Sub(l.now).Round(time.Second), plural(c.Clusters, "cluster"))
	}
	return t.Flush()
}

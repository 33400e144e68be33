package overview

import (
	"fmt"
	"io"
	"strings"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/decisions"
	"ballast/planner/plan"
	"ballast/planner/store"
)

const (
	mostDecisions = 10
	shownNames    = 3 // moves of a decision that the table names
)

// decision is a plan that was decided, as the history keeps it. Changed is nil where the plan before it is not kept.
type decision struct {
	Revision int64             `json:"revision"`
	At       time.Time         `json:"at,omitzero"`
	By       string            `json:"by,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Changed  *decisions.Change `json:"changed,omitempty"`
}

// DecidedOf are the last decisions, newest first. The history has the plan in force a little later than its ConfigMap.
func DecidedOf(state steer.State, records []store.Record) []decision {
	var list []decision
	var plans []plan.Plan
	add := func(p plan.Plan, d decision) {
		d.Revision, d.At, d.By, d.Reason = p.Revision, plan.WithinJSON(d.At), say.OneLine(d.By), say.OneLine(d.Reason)
		list, plans = append(list, d), append(plans, p)
	}
	if p := state.Plan; p != nil && (len(records) == 0 || records[0].Revision < p.Revision) {
		at, _ := time.Parse(time.RFC3339, state.Annotations[plan.AnnotationDecidedAt]) // anybody may have written it; none is shown then
		add(*p, decision{At: at, By: state.Annotations[plan.AnnotationDecidedBy], Reason: state.Annotations[plan.AnnotationReason]})
	}
	for _, r := range records {
		p, err := plan.Decode(r.Text)
		if err != nil {
			continue // the history's reader has said so
		}
		add(p, decision{At: r.Meta.DecidedAt, By: r.Meta.DecidedBy, Reason: r.Meta.Reason})
	}
	for i := range len(list) - 1 {
		c := decisions.Between(plans[i+1], plans[i])
		list[i].Changed = &c
	}
	return list[:min(len(list), mostDecisions)]
}

func (s *Overview) writeDecisions(w io.Writer) {
	if len(s.Decisions) < 2 { // the head says it of the plan in force
		return
	}
	say.To(w, "Decided  as far as the history keeps it, newest first\n")
	for _, d := range s.Decisions {
		at := "when nobody knows"
		if !d.At.IsZero() {
			at = fmt.Sprintf("%s (%s ago)", d.At.UTC().Format(time.RFC3339), say.Span(s.Now.Sub(d.At)))
		}
		say.To(w, "  %d  %s  %s\n      %s\n", d.Revision, at, d.changes(), say.OrDash(d.Reason))
	}
}

// changes says what a decision changed, and names the first of what it moved.
func (d decision) changes() string {
	if d.Changed == nil {
		return "the plan before is not kept"
	}
	words := d.Changed.Words()
	if len(words) == 0 {
		return "nothing that is enforced"
	}
	said := strings.Join(words, ", ")
	var names []string
	for i, m := range d.Changed.Moves {
		if i == shownNames {
			names = append(names, fmt.Sprintf("%d more", len(d.Changed.Moves)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s %d -> %d", m.Cluster, m.From, m.To))
	}
	if len(names) > 0 {
		said += fmt.Sprintf(" (%s)", strings.Join(names, ", "))
	}
	return said
}

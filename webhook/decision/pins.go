package decision

import (
	"fmt"

	"ballast/planner/plan"
	"ballast/planner/plan/people"
	"ballast/planner/printable"
)

// maxAuditPins bounds the pins that one write's audit annotations list; of more, their number stands there too.
const maxAuditPins = 20

// judgePins judges the pins that a write adds or changes, and only those: a pin that stood when its rule came must not
// keep people from writing others. p is the plan that stands, nil for none; rows are pins that came from edited rows.
func (v *Verdict) judgePins(p *plan.Plan, before, after string, rows plan.Pins) {
	if before == after {
		return
	}
	limit := 0
	if p != nil {
		limit = p.MaxReplicas
	}
	was, stood := people.ParsePins(before, limit)
	is, problems := people.ParsePins(after, limit)
	if i := people.FirstNew(before, stood, after, problems); i >= 0 {
		problem := problems[i]
		v.Reason, v.Denied = plan.PinRefused, "ballast: "+problem.Error()
		v.Requested = []Field{{"pins." + printable.Name(problem.Name),
			printable.Count(people.AsWritten(after, problem))}}
		v.Enforced, v.Patches, v.Warnings = nil, nil, nil
		return
	}
	v.notePins(was, is, rows)
	if p != nil {
		v.warnUnknown(p, was, is)
	}
}

// notePins lists the pins that a write adds, changes or takes away.
func (v *Verdict) notePins(was, is, rows plan.Pins) {
	v.note(changedPins(was, is, rows), changedPins(was, is, nil))
}

// warnUnknown names the nearest cluster for a pin of one that the plan does not know: a typing mistake, or a cluster
// that is still to come. A person may pin a whole fleet to come: only those are looked up that there is a warning left
// for.
func (v *Verdict) warnUnknown(p *plan.Plan, was, is plan.Pins) {
	var names []string
	for _, name := range sortedKeys(is) {
		_, stoodBefore := was[name]
		if _, known := p.Clusters[name]; known || stoodBefore {
			continue
		}
		if len(v.Warnings) >= maxWarnings {
			return
		}
		if names == nil {
			names = sortedKeys(p.Clusters)
		}
		said := fmt.Sprintf("ballast: pin %s: no such cluster in the plan yet", printable.Name(name))
		if near := people.Nearest(name, names); near != "" {
			v.warn(said+"; did you mean "+near+"?",
				"ballast: a pin names no cluster of the plan; did you mean "+near+"?", said)
			continue
		}
		v.warn(said, "ballast: a pin names no cluster of the plan yet")
	}
}

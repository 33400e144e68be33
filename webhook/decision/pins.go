package decision

import (
	"fmt"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

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
	was, oldProblems := people.ParsePins(before, limit)
	is, newProblems := people.ParsePins(after, limit)
	stood := mistakes(before, oldProblems)
	lines := linesOf(after)
	for _, problem := range newProblems {
		if !stood[mistake{problem.Name, problem.Message, line(lines, problem.Line)}] {
			v.Reason, v.Denied = plan.PinRefused, "ballast: "+problem.Error()
			v.Requested = []Field{{"pins." + printable.Name(problem.Name), printable.Count(asWritten(after, problem))}}
			v.Enforced, v.Patches, v.Warnings = nil, nil, nil
			return
		}
	}
	v.notePins(was, is, rows)
	if p != nil {
		v.warnUnknown(p, was, is)
	}
}

// asWritten is the value that a problem is about, as it stands; empty where it is no scalar, or the name was cut.
func asWritten(pins string, problem people.PinProblem) string {
	if problem.Name == "" || len(pins) > people.MaxPinsBytes {
		return ""
	}
	var doc yamlnode.Node
	if yamlnode.Unmarshal([]byte(pins), &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yamlnode.MappingNode {
		return ""
	}
	pairs := doc.Content[0].Content
	for i := len(pairs) - 2; i >= 0; i -= 2 { // the last one where a name stands twice on a line
		key, value := pairs[i], pairs[i+1]
		if key.Value == problem.Name && (key.Line == problem.Line || value.Line == problem.Line) && value.Kind == yamlnode.ScalarNode {
			return value.Value
		}
	}
	return ""
}

// mistake is a pin that cannot be, wherever its line stands.
type mistake struct{ name, message, line string }

// mistakes are those of a text.
func mistakes(text string, problems []people.PinProblem) map[mistake]bool {
	found, lines := map[mistake]bool{}, linesOf(text)
	for _, p := range problems {
		found[mistake{p.Name, p.Message, line(lines, p.Line)}] = true
	}
	return found
}

// linesOf are the lines of pins that are read at all.
func linesOf(text string) []string {
	if len(text) > people.MaxPinsBytes {
		return nil
	}
	return strings.Split(text, "\n")
}

func line(lines []string, number int) string {
	if number < 1 || number > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[number-1])
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
			v.warn(said+"; did you mean "+near+"?", "ballast: a pin names no cluster of the plan; did you mean "+near+"?", said)
			continue
		}
		v.warn(said, "ballast: a pin names no cluster of the plan yet")
	}
}

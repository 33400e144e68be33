package webhook

import (
	"fmt"
	"strconv"

	"ballast/planner/plan"
)

// maxRowEdits is how many rows a person may edit at once and have them become pins; more is a mistake or a merge.
const maxRowEdits = 20

// DecidePlan answers a write to the plan ConfigMap. Only the planner changes data.plan and ballast's annotations; from
// anyone else they are put back, edited rows become pins, and pins that the write adds or changes are judged.
func DecidePlan(s *State, r Request, object, old PlanObject) Verdict {
	v := decidePlan(s, r, object, old)
	if !s.isPlanner(r.User) {
		v.notePlanActs(object, old)
	}
	return v
}

func decidePlan(s *State, r Request, object, old PlanObject) Verdict {
	v := Verdict{Revision: s.revision(), Reason: plan.InPlan}
	if s.isPlanner(r.User) {
		return v
	}
	stored := s.stored(old)
	switch {
	case stored != nil && r.User != "" && r.User == stored.Plan.PlannerUser:
		return v
	case object.breakGlass():
		v.Reason = plan.Observing
		return v
	case old.Immutable:
		// The API server refuses any change of the data, and ours would take the rest of the write along.
		v.Reason = plan.Immutable
		v.warn(fmt.Sprintf("ballast: ConfigMap %s is immutable and the planner locked out; delete it: the planner makes it anew", s.ConfigMap),
			"ballast: the plan is immutable and the planner locked out; delete it: the planner makes it anew")
		return v
	case stored == nil:
		// Nothing to put back: the planner takes over from what is written here.
		v.Reason = plan.NoPlan
		if v.judgePins(nil, old.Pins, object.Pins, nil); v.Denied == "" {
			v.keepMutable(object)
		}
		return v
	}
	rows := v.readEdit(object, stored)
	pins := object.Pins
	if len(rows) > 0 {
		pins = v.addRows(pins, rows, stored)
	}
	if v.Denied == "" {
		v.judgePins(stored.Plan, old.Pins, pins, rows)
	}
	if v.Denied == "" {
		v.keepPlan(object, stored, pins)
		v.keepMutable(object)
	}
	return v
}

// keepMutable takes out what would lock the planner out for good: nobody can take it back.
func (v *Verdict) keepMutable(object PlanObject) {
	if !object.Immutable {
		return
	}
	v.Patches = append(v.Patches, Op{Op: "remove", Path: "/immutable"})
	v.Requested = append(v.Requested, Field{fieldImmutable, "true"})
	v.Enforced = append(v.Enforced, Field{fieldImmutable, ""})
	if v.Reason == plan.InPlan || v.Reason == plan.NoPlan {
		v.Reason = plan.PlanKept
	}
	v.warn("ballast: immutable was taken out: the planner writes here; to stop it, annotate " + plan.AnnotationPaused + ": \"true\"")
}

// fieldImmutable is the plan ConfigMap's field in the audit annotations.
const fieldImmutable = "immutable"

// readEdit finds what a person meant by writing another data.plan: the rows that become pins. Everything else in it is
// put back, with a warning that says why.
func (v *Verdict) readEdit(object PlanObject, stored *Stored) plan.Pins {
	if object.Plan == stored.Text {
		return nil
	}
	v.Reason = plan.PlanKept
	v.Requested = append(v.Requested, Field{plan.KeyPlan, short(object.Plan)})
	v.Enforced = append(v.Enforced, Field{plan.KeyPlan, short(stored.Text)})
	at := stored.Plan.Revision
	kept := fmt.Sprintf("ballast: data.plan is the planner's, revision %d stays: ", at)
	if object.whole() {
		v.warn(kept + "this is a backup; the planner goes on from there")
		return nil
	}
	edited, err := plan.DecodeStrict(object.Plan)
	if err != nil {
		v.warn(kept + "what was written is no plan; write pins into data.pins")
		return nil
	}
	if edited.Revision != at {
		v.warn(kept + fmt.Sprintf("the edit is of revision %d, so edit again", edited.Revision))
		return nil
	}
	rows, differ := editedRows(edited, stored.Plan)
	edited.Clusters = stored.Plan.Clusters
	switch {
	case differ > maxRowEdits:
		v.warn(kept + fmt.Sprintf("%d rows differ, and at most %d become pins", differ, maxRowEdits))
		return nil
	case differ > len(rows), !edited.SameEnforced(*stored.Plan), len(rows) == 0:
		v.warn(kept + "only a row's replica can be edited; it becomes a pin")
	}
	return rows
}

// editedRows are the clusters with another replica than the plan's, and the number of rows that differ in anything.
func editedRows(edited plan.Plan, stored *plan.Plan) (plan.Pins, int) {
	rows, differ := plan.Pins{}, 0
	for name, row := range edited.Clusters {
		was, known := stored.Clusters[name]
		if known && row == was {
			continue
		}
		differ++
		if !known || row.Replica != was.Replica {
			rows[name] = row.Replica
		}
	}
	for name := range stored.Clusters {
		if _, there := edited.Clusters[name]; !there {
			differ++
		}
	}
	return rows, differ
}

// addRows writes edited rows into the pins. A row that cannot be a pin is refused like one.
func (v *Verdict) addRows(pins string, rows plan.Pins, stored *Stored) string {
	most := stored.Plan.MaxReplicas
	for _, name := range sortedKeys(rows) {
		if why := plan.BadPin(rows[name], most); why != "" {
			v.Reason, v.Enforced, v.Warnings = plan.PinRefused, nil, nil
			v.Requested = []Field{{"clusters." + printableName(name), printableCount(strconv.Itoa(rows[name]))}}
			v.Denied = "ballast: row " + printableName(name) + ": " + why
			return pins
		}
	}
	added, err := plan.AddPins(pins, rows)
	if err != nil {
		v.warn("ballast: the edited rows did not become pins, because data.pins cannot be read; mend it first")
		return pins
	}
	v.Reason = plan.PinAdded
	said := ""
	for _, name := range sortedKeys(rows) {
		said += " " + printableName(name) + ": " + strconv.Itoa(rows[name]) + ","
	}
	said = said[:len(said)-1]
	v.warn("ballast: these rows became pins in data.pins:"+said, fmt.Sprintf("ballast: %d edited rows became pins in data.pins", len(rows)))
	return added
}

// keepPlan patches data.plan, data.pins and ballast's annotations to what they have to be.
func (v *Verdict) keepPlan(object PlanObject, stored *Stored, pins string) {
	data := map[string]string{}
	if !object.HasPlan || object.Plan != stored.Text {
		data[plan.KeyPlan] = stored.Text
	}
	if pins != object.Pins {
		data[plan.KeyPins] = pins
	}
	there := map[string]bool{plan.KeyPlan: object.HasPlan, plan.KeyPins: object.HasPins}
	switch {
	case len(data) > 0 && !object.HasData:
		v.Patches = append(v.Patches, Op{"add", "/data", data})
	default:
		for _, key := range sortedKeys(data) {
			v.Patches = append(v.Patches, Op{replaceOrAdd(there[key]), "/data/" + key, data[key]})
		}
	}
	v.keepAnnotations(object, stored.Annotations)
}

func (v *Verdict) keepAnnotations(object PlanObject, want map[string]string) {
	before := len(v.Patches)
	if !object.HasAnnotations {
		if len(want) > 0 {
			v.Patches = append(v.Patches, Op{"add", "/metadata/annotations", want})
		}
	} else {
		for _, key := range ours() {
			value, wanted := want[key]
			got, there := object.Annotations[key]
			path := "/metadata/annotations/" + escapePointer(key)
			switch {
			case wanted && (!there || got != value):
				v.Patches = append(v.Patches, Op{replaceOrAdd(there), path, value})
			case !wanted && there:
				v.Patches = append(v.Patches, Op{Op: "remove", Path: path})
			}
		}
	}
	if len(v.Patches) > before && v.Reason == plan.InPlan {
		v.Reason = plan.PlanKept
		v.warn("ballast: the plan's annotations are the planner's and were put back")
	}
}

// short names a data.plan in an audit log: the first digits of its digest.
func short(text string) string {
	if text == "" {
		return ""
	}
	return plan.Digest(text)[:12]
}

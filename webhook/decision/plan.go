package decision

import (
	"fmt"
	"strconv"

	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/people"
	"ballast/planner/printable"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
)

// maxRowEdits is how many rows a person may edit at once and have them become pins; more is a mistake or a merge.
const maxRowEdits = 20

// Plan answers a write to the plan ConfigMap. Only the planner changes data.plan and ballast's annotations: from
// anyone else they become what they were before the write, whatever else it does. Edited rows become pins, and pins
// that the write adds or changes are judged.
//
// What is put back is taken from the request alone, and never from what this webhook knows: whoever reaches the port
// would be told the plan. A plan that was broken before stays so until the planner writes it anew, and where none stood
// none is brought: a backup's is left out, for the planner has its history.
func Plan(s *inforce.State, r Request, object, old objects.Plan) Verdict {
	v := decidePlan(s, r, object, old)
	if s.IsPlanner(r.User) {
		v.noteUnlike(object, old)
	} else {
		v.notePlanActs(object, old)
	}
	return v
}

func decidePlan(s *inforce.State, r Request, object, old objects.Plan) Verdict {
	v := Verdict{Revision: s.Revision(), Reason: plan.InPlan}
	switch {
	case s.IsPlanner(r.User):
		return v
	case old.Immutable:
		// The API server refuses any change of the data, and ours would take the rest of the write along.
		v.Reason = plan.Immutable
		v.keepAnnotations(object, inforce.PlannersOf(old.Annotations))
		v.warn(fmt.Sprintf("ballast: ConfigMap %s is immutable and the planner locked out; delete it: the planner makes it anew", s.ConfigMap),
			"ballast: the plan is immutable and the planner locked out; delete it: the planner makes it anew")
		return v
	case object.BreakGlass():
		v.keepPlan(object, old, object.Pins)
		v.Reason = plan.Observing
		return v
	}
	v.decideEdit(object, old, stored(s, old))
	if v.Denied == "" {
		v.keepMutable(object)
	}
	return v
}

// decideEdit judges what a person edited while the plan is enforced.
func (v *Verdict) decideEdit(object, old objects.Plan, stored *inforce.Stored) {
	pins, rows := object.Pins, plan.Pins(nil)
	var standing *plan.Plan
	if stored != nil {
		if standing, rows = stored.Plan, v.readEdit(object, stored); len(rows) > 0 {
			pins = v.addRows(pins, rows, stored)
		}
	}
	if v.Denied == "" {
		v.judgePins(standing, old.Pins, pins, rows)
	}
	if v.Denied == "" {
		v.keepPlan(object, old, pins)
	}
}

// keepMutable takes out what would lock the planner out for good: nobody can take it back.
func (v *Verdict) keepMutable(object objects.Plan) {
	if !object.Immutable {
		return
	}
	v.Patches = append(v.Patches, Op{Op: "remove", Path: "/immutable"})
	v.Requested = append(v.Requested, Field{fieldImmutable, "true"})
	v.Enforced = append(v.Enforced, Field{fieldImmutable, ""})
	if v.Reason == plan.InPlan || v.Reason == plan.NoPlan {
		v.Reason = plan.PlanKept
	}
	v.warn("ballast: immutable was taken out: the planner writes here; to stop it, annotate " + plan.AnnotationPaused +
		": \"true\"")
}

// fieldImmutable is the plan ConfigMap's field in the audit annotations.
const fieldImmutable = "immutable"

// readEdit finds what a person meant by writing another data.plan: the rows that become pins. Everything else in it is
// put back, with a warning that says why.
func (v *Verdict) readEdit(object objects.Plan, stored *inforce.Stored) plan.Pins {
	if object.Plan == stored.Text {
		return nil
	}
	v.Reason = plan.PlanKept
	v.Requested = append(v.Requested, Field{plan.KeyPlan, short(object.Plan)})
	v.Enforced = append(v.Enforced, Field{plan.KeyPlan, short(stored.Text)})
	at := stored.Plan.Revision
	kept := fmt.Sprintf("ballast: data.plan is the planner's, revision %d stays: ", at)
	if object.Whole() {
		v.warn(kept + "this is a backup; the planner goes on from there")
		return nil
	}
	edited, err := codec.DecodeStrict(object.Plan)
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
func (v *Verdict) addRows(pins string, rows plan.Pins, stored *inforce.Stored) string {
	most := stored.Plan.MaxReplicas
	for _, name := range sortedKeys(rows) {
		if why := people.BadPin(rows[name], most); why != "" {
			v.Reason, v.Enforced, v.Warnings = plan.PinRefused, nil, nil
			v.Requested = []Field{{"clusters." + printable.Name(name), printable.Count(strconv.Itoa(rows[name]))}}
			v.Denied = "ballast: row " + printable.Name(name) + ": " + why
			return pins
		}
	}
	added, err := people.AddPins(pins, rows)
	if err != nil {
		v.warn("ballast: the edited rows did not become pins, because data.pins cannot be read; mend it first")
		return pins
	}
	v.Reason = plan.PinAdded
	said := ""
	for _, name := range sortedKeys(rows) {
		said += " " + printable.Name(name) + ": " + strconv.Itoa(rows[name]) + ","
	}
	said = said[:len(said)-1]
	v.warn("ballast: these rows became pins in data.pins:"+said,
		fmt.Sprintf("ballast: %d edited rows became pins in data.pins", len(rows)))
	return added
}

// keepPlan patches data.plan and ballast's annotations to what they were before the write, and data.pins to what it has
// to be.
func (v *Verdict) keepPlan(object, old objects.Plan, pins string) {
	if object.HasPlan != old.HasPlan || object.Plan != old.Plan {
		v.noteKept(object, old)
	}
	v.patchData(object, old, pins)
	v.keepAnnotations(object, inforce.PlannersOf(old.Annotations))
}

// noteKept says that data.plan was put back, where readEdit has not said why.
func (v *Verdict) noteKept(object, old objects.Plan) {
	if v.Reason == plan.PlanKept || v.Reason == plan.PinAdded {
		return
	}
	v.Reason = plan.PlanKept
	v.Requested = append([]Field{{plan.KeyPlan, short(object.Plan)}}, v.Requested...)
	v.Enforced = append([]Field{{plan.KeyPlan, short(old.Plan)}}, v.Enforced...)
	if old.HasPlan {
		v.warn("ballast: data.plan is the planner's alone and stays as it was; pins go to data.pins")
		return
	}
	v.warn("ballast: data.plan is the planner's alone and was left out; the planner writes it anew; pins go to data.pins")
}

// patchData makes data what it has to be, in the fewest words.
func (v *Verdict) patchData(object, old objects.Plan, pins string) {
	data := map[string]string{}
	if old.HasPlan && (!object.HasPlan || object.Plan != old.Plan) {
		data[plan.KeyPlan] = old.Plan
	}
	if pins != object.Pins {
		data[plan.KeyPins] = pins
	}
	if len(data) > 0 && !object.HasData {
		v.Patches = append(v.Patches, Op{"add", "/data", data})
		return
	}
	there := map[string]bool{plan.KeyPlan: object.HasPlan, plan.KeyPins: object.HasPins}
	for _, key := range sortedKeys(data) {
		v.Patches = append(v.Patches, Op{replaceOrAdd(there[key]), "/data/" + key, data[key]})
	}
	if object.HasPlan && !old.HasPlan {
		v.Patches = append(v.Patches, Op{Op: "remove", Path: "/data/" + plan.KeyPlan})
	}
}

func (v *Verdict) keepAnnotations(object objects.Plan, want map[string]string) {
	before := len(v.Patches)
	if !object.HasAnnotations {
		if len(want) > 0 {
			v.Patches = append(v.Patches, Op{"add", "/metadata/annotations", want})
		}
	} else {
		for _, key := range plan.PlannersAnnotations() {
			value, wanted := want[key]
			got, there := object.Annotations[key]
			path := "/metadata/annotations/" + patchable.Pointer(key)
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

// stored is the plan that the old object holds; nil where it holds none, or a broken one.
func stored(s *inforce.State, old objects.Plan) *inforce.Stored {
	if k := s.Kept; k != nil && k.Text == old.Plan && k.Annotations[plan.AnnotationDigest] == old.Annotations[plan.AnnotationDigest] {
		return &inforce.Stored{Text: old.Plan, Annotations: inforce.PlannersOf(old.Annotations), Plan: k.Plan} // its digest was compared when it came
	}
	if !old.Whole() {
		return nil
	}
	p, err := codec.Decode(old.Plan)
	if err != nil {
		return nil
	}
	return &inforce.Stored{Text: old.Plan, Annotations: inforce.PlannersOf(old.Annotations), Plan: &p}
}

package decision

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"ballast/planner/plan"
	"ballast/planner/plan/people"
	"ballast/planner/printable"
	"ballast/webhook/objects"
	"ballast/webhook/steering"
)

// acts are the powerful acts in a person's write to the plan ConfigMap: people's annotations and pins that it adds,
// changes or takes away. asked is what was written, taken what ballast takes it for: absent for what it passes over.
func acts(object, old objects.Plan) (asked, taken []Field) {
	asked, taken = changedNotes(steering.OnPlan, object.Annotations, old.Annotations)
	if object.Pins == old.Pins {
		return asked, taken
	}
	was, _ := people.ParsePins(old.Pins, 0)
	is, _ := people.ParsePins(object.Pins, 0)
	pins := changedPins(was, is, nil)
	return append(asked, pins...), append(taken, pins...)
}

// changedNotes are the annotations that a write adds, changes or takes away.
func changedNotes(on func() steering.Surface, is, was map[string]string) (asked, taken []Field) {
	for _, c := range steering.Changes(on, is, was) {
		asked, taken = append(asked, Field{c.Name, c.Asked}), append(taken, Field{c.Name, c.Taken})
	}
	return asked, taken
}

// fieldPins is the number of pins that a write changes, where it changes too many to list.
const fieldPins = "pins"

// changedPins are the pins that a write adds, changes or takes away; those that came from edited rows are named so. Of
// many the first are listed, and their number.
func changedPins(was, is, rows plan.Pins) []Field {
	changed := map[string]string{}
	for name, replica := range is {
		if old, ok := was[name]; !ok || old != replica {
			changed[name] = strconv.Itoa(replica)
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			changed[name] = ""
		}
	}
	var list []Field
	names := sortedKeys(changed)
	for _, name := range names[:min(len(names), maxAuditPins)] {
		from := "pins."
		if _, fromRow := rows[name]; fromRow {
			from = "clusters."
		}
		list = append(list, Field{from + printable.Name(name), changed[name]})
	}
	if len(names) > maxAuditPins {
		list = append(list, Field{fieldPins, strconv.Itoa(len(names))})
	}
	return list
}

// fieldSecretType is Argo CD's label in the audit annotations: a Secret without it is no cluster's.
const fieldSecretType = "secret-type"

// fieldSelected is that the planner's selector selects a Secret.
const fieldSelected = "selected"

// clusterActs are those in a write to a cluster Secret: opting out, pinning, what makes it a cluster's or takes it out
// of Argo CD, and what takes it out of the planner's sight or brings it back. Of a Secret that is made, labels are no
// acts of their own.
func clusterActs(r Request, object, old objects.Secret, maxReplicas int) (asked, taken []Field) {
	asked, taken = changedNotes(steering.OnCluster(maxReplicas), object.Notes, old.Told())
	label := Field{Name: fieldSecretType}
	switch {
	case sightChanges(object, old) && !r.Create:
		label.Name = fieldSelected
		if old.LeftOut {
			label.Value = "true"
		}
	case old.Cluster && !object.Cluster:
	case object.Cluster && !old.Cluster && !r.Create:
		label.Value = plan.SecretTypeCluster
	default:
		return asked, taken
	}
	return append(asked, label), append(taken, label)
}

// sightChanges reports whether a write of a cluster's Secret takes it out of the planner's sight, or brings it back.
func sightChanges(object, old objects.Secret) bool {
	return old.Cluster && object.Cluster && old.LeftOut != object.LeftOut
}

// notePlanActs notes what a person's admitted write to the plan ConfigMap does. Judged pins are noted already.
func (v *Verdict) notePlanActs(object, old objects.Plan) {
	if v.Denied != "" {
		return
	}
	if slices.ContainsFunc(v.Enforced, Field.isPin) {
		old.Pins = object.Pins
	}
	v.note(acts(object, old))
	v.warnMistyped(steering.OnPlan, object.Annotations, old.Annotations)
}

// noteUnlike notes the acts in a write by the planner's user that the planner never does: it tells of a trip, takes a
// rollback's request away when it is done, and leaves the rest to people. Whoever has its token acts in its name; so
// does it itself where it makes a ConfigMap anew that was deleted, which is noted, since nothing here tells it from a
// theft.
func (v *Verdict) noteUnlike(object, old objects.Plan) {
	asked, taken := acts(object, old)
	own := func(f Field) bool {
		return f.Name == "tripped" || (f.Name == "rollback-to" || f.Name == "rebase") && f.Value == ""
	}
	v.note(slices.DeleteFunc(asked, own), slices.DeleteFunc(taken, own))
}

// warnMistyped tells the writer of annotations that do not do what was meant.
func (v *Verdict) warnMistyped(on func() steering.Surface, is, was map[string]string) {
	for _, forms := range steering.Mistyped(on, is, was) {
		v.warn(forms...)
	}
}

func (v *Verdict) note(asked, taken []Field) {
	v.Requested, v.Enforced = append(v.Requested, asked...), append(v.Enforced, taken...)
}

func (f Field) isPin() bool { return f.Name == fieldPins || strings.HasPrefix(f.Name, fieldPins+".") }

// IsAct reports whether a field of what was enforced is a powerful act. It is asked of every write.
func (f Field) IsAct() bool {
	switch f.Name {
	case "accept-discovery", "cordon", "enforcement", "paused", "rebase", "rollback-to", "tripped", "pin", fieldSecretType, fieldSelected, "unmanaged":
		return true
	}
	return f.isPin()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

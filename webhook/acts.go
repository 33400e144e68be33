package webhook

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"ballast/planner/plan"
)

// acts are the powerful acts in a person's write to the plan ConfigMap: people's annotations and pins that it adds,
// changes or takes away. asked is what was written, taken what ballast takes it for: absent for what it passes over.
func acts(object, old PlanObject) (asked, taken []Field) {
	asked, taken = changedNotes(onPlan, object.Annotations, old.Annotations)
	if object.Pins == old.Pins {
		return asked, taken
	}
	was, _ := plan.ParsePins(old.Pins, 0)
	is, _ := plan.ParsePins(object.Pins, 0)
	pins := changedPins(was, is, nil)
	return append(asked, pins...), append(taken, pins...)
}

// changedNotes are the annotations that a write adds, changes or takes away, in the order of the list.
func changedNotes(list func() []steering, is, was map[string]string) (asked, taken []Field) {
	if maps.Equal(is, was) {
		return nil, nil // as in nearly every write
	}
	for _, s := range list() {
		key := plan.Group + "/" + s.name
		if is[key] == was[key] {
			continue
		}
		r := s.read(is[key])
		asked, taken = append(asked, Field{s.name, r.asked}), append(taken, Field{s.name, r.taken})
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
		list = append(list, Field{from + printableName(name), changed[name]})
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

// clusterActs are those in a write to a cluster Secret: opting out, pinning, what makes it a cluster's or takes it out of
// Argo CD, and what takes it out of the planner's sight or brings it back. Of a Secret that is made, labels are no acts of their
// own.
func clusterActs(r Request, object, old Secret, maxReplicas int) (asked, taken []Field) {
	asked, taken = changedNotes(func() []steering { return onCluster(maxReplicas) }, object.Notes, old.told())
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
func sightChanges(object, old Secret) bool {
	return old.Cluster && object.Cluster && old.LeftOut != object.LeftOut
}

// told are the annotations that a webhook was asked about: none while the Secret was no cluster's.
func (s *Secret) told() map[string]string {
	if !s.Cluster {
		return nil
	}
	return s.Notes
}

// notePlanActs notes what a person's admitted write to the plan ConfigMap does. Judged pins are noted already.
func (v *Verdict) notePlanActs(object, old PlanObject) {
	if v.Denied != "" {
		return
	}
	if slices.ContainsFunc(v.Enforced, Field.isPin) {
		old.Pins = object.Pins
	}
	v.note(acts(object, old))
	v.warnMistyped(planSurface, object.Annotations, old.Annotations)
}

// noteUnlike notes the acts in a write by the planner's user that the planner never does: it tells of a trip, takes a
// rollback's request away when it is done, and leaves the rest to people. Whoever has its token acts in its name; so does it
// itself where it makes a ConfigMap anew that was deleted, which is noted, since nothing here tells it from a theft.
func (v *Verdict) noteUnlike(object, old PlanObject) {
	asked, taken := acts(object, old)
	own := func(f Field) bool {
		return f.Name == "tripped" || (f.Name == "rollback-to" || f.Name == "rebase") && f.Value == ""
	}
	v.note(slices.DeleteFunc(asked, own), slices.DeleteFunc(taken, own))
}

func (v *Verdict) note(asked, taken []Field) {
	v.Requested, v.Enforced = append(v.Requested, asked...), append(v.Enforced, taken...)
}

func (f Field) isPin() bool { return f.Name == fieldPins || strings.HasPrefix(f.Name, fieldPins+".") }

// isAct reports whether a field of what was enforced is a powerful act. It is asked of every write.
func (f Field) isAct() bool {
	switch f.Name {
	case "accept-discovery", "cordon", "enforcement", "paused", "rebase", "rollback-to", "tripped", "pin", fieldSecretType, fieldSelected, "unmanaged":
		return true
	}
	return f.isPin()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

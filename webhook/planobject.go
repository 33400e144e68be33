package webhook

import (
	"cmp"

	"ballast/planner/plan"
)

// PlanObject is what a decision needs of the plan ConfigMap.
type PlanObject struct {
	Immutable      bool
	HasData        bool
	HasPlan        bool
	Plan           string
	HasPins        bool
	Pins           string
	HasAnnotations bool
	Annotations    map[string]string // of ballast's group: its own, people's, and a few that are unknown
}

// decodePlanObject reads the plan ConfigMap, in which no value has more than so many bytes; an absent object is the
// zero PlanObject.
func decodePlanObject(object node, most int) (PlanObject, error) {
	var o PlanObject
	err := object.object("object")
	if err != nil || object.absent() {
		return o, err
	}
	var metadata, data node
	for key, value := range object.members {
		switch {
		case key.is("metadata"):
			metadata = value
		case key.is("data"):
			data = value
		case key.is("immutable"):
			o.Immutable = value.isTrue()
		}
	}
	if metadata.kind() != '{' {
		return PlanObject{}, errMalformed // annotations would have no place
	}
	if err := cmp.Or(o.readAnnotations(metadata.field("annotations")), o.readData(data, most)); err != nil {
		return PlanObject{}, err
	}
	return o, nil
}

func (o *PlanObject) readAnnotations(annotations node) error {
	if err := annotations.object("metadata.annotations"); err != nil || annotations.absent() {
		return err
	}
	o.HasAnnotations, o.Annotations = true, readNotes(annotations)
	return nil
}

func (o *PlanObject) readData(data node, most int) error {
	err := data.object("data")
	if err != nil {
		return err
	}
	o.HasData = !data.absent()
	var text, pins node
	for key, value := range data.members {
		switch {
		case key.is(plan.KeyPlan):
			text = value
		case key.is(plan.KeyPins):
			pins = value
		}
	}
	o.HasPlan, o.Plan = !text.absent(), text.text(most)
	o.HasPins, o.Pins = !pins.absent(), pins.text(most)
	return nil
}

func (o *PlanObject) breakGlass() bool { return o.Annotations[plan.AnnotationEnforcement] == "off" }

// whole reports whether data.plan is what its digest was made of.
func (o *PlanObject) whole() bool {
	return o.Plan != "" && plan.Digest(o.Plan) == o.Annotations[plan.AnnotationDigest]
}

// stored is the plan that the old object holds; nil where it holds none, or a broken one.
func (s *State) stored(old PlanObject) *Stored {
	if k := s.Kept; k != nil && k.Text == old.Plan && k.Annotations[plan.AnnotationDigest] == old.Annotations[plan.AnnotationDigest] {
		return &Stored{old.Plan, pick(old.Annotations), k.Plan} // its digest was compared when it came
	}
	if !old.whole() {
		return nil
	}
	p, err := plan.Decode(old.Plan)
	if err != nil {
		return nil
	}
	return &Stored{old.Plan, pick(old.Annotations), &p}
}

package webhook

import (
	"cmp"

	"ballast/planner/plan"
	"ballast/webhook/inforce"
	"ballast/webhook/rawjson"
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
func decodePlanObject(object rawjson.Node, most int) (PlanObject, error) {
	var o PlanObject
	err := object.ObjectOrAbsent("object")
	if err != nil || object.Absent() {
		return o, err
	}
	var metadata, data rawjson.Node
	for key, value := range object.Members {
		switch {
		case key.Is("metadata"):
			metadata = value
		case key.Is("data"):
			data = value
		case key.Is("immutable"):
			o.Immutable = value.True()
		}
	}
	if metadata.Kind() != '{' {
		return PlanObject{}, rawjson.ErrMalformed // annotations would have no place
	}
	if err := cmp.Or(o.readAnnotations(metadata.Field("annotations")), o.readData(data, most)); err != nil {
		return PlanObject{}, err
	}
	return o, nil
}

func (o *PlanObject) readAnnotations(annotations rawjson.Node) error {
	if err := annotations.ObjectOrAbsent("metadata.annotations"); err != nil || annotations.Absent() {
		return err
	}
	o.HasAnnotations, o.Annotations = true, readNotes(annotations)
	return nil
}

func (o *PlanObject) readData(data rawjson.Node, most int) error {
	err := data.ObjectOrAbsent("data")
	if err != nil {
		return err
	}
	o.HasData = !data.Absent()
	var text, pins rawjson.Node
	for key, value := range data.Members {
		switch {
		case key.Is(plan.KeyPlan):
			text = value
		case key.Is(plan.KeyPins):
			pins = value
		}
	}
	o.HasPlan, o.Plan = !text.Absent(), text.Text(most)
	o.HasPins, o.Pins = !pins.Absent(), pins.Text(most)
	return nil
}

func (o *PlanObject) breakGlass() bool { return o.Annotations[plan.AnnotationEnforcement] == "off" }

// whole reports whether data.plan is what its digest was made of.
func (o *PlanObject) whole() bool {
	return o.Plan != "" && plan.Digest(o.Plan) == o.Annotations[plan.AnnotationDigest]
}

// stored is the plan that the old object holds; nil where it holds none, or a broken one.
func stored(s *inforce.State, old PlanObject) *inforce.Stored {
	if k := s.Kept; k != nil && k.Text == old.Plan && k.Annotations[plan.AnnotationDigest] == old.Annotations[plan.AnnotationDigest] {
		return &inforce.Stored{Text: old.Plan, Annotations: inforce.PlannersOf(old.Annotations), Plan: k.Plan} // its digest was compared when it came
	}
	if !old.whole() {
		return nil
	}
	p, err := plan.Decode(old.Plan)
	if err != nil {
		return nil
	}
	return &inforce.Stored{Text: old.Plan, Annotations: inforce.PlannersOf(old.Annotations), Plan: &p}
}

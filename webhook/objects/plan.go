package objects

import (
	"cmp"

	"ballast/planner/plan"
	"ballast/webhook/rawjson"
)

// Plan is what a decision needs of the plan ConfigMap.
type Plan struct {
	Immutable      bool
	HasData        bool
	HasPlan        bool
	Plan           string
	HasPins        bool
	Pins           string
	HasAnnotations bool
	Annotations    map[string]string // of ballast's group: its own, people's, and a few that are unknown
}

// DecodePlan reads the plan ConfigMap, in which no value has more than so many bytes; an absent object is the
// zero Plan.
func DecodePlan(object rawjson.Node, most int) (Plan, error) {
	var o Plan
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
		return Plan{}, rawjson.ErrMalformed // annotations would have no place
	}
	if err := cmp.Or(o.readAnnotations(metadata.Field("annotations")), o.readData(data, most)); err != nil {
		return Plan{}, err
	}
	return o, nil
}

func (o *Plan) readAnnotations(annotations rawjson.Node) error {
	if err := annotations.ObjectOrAbsent("metadata.annotations"); err != nil || annotations.Absent() {
		return err
	}
	o.HasAnnotations, o.Annotations = true, Notes(annotations)
	return nil
}

func (o *Plan) readData(data rawjson.Node, most int) error {
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

// BreakGlass reports whether people switched enforcement off.
func (o *Plan) BreakGlass() bool { return o.Annotations[plan.AnnotationEnforcement] == "off" }

// Whole reports whether data.plan is what its digest was made of.
func (o *Plan) Whole() bool {
	return o.Plan != "" && plan.Digest(o.Plan) == o.Annotations[plan.AnnotationDigest]
}

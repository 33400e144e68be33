package objects

import (
	"fmt"

	"ballast/webhook/rawjson"
)

// Scale is what a decision needs of an autoscaling/v1 Scale. An absent spec.replicas is 0: the field is omitted then.
type Scale struct {
	HasSpec     bool
	HasReplicas bool
	Replicas    int
}

// DecodeScale reads a scale.
func DecodeScale(object rawjson.Node) (Scale, error) {
	var s Scale
	err := object.ObjectOrAbsent("object")
	if err != nil {
		return s, err
	}
	spec := object.Field("spec")
	if err := spec.ObjectOrAbsent("spec"); err != nil {
		return s, err
	}
	s.HasSpec = !spec.Absent()
	replicas := spec.Field("replicas")
	if s.HasReplicas = !replicas.Absent(); s.HasReplicas {
		if s.Replicas, err = wholeNumber("spec.replicas", replicas); err != nil {
			return Scale{}, err
		}
	}
	return s, nil
}

func wholeNumber(what string, value rawjson.Node) (int, error) {
	n, ok := value.Integer()
	if !ok {
		return 0, fmt.Errorf("reading %q: %w", what, rawjson.ErrMalformed)
	}
	return n, nil
}

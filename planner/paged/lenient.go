package paged

import (
	"encoding/json"

	"k8s.io/utils/ptr"
)

// Lenient is a field of somebody else's object that may be of any type: what is no T is absent.
type Lenient[T any] struct{ value *T }

// UnmarshalJSON has no error: what is no T is absent.
func (l *Lenient[T]) UnmarshalJSON(data []byte) error {
	var value T
	if json.Unmarshal(data, &value) == nil {
		l.value = &value
	}
	return nil
}

// Or is the field's value, or another where it is absent.
func (l Lenient[T]) Or(otherwise T) T { return ptr.Deref(l.value, otherwise) }

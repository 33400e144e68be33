// Package lenient decodes what somebody else's objects say, where one field of a wrong type must not keep the others
// from being read.
package lenient

import (
	"encoding/json"

	"k8s.io/utils/ptr"
)

// Field is a field of somebody else's object that may be of any type: what is no T is absent.
type Field[T any] struct{ value *T }

// UnmarshalJSON has no error: what is no T is absent.
func (f *Field[T]) UnmarshalJSON(data []byte) error {
	var value T
	if json.Unmarshal(data, &value) == nil {
		f.value = &value
	}
	return nil
}

// Or is the field's value, or another where it is absent.
func (f Field[T]) Or(otherwise T) T { return ptr.Deref(f.value, otherwise) }

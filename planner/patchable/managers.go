// Package patchable knows what the API server can write as JSON: which managedFields, times and texts keep an object
// from being patched.
package patchable

import (
	"encoding/json"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Meta is the metadata of a merge patch of an object that others write too. ManagedFields is FewManagers of the object
// as it was read: the API server may take no patch that keeps what others brought.
type Meta struct {
	// UID and ResourceVersion name the state that the patch holds for; the API server refuses it for any other.
	UID             types.UID          `json:"uid,omitempty"`
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"` // nil takes one away
	ManagedFields   []struct{}         `json:"managedFields,omitempty"`
}

// MergePatch is the patch of the metadata alone.
func (m Meta) MergePatch() ([]byte, error) {
	return json.Marshal(map[string]Meta{"metadata": m})
}

// What metadata.managedFields of an object that others write may have before ballast writes it without them. The API
// server merges all of them with each write: a thousand of server-side apply take twenty seconds of it, as do sixty of
// 20 KB each, and more are a write that nobody can make.
const (
	mostManagers     = 64
	mostManagedBytes = 64 << 10
)

// FewManagers is the managedFields of a merge patch: none where the object has few and each can be read back, else the
// one empty entry by which the API server forgets all.
func FewManagers(found []metav1.ManagedFieldsEntry) []struct{} {
	bytes := 0
	for _, e := range found {
		if e.FieldsV1 != nil {
			bytes += len(e.FieldsV1.GetRawBytes())
		}
	}
	few := len(found) <= mostManagers && bytes <= mostManagedBytes
	if few && !Unpatchable(found) {
		return nil
	}
	return []struct{}{{}}
}

// Unpatchable reports whether a manager has a time that JSON does not have, or a name that is no text. The API server
// stores the first as a number, writes it with five digits of a year or a sign, and reads neither, and makes three
// bytes of each that is no text: it patches the object no more, whoever asks, but for a patch that starts managedFields
// anew.
func Unpatchable(found []metav1.ManagedFieldsEntry) bool {
	for _, e := range found {
		texts := utf8.ValidString(e.Manager) && utf8.ValidString(e.APIVersion) && utf8.ValidString(e.Subresource)
		if !texts || e.Time != nil && BeyondJSON(e.Time.Time) {
			return true
		}
	}
	return false
}

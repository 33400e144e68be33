package plan

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// What metadata.managedFields of an object that others write may have before ballast writes it without them. The API
// server merges all of them with each write: a thousand of server-side apply take twenty seconds of it, as do sixty of
// 20 KB each, and more are a write that nobody can make.
const (
	mostManagers     = 64
	mostManagedBytes = 64 << 10
)

// FewManagers is the managedFields of a merge patch: none where the object has few, else the one empty entry by which
// the API server forgets all.
func FewManagers(found []metav1.ManagedFieldsEntry) []struct{} {
	bytes := 0
	for _, e := range found {
		if e.FieldsV1 != nil {
			bytes += len(e.FieldsV1.GetRawBytes())
		}
	}
	if len(found) <= mostManagers && bytes <= mostManagedBytes {
		return nil
	}
	return []struct{}{{}}
}

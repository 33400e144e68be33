package plan

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// mostManagers is how many entries of metadata.managedFields an object that others write may have before ballast writes it without
// them. The API server merges all of them with each write: a thousand of server-side apply take twenty seconds of it, and
// two thousand are a write that nobody can make.
const mostManagers = 64

// FewManagers is the managedFields of a merge patch: none where the object has few, else the one empty entry by which the API server
// forgets all.
func FewManagers(found []metav1.ManagedFieldsEntry) []struct{} {
	if len(found) <= mostManagers {
		return nil
	}
	return []struct{}{{}}
}

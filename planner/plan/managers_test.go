package plan

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestManagersAreForgottenByNumberAndByBytes(t *testing.T) {
	some := func(n, bytes int) (found []metav1.ManagedFieldsEntry) {
		for range n {
			found = append(found, metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", bytes))})
		}
		return found
	}
	for name, test := range map[string]struct {
		found   []metav1.ManagedFieldsEntry
		forgets bool
	}{
		"none": {nil, false}, "64": {some(64, 100), false}, "65": {some(65, 0), true}, "without fields": {make([]metav1.ManagedFieldsEntry, 2), false},
		"64 KiB": {some(2, 32<<10), false}, "a byte more": {some(1, 64<<10+1), true}, "ten of 116 KB": {some(10, 116_000), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FewManagers(test.found); (got != nil) != test.forgets || len(got) > 1 {
				t.Errorf("%v, want that they are forgotten: %t", got, test.forgets)
			}
		})
	}
}

package gitops

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"ballast/cmd/ballast/fixture"
)

// What anybody may have written is read without a crash.
func TestWhateverMarksSayIsRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := func() string { return fixture.Hostile(r) }
		for _, m := range marks() {
			marked := map[string]string{m.key: text()}
			if by := TrackedBy(metav1.ObjectMeta{Labels: marked, Annotations: marked}); strings.ContainsAny(by.Said, "\n\x1b") {
				r.Errorf("%q is told as it is", by.Said)
			}
		}
		WritersOf([]metav1.ManagedFieldsEntry{{Manager: text(), FieldsV1: metav1.NewFieldsV1(text())}}, "f:data")
	})
}

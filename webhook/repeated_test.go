package webhook

import (
	"strings"
	"testing"
)

const manyNotes = 243 << 10 // bytes: a body that the budget of small ones takes

// TestAReviewsRepeatedKeyIsReadOnce, too.
func TestAReviewsRepeatedKeyIsReadOnce(t *testing.T) {
	const limit = 32
	for name, entry := range map[string]string{
		"uid": `"uid":"a",`, "name": `"name":"a",`, "namespace": `"namespace":"a",`, "operation": `"operation":"UPDATE",`,
		"userInfo": `"userInfo":{"username":"a"},`, "resource": `"resource":{"group":"apps","resource":"statefulsets"},`,
	} {
		body := `{"apiVersion":"admission.k8s.io/v1","request":{` + strings.Repeat(entry, manyNotes/len(entry)) + `"uid":"last"}}`
		if n := testing.AllocsPerRun(2, func() { _, _ = parseReview([]byte(body)) }); n > limit {
			t.Errorf("%s: %d bytes are read with %.0f allocations, want at most %d", name, len(body), n, limit)
		}
		if rv, err := parseReview([]byte(body)); err != nil || rv.uid != "last" {
			t.Errorf("%s: uid %q, error %v", name, rv.uid, err)
		}
	}
}

package webhook

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"ballast/webhook/intake"
)

// TestNoAnswerTakesMoreThanItsWeight, whatever characters are to be put back: of some an answer makes six.
func TestNoAnswerTakesMoreThanItsWeight(t *testing.T) {
	h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
	for name, size := range map[string][2]int{"annotations": {0, 250 << 10}, "a plan": {160 << 10, 0}, "the largest plan": {intake.StoredLimit - 1, 0}, "both": {intake.StoredLimit - 1, 250 << 10}} {
		for _, character := range []string{"x", "\x01", "\u2028", "<", `\u0001`, `\n`} {
			body := putBack(size[0], size[1], character)
			rv, err := parseReview([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			weight := rv.weight(nil)
			answer := httptest.NewRecorder()
			request := httptest.NewRequest(http.MethodPost, "/plan", strings.NewReader(body))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			h.ServeHTTP(answer, request)
			runtime.ReadMemStats(&after)
			// The body is the intake's; the recorder's copy of the answer and the small things are the test's.
			took := int64(after.TotalAlloc-before.TotalAlloc) - int64(len(body)) - 2*int64(answer.Body.Cap()) - 1<<20
			if took > weight {
				t.Errorf("%s of %q: %.1f MiB were taken, and it weighs %.1f; the answer has %.1f", name, character, float64(took)/(1<<20), float64(weight)/(1<<20), float64(answer.Body.Len())/(1<<20))
			}
		}
	}
}

package serve

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHealthSaysWhatItWaitsFor(t *testing.T) {
	type answer struct {
		Code int
		Body string
	}
	waits := func(*http.Request) error { return errors.New("the plan ConfigMap was not listed yet") }
	late := func(*http.Request) error { return errors.New("no cycle has ended for 10m0s") }
	fine := func(*http.Request) error { return nil }
	for name, tc := range map[string]struct {
		live, ready Checks
		path        string
		want        answer
	}{
		"live while it waits":     {nil, Checks{"plan": waits}, "/healthz", answer{http.StatusOK, "ok\n"}},
		"unready while one waits": {nil, Checks{"a": fine, "plan": waits}, "/readyz", answer{http.StatusServiceUnavailable, "the plan ConfigMap was not listed yet\n"}},
		"ready when none does":    {nil, Checks{"a": fine, "b": fine}, "/readyz", answer{http.StatusOK, "ok\n"}},
		"all that it waits for":   {nil, Checks{"cycles": late, "plan": waits}, "/readyz", answer{http.StatusServiceUnavailable, "no cycle has ended for 10m0s\nthe plan ConfigMap was not listed yet\n"}},
		"one check alone":         {nil, Checks{"cycles": late, "plan": waits}, "/readyz/plan", answer{http.StatusServiceUnavailable, "the plan ConfigMap was not listed yet\n"}},
		"not live":                {Checks{"cycles": late}, Checks{"plan": fine}, "/healthz", answer{http.StatusServiceUnavailable, "no cycle has ended for 10m0s\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			HealthHandler(tc.live, tc.ready).ServeHTTP(w, httptest.NewRequest(http.MethodGet, tc.path, nil))
			if diff := cmp.Diff(tc.want, answer{w.Code, w.Body.String()}); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

package repair

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/planner/apply"
	"ballast/planner/controller/wiring"
	"ballast/planner/diff"
	"ballast/planner/sim"
)

// TestWhatBarsASecret: three refusals in a row by the API server, and nothing else; one that was gone when it was to be written may be
// made anew, and is written then.
func TestWhatBarsASecret(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	forbidden := apply.Result{Outcome: apply.Failed, Err: apierrors.NewForbidden(secrets, "a", errors.New("a policy"))}
	conflict := apply.Result{Outcome: apply.Failed, Err: apierrors.NewConflict(secrets, "a", errors.New("it changed"))}
	away := apply.Result{Outcome: apply.Failed, Err: errors.New("the API server is away")}
	full := apply.Result{Outcome: apply.Failed, Err: fmt.Errorf("writing: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request is too large"}})}
	gone := apply.Result{Outcome: apply.Refused, Err: errors.New("it is gone")}
	applied, deferred := apply.Result{Outcome: apply.Applied}, apply.Result{Outcome: apply.Deferred}
	for name, test := range map[string]struct {
		results []apply.Result
		barred  bool
	}{
		"two refusals":              {[]apply.Result{forbidden, forbidden}, false},
		"three":                     {[]apply.Result{forbidden, conflict, forbidden}, true},
		"etcd takes no more of it":  {[]apply.Result{full, full, full}, true},
		"three, with waits between": {[]apply.Result{forbidden, deferred, forbidden, away, forbidden}, true},
		"it was written meanwhile":  {[]apply.Result{forbidden, forbidden, applied, forbidden}, false},
		"the API server is away":    {[]apply.Result{away, away, away, away}, false},
		"it is gone, or people's":   {[]apply.Result{gone, gone, gone}, false},
		"it was refused, and went":  {[]apply.Result{forbidden, forbidden, forbidden, gone}, false},
	} {
		t.Run(name, func(t *testing.T) {
			refused := newRefusals(&wiring.Options{Clock: clocktesting.NewFakeClock(sim.Epoch)})
			for _, r := range test.results {
				r.Step = diff.PatchShard{Secret: "a"}
				refused.note(r)
			}
			if diff := cmp.Diff(test.barred, refused.Now()["a"] != ""); diff != "" {
				t.Errorf("barred %v (-want +got):\n%s", refused.Now(), diff)
			}
		})
	}
}

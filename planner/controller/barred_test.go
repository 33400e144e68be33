package controller

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/planner/rollout"
)

// TestWhatBarsASecret: three refusals in a row by the API server, and nothing else; one that was gone when it was to be written may be
// made anew, and is written then.
func TestWhatBarsASecret(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	forbidden := rollout.Result{Outcome: rollout.Failed, Err: apierrors.NewForbidden(secrets, "a", errors.New("a policy"))}
	conflict := rollout.Result{Outcome: rollout.Failed, Err: apierrors.NewConflict(secrets, "a", errors.New("it changed"))}
	away := rollout.Result{Outcome: rollout.Failed, Err: errors.New("the API server is away")}
	gone := rollout.Result{Outcome: rollout.Refused, Err: errors.New("it is gone")}
	applied, deferred := rollout.Result{Outcome: rollout.Applied}, rollout.Result{Outcome: rollout.Deferred}
	for name, test := range map[string]struct {
		results []rollout.Result
		barred  bool
	}{
		"two refusals":              {[]rollout.Result{forbidden, forbidden}, false},
		"three":                     {[]rollout.Result{forbidden, conflict, forbidden}, true},
		"three, with waits between": {[]rollout.Result{forbidden, deferred, forbidden, away, forbidden}, true},
		"it was written meanwhile":  {[]rollout.Result{forbidden, forbidden, applied, forbidden}, false},
		"the API server is away":    {[]rollout.Result{away, away, away, away}, false},
		"it is gone, or people's":   {[]rollout.Result{gone, gone, gone}, false},
		"it was refused, and went":  {[]rollout.Result{forbidden, forbidden, forbidden, gone}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLoop(Options{Clock: clocktesting.NewFakeClock(epoch)})
			for _, r := range test.results {
				r.Step = rollout.PatchShard{Secret: "a"}
				l.noteBarred(r)
			}
			if diff := cmp.Diff(test.barred, l.whoIsBarred()["a"] != ""); diff != "" {
				t.Errorf("barred %v (-want +got):\n%s", l.whoIsBarred(), diff)
			}
		})
	}
}

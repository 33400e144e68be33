package repair

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/planner/apply"
	"ballast/planner/controller/wiring"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/sim"
	"ballast/planner/telemetry"
)

func TestPeopleAreToldOnceOfASizeThatIsNotGiven(t *testing.T) {
	var told []string
	n := &sizeNews{Options: &wiring.Options{Emit: func(_ discover.Workload, events ...telemetry.Event) {
		for _, e := range events {
			told = append(told, e.Reason+": "+e.Message)
		}
	}}}
	takes := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		told = nil
	}
	misfit := func(pod, words string) diff.Held { return diff.Held{Reason: diff.HeldMisfit, Pod: pod, Words: words} }
	n.tell(discover.Workload{}, []diff.Held{misfit("c-0", "so"), misfit("c-1", "so"), {Secret: "a"}, {Reason: diff.HeldUnmanaged, Pod: "c-2"}})
	takes(`SizeHeld: pod "c-0" is left at its size: so; pod "c-1" is left at its size: so`)
	n.tell(discover.Workload{}, []diff.Held{misfit("c-0", "so"), misfit("c-1", "otherwise")})
	takes(`SizeHeld: pod "c-1" is left at its size: otherwise`)
	n.tell(discover.Workload{}, []diff.Held{misfit("", "so"), misfit("c-1", "otherwise"), {Secret: "a", Reason: diff.HeldUnsized}})
	takes("SizeHeld: the pod template is left at its size: so")
	n.tell(discover.Workload{}, nil)
	n.tell(discover.Workload{}, []diff.Held{misfit("c-0", "so")})
	takes(`SizeHeld: pod "c-0" is left at its size: so`)

	result := func(outcome apply.Outcome, err error) apply.Result {
		return apply.Result{Step: diff.PatchPod{Pod: "c-0"}, Outcome: outcome, Err: err}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "c-0", errors.New("quota"))
	for _, r := range []apply.Result{result(apply.Failed, forbidden), result(apply.Deferred, nil), result(apply.Failed, forbidden), result(apply.Refused, errors.New("it is gone")),
		result(apply.Refused, apply.ErrNoResize), result(apply.Applied, nil), result(apply.Failed, errors.New("away")), {Step: diff.PatchShard{Secret: "c-0"}, Outcome: apply.Failed, Err: forbidden}} {
		n.note(discover.Workload{}, r)
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], `SizeRefused: pod "c-0" cannot be given its size in place: Forbidden`) ||
		!strings.HasPrefix(told[1], `SizeRefused: pod "c-0" cannot be given`) || !strings.Contains(told[1], "has no pods/resize") {
		t.Errorf("told %q", told)
	}
}

func TestAPodThatIsRefusedItsSizeIsNoSecret(t *testing.T) {
	refusals := newRefusals(&wiring.Options{Clock: clocktesting.NewFakeClock(sim.Epoch)})
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("quota"))
	for range 4 {
		refusals.note(apply.Result{Step: diff.PatchPod{Pod: "a"}, Outcome: apply.Failed, Err: forbidden})
	}
	if got := refusals.Now(); got != nil {
		t.Errorf("Secrets %v are barred", got)
	}
	if got := refusals.Pods(); len(got) != 1 || !strings.HasPrefix(got["a"], "Forbidden") {
		t.Errorf("pods %v", got)
	}
	if got := refusals.Roomless(); got != nil {
		t.Errorf("pods %v have no room, by a quota", got)
	}
	capacity := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("node didn't have enough allocatable resources"))
	capacity.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NodeCapacity"}}
	refusals.note(apply.Result{Step: diff.PatchPod{Pod: "a"}, Outcome: apply.Failed, Err: fmt.Errorf("sizing: %w", capacity)})
	if got := refusals.Roomless(); !got["a"] || len(got) != 1 {
		t.Errorf("pods %v have no room, want a", got)
	}
	refusals.note(apply.Result{Step: diff.PatchPod{Pod: "a"}, Outcome: apply.Applied})
	if got := refusals.Roomless(); got != nil {
		t.Errorf("pods %v have no room, after it was sized", got)
	}
	if got := refusals.Pods(); got != nil {
		t.Errorf("pods %v, after it was sized", got)
	}
}

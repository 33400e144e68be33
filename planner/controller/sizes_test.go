package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/planner/apply"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/telemetry"
)

func TestWhetherPodsCanBeSizedIsAskedOnceAnHour(t *testing.T) {
	clock, asked := clocktesting.NewFakeClock(epoch), 0
	var has bool
	var fails error
	a := &asker{Options: &Options{Clock: clock, Log: logr.Discard(), Resizes: func(context.Context) (bool, error) { asked++; return has, fails }}}
	is := func() string {
		switch got := a.resizes(t.Context()); {
		case got == nil:
			return "unknown"
		case *got:
			return "yes"
		}
		return "no"
	}
	step := func(after time.Duration, nowHas bool, err error) string {
		clock.Step(after)
		has, fails = nowHas, err
		return is()
	}
	got := []string{step(0, false, errors.New("away")), step(time.Second, false, nil), step(time.Minute, true, nil), step(time.Hour, true, errors.New("away")), step(time.Second, true, nil)}
	if diff := cmp.Diff([]string{"unknown", "no", "no", "no", "yes"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked != 4 {
		t.Errorf("asked %d times", asked)
	}
	if (&asker{Options: &Options{}}).resizes(t.Context()) != nil {
		t.Error("nobody was asked, and something is known")
	}
}

func TestPeopleAreToldOnceOfASizeThatIsNotGiven(t *testing.T) {
	var told []string
	n := &sizeNews{Options: &Options{Emit: func(_ discover.Workload, events ...telemetry.Event) {
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
	l := NewLoop(Options{Clock: clocktesting.NewFakeClock(epoch)})
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("quota"))
	for range 4 {
		l.refused.note(apply.Result{Step: diff.PatchPod{Pod: "a"}, Outcome: apply.Failed, Err: forbidden})
	}
	if got := l.refused.now(); got != nil {
		t.Errorf("Secrets %v are barred", got)
	}
	if got := l.refused.pods(); len(got) != 1 || !strings.HasPrefix(got["a"], "Forbidden") {
		t.Errorf("pods %v", got)
	}
	if got := l.refused.roomless(); got != nil {
		t.Errorf("pods %v have no room, by a quota", got)
	}
	capacity := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("node didn't have enough allocatable resources"))
	capacity.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NodeCapacity"}}
	l.refused.note(apply.Result{Step: diff.PatchPod{Pod: "a"}, Outcome: apply.Failed, Err: fmt.Errorf("sizing: %w", capacity)})
	if got := l.refused.roomless(); !got["a"] || len(got) != 1 {
		t.Errorf("pods %v have no room, want a", got)
	}
	l.refused.note(apply.Result{Step: diff.PatchPod{Pod: "a"}, Outcome: apply.Applied})
	if got := l.refused.roomless(); got != nil {
		t.Errorf("pods %v have no room, after it was sized", got)
	}
	if got := l.refused.pods(); got != nil {
		t.Errorf("pods %v, after it was sized", got)
	}
}

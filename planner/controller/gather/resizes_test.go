package gather

import (
	"context"
	"errors"
	"testing"
	"time"

	"ballast/planner/controller/wiring"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestWhetherPodsCanBeSizedIsAskedOnceAnHour(t *testing.T) {
	clock, asked := clocktesting.NewFakeClock(epoch), 0
	var has bool
	var fails error
	a := &Asker{Options: &wiring.Options{Clock: clock, Log: logr.Discard(), Resizes: func(context.Context) (bool, error) { asked++; return has, fails }}}
	is := func() string {
		switch got := a.CanResize(t.Context()); {
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
	if (&Asker{Options: &wiring.Options{}}).CanResize(t.Context()) != nil {
		t.Error("nobody was asked, and something is known")
	}
}

package planner

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/rollout"
)

// TestNoPodsFiguresKeepTheHistoryFromBeingWritten: what a pod says it did goes into the memory when a wave begins, and
// JSON has no infinite number.
func TestNoPodsFiguresKeepTheHistoryFromBeingWritten(t *testing.T) {
	most := func(servers ...string) map[string]ownership.ServerReport {
		reports := map[string]ownership.ServerReport{}
		for _, s := range servers {
			reports[s] = ownership.ServerReport{Reconciles: math.MaxFloat64, Seconds: math.MaxFloat64}
		}
		return reports
	}
	full := change.Work{Reconciles: 2 * maxReconciles, Seconds: math.MaxFloat64}
	for name, tc := range map[string]struct {
		work map[int]ServerWork
		want map[int]change.Work
	}{
		"of two pods of a replica": {workOf([]ownership.PodReport{
			{Controller: ownership.Controller{Pod: rollout.Pod{Name: "a"}}, Servers: most("https://a")},
			{Controller: ownership.Controller{Pod: rollout.Pod{Name: "b"}}, Servers: most("https://a")},
		}), map[int]change.Work{0: full}},
		"of two servers": {workOf([]ownership.PodReport{
			{Servers: most("https://a", "https://b")},
		}), map[int]change.Work{0: full}},
		"as a saved input has them": {map[int]ServerWork{
			0: {"https://a": {Reconciles: 1, Seconds: math.Inf(1)}}, 1: {"https://a": {Reconciles: 1, Seconds: math.NaN()}},
		}, map[int]change.Work{0: {Reconciles: 1, Seconds: math.MaxFloat64}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cycle{in: Inputs{Observed: Observed{Work: tc.work}}}
			began := c.signs(nil)
			if diff := cmp.Diff(tc.want, began.Work); diff != "" {
				t.Errorf("work (-want +got):\n%s", diff)
			}
			m := Memory{Changes: Changes{Began: began, Trip: &change.Trip{Reason: change.Orphaned, Why: "it tripped"}}}
			parts, stale := m.Parts(nil)
			back, dropped := MemoryOf(parts)
			if len(stale)+len(dropped) > 0 || back.Changes.Trip == nil {
				t.Errorf("stale %v, dropped %v; the next leader knows of the trip: %v", stale, dropped, back.Changes.Trip)
			}
		})
	}
}

// TestPeopleAreToldOnceOfWhatCannotBePacked, and again where it comes back.
func TestPeopleAreToldOnceOfWhatCannotBePacked(t *testing.T) {
	var told []string
	emit := func(_ discover.Workload, events ...Event) {
		for _, e := range events {
			told = append(told, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		}
	}
	l := &Loop{Options: Options{Log: logr.Discard(), Emit: emit}}
	failure := errors.New("packing what is known of moves: no number")
	for _, stale := range []error{nil, failure, failure, nil, failure} {
		l.tellStale(stale)
	}
	said := "Warning HistoryStale: a part of the history cannot be written and stays as it was, " +
		"which the next leader goes by; please report it: packing what is known of moves: no number"
	if diff := cmp.Diff([]string{said, said}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

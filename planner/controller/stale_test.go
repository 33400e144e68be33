package controller

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership/podlist"
	"ballast/planner/ownership/scrape"
	"ballast/planner/telemetry"
)

// TestPeopleAreToldOnceOfWhatCannotBePacked, and again where it comes back.
func TestPeopleAreToldOnceOfWhatCannotBePacked(t *testing.T) {
	var told []string
	emit := func(_ discover.Workload, events ...telemetry.Event) {
		for _, e := range events {
			told = append(told, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		}
	}
	l := NewLoop(Options{Log: logr.Discard(), Emit: emit})
	failure := errors.New("packing what is known of moves: no number")
	for _, stale := range []error{nil, failure, failure, nil, failure} {
		l.archive.tellStale(stale)
	}
	said := "Warning HistoryStale: a part of the history cannot be written and stays as it was, " +
		"which the next leader goes by; please report it: packing what is known of moves: no number"
	if diff := cmp.Diff([]string{said, said}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatPodsSayTheyDidIsBounded, of two pods of a replica, too.
func TestWhatPodsSayTheyDidIsBounded(t *testing.T) {
	most := map[string]scrape.ServerReport{"https://a": {Reconciles: math.MaxFloat64, Seconds: math.MaxFloat64}}
	got := workOf([]scrape.PodReport{
		{Controller: podlist.Controller{Pod: observed.Pod{Name: "a"}}, Servers: most},
		{Controller: podlist.Controller{Pod: observed.Pod{Name: "b"}}, Servers: most},
	})
	if diff := cmp.Diff(map[int]input.ServerWork{0: {"https://a": {Reconciles: 2 * maxReconciles, Seconds: math.MaxFloat64}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

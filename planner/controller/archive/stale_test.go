package archive

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"ballast/planner/controller/wiring"
	"ballast/planner/discover"
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
	a := &Archive{Options: &wiring.Options{Log: logr.Discard(), Emit: emit}}
	failure := errors.New("packing what is known of moves: no number")
	for _, stale := range []error{nil, failure, failure, nil, failure} {
		a.tellStale(stale)
	}
	said := "Warning HistoryStale: a part of the history cannot be written and stays as it was, " +
		"which the next leader goes by; please report it: packing what is known of moves: no number"
	if diff := cmp.Diff([]string{said, said}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package gather

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/ownership/scrape"
)

// TestNoCycleWaitsForAListing of Applications that lasts: the last numbers stand while it goes on, for half an hour; then, and of a cluster that
// they do not have, nobody knows. What it finds is taken by the cycle after.
func TestNoCycleWaitsForAListing(t *testing.T) {
	w := newWorld(1)
	w.add("c001", 1)
	fleet := discover.All(w.in.Discovered, epoch)
	clock := testingclock.NewFakeClock(epoch)
	lists := make(chan ownership.Applications, 1)
	var asked atomic.Int32
	o := Observer{Clock: clock, waits: 10 * time.Millisecond,
		Count: func(ctx context.Context, _ string, _ discover.Fleet, _ time.Duration) (ownership.Applications, time.Time, error) {
			asked.Add(1)
			if until, is := ctx.Deadline(); !is || time.Until(until) > listsFor {
				t.Errorf("it may last until %s (%t)", until, is)
			}
			select {
			case found := <-lists:
				return found, epoch, nil
			case <-ctx.Done():
				return nil, time.Time{}, context.Cause(ctx)
			}
		}}
	look := func(after time.Duration, first, second int, fails bool) {
		t.Helper()
		clock.SetTime(epoch.Add(after))
		reported, err := o.reported(t.Context(), "argocd", nil, fleet)
		if got := reported.Clusters; got["c000"].Apps != first || got["c001"].Apps != second || (err != nil) != fails {
			t.Errorf("after %s: %d and %d Applications, %v; want %d and %d", after, got["c000"].Apps, got["c001"].Apps, err, first, second)
		}
	}
	o.waits = time.Hour
	lists <- ownership.Applications{server("c000"): 0}
	look(0, 0, ownership.Unknown, false)
	o.waits = 10 * time.Millisecond
	look(time.Minute, 0, ownership.Unknown, false)
	look(29*time.Minute, 0, ownership.Unknown, false)
	look(30*time.Minute, ownership.Unknown, ownership.Unknown, true)
	if n := asked.Load(); n != 2 {
		t.Errorf("%d listings were begun, want the one that ended and the one that goes on", n)
	}
	o.waits = time.Hour
	lists <- ownership.Applications{server("c000"): 0, server("c001"): 0}
	look(31*time.Minute, 0, 0, false)
}

// TestAListingThatIsRefusedSaysSo at once, whatever stood before.
func TestAListingThatIsRefusedSaysSo(t *testing.T) {
	fleet, away := discover.All(newWorld(1).in.Discovered, epoch), errors.New("forbidden")
	before := asked{last: counted{namespace: "argocd", of: ownership.Applications{server("c000"): 0}, at: epoch}}
	o := Observer{Clock: testingclock.NewFakeClock(epoch), all: before,
		Count: func(context.Context, string, discover.Fleet, time.Duration) (ownership.Applications, time.Time, error) {
			return nil, time.Time{}, away
		}}
	reported, err := o.reported(t.Context(), "argocd", nil, fleet)
	if !errors.Is(err, away) || reported.Clusters["c000"].Apps != ownership.Unknown {
		t.Errorf("%d Applications, %v", reported.Clusters["c000"].Apps, err)
	}
}

// TestWhoIsByNameAloneStandsWhileAListingLasts: it went with each cycle whose listing took longer than a cycle waits, and the cluster counted
// as nobody's.
func TestWhoIsByNameAloneStandsWhileAListingLasts(t *testing.T) {
	fleet, clock := discover.All(newWorld(1).in.Discovered, epoch), testingclock.NewFakeClock(epoch)
	byServer := make(chan ownership.Applications, 1)
	o := Observer{Clock: clock, waits: time.Hour,
		Count: func(context.Context, string, discover.Fleet, time.Duration) (ownership.Applications, time.Time, error) {
			return ownership.Applications{server("c000"): 3}, clock.Now(), nil
		},
		ByServer: func(ctx context.Context, _ string, _ discover.Fleet, _ time.Duration) (ownership.Applications, time.Time, error) {
			select {
			case found := <-byServer:
				return found, clock.Now(), nil
			case <-ctx.Done():
				return nil, time.Time{}, context.Cause(ctx)
			}
		}}
	pod := scrape.PodReport{SampledAt: epoch, Unplaced: 5, Servers: map[string]scrape.ServerReport{server("c000"): {}}}
	pod.Ready = true
	look := func(after time.Duration, byName, fails bool) {
		t.Helper()
		clock.SetTime(epoch.Add(after))
		reported, err := o.reported(t.Context(), "argocd", []scrape.PodReport{pod}, fleet)
		if got := reported.Clusters["c000"]; got.ByName != byName || got.Apps != 3 || (err != nil) != fails {
			t.Errorf("after %s: by name %t of %d, %v; want %t of 3", after, got.ByName, got.Apps, err, byName)
		}
	}
	byServer <- ownership.Applications{server("c000"): 0}
	look(0, true, false)
	o.waits = 100 * time.Millisecond
	look(time.Minute, true, false)
	look(29*time.Minute, true, false)
	look(30*time.Minute, false, true)
	o.waits = time.Hour
	byServer <- ownership.Applications{server("c000"): 2}
	look(31*time.Minute, false, false)
}

// TestAListingThatPanicsEndsNoPlanner: Applications are anybody's. It failed, the panic's value is told to nobody, and the next cycle lists
// anew.
func TestAListingThatPanicsEndsNoPlanner(t *testing.T) {
	fleet, lists := discover.All(newWorld(1).in.Discovered, epoch), 0
	o := Observer{Clock: testingclock.NewFakeClock(epoch), waits: time.Hour,
		Count: func(context.Context, string, discover.Fleet, time.Duration) (ownership.Applications, time.Time, error) {
			if lists++; lists == 1 {
				panic("what somebody wrote")
			}
			return ownership.Applications{server("c000"): 3}, epoch, nil
		}}
	reported, err := o.reported(t.Context(), "argocd", nil, fleet)
	known := reported.Clusters["c000"].Apps
	if want := "listing Applications ended in a panic of type string"; err == nil || err.Error() != want || known != ownership.Unknown {
		t.Errorf("%d Applications, %v; want none known, and %q", known, err, want)
	}
	if reported, err = o.reported(t.Context(), "argocd", nil, fleet); err != nil || reported.Clusters["c000"].Apps != 3 {
		t.Errorf("the next cycle: %d Applications, %v; want 3", reported.Clusters["c000"].Apps, err)
	}
}

// TestNumbersOfAClockThatWasAheadStand: they were none until the next listing ended, and what seemed to have no Application might have some.
func TestNumbersOfAClockThatWasAheadStand(t *testing.T) {
	fleet, clock, lists := discover.All(newWorld(1).in.Discovered, epoch), testingclock.NewFakeClock(epoch.Add(6*time.Hour)), 0
	o := Observer{Clock: clock, waits: time.Hour,
		Count: func(ctx context.Context, _ string, _ discover.Fleet, _ time.Duration) (ownership.Applications, time.Time, error) {
			if lists++; lists > 2 { // one look asks twice
				<-ctx.Done()
			}
			return ownership.Applications{server("c000"): 3}, clock.Now(), context.Cause(ctx)
		}}
	for _, at := range []time.Duration{6 * time.Hour, 0, 29 * time.Minute} {
		clock.SetTime(epoch.Add(at))
		reported, err := o.reported(t.Context(), "argocd", nil, fleet)
		if apps := reported.Clusters["c000"].Apps; apps != 3 || err != nil {
			t.Errorf("at %s %d Applications, %v; want 3", at, apps, err)
		}
		o.waits = 50 * time.Millisecond
	}
	clock.SetTime(epoch.Add(30 * time.Minute))
	if reported, err := o.reported(t.Context(), "argocd", nil, fleet); reported.Clusters["c000"].Apps != ownership.Unknown || err == nil {
		t.Errorf("half an hour later %d Applications, %v; want none known", reported.Clusters["c000"].Apps, err)
	}
}

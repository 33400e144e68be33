package memory

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/cycle/track"
	"ballast/planner/evaluate"
	"ballast/planner/failover"
	"ballast/planner/ownership"
)

// decision is a memory, and what a decision made of it: a failover that restarts the fleet.
func decision() (was, decided Memory) {
	now := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	was = Memory{Counts: Counts{Start: Start{Replicas: 3, Load: 30}}, Sizes: Sizes{Killed: map[int]int64{0: 1}},
		Savings: evaluate.Savings{At: now.Add(-time.Hour)}, Changes: Changes{Failed: map[string]time.Time{"a": now.Add(-time.Hour)}, Moved: map[string]time.Time{"a": now}}}
	decided = Memory{Counts: Counts{Start: Start{Replicas: 5, Load: 50}}, Sizes: Sizes{Killed: map[int]int64{0: 2}, Peaks: map[int]track.Peak{0: {Bytes: 7}}},
		Savings: evaluate.Savings{At: now}, Rebased: now, Changes: Changes{Failed: map[string]time.Time{"a": now.Add(-time.Hour), "b": now}, Moved: map[string]time.Time{"a": now},
			Cause: change.Failover, Why: "replica 1 is dead", Target: map[string]int{"b": 2}, Ledger: change.Ledger{{At: now, Cause: change.Failover, Moves: 1}}, Counted: now,
			Unserved: change.Ledger{{At: now, Cause: change.Failover, Moves: 2}},
			Failover: failover.Last{At: now}, Restarted: now, Stopped: now, Ownership: ownership.Memory{Followed: now}, BySecret: true, Recalled: true, PinFailed: now,
			Pinned: map[string]time.Time{"c": now}, Suspect: map[string]time.Time{"b": now}, Failures: harm.Failures{{At: now}}, Began: harm.Signs{Orphans: []string{"b"}},
			Watch: harm.Watch{Began: now}, Trip: &harm.Trip{At: now, Why: "it harms"}, TripTold: true, TripMoved: []string{"a"}, Looked: now}}
	decided.Even, decided.Unit = track.Even{At: now}, "apps@2"
	was.Even, was.Unit = track.Even{At: now.Add(-time.Minute)}, "apps@1"
	return was, decided
}

// TestEveryChangeIsPendingOrSeen: a field that is added to Changes is one that a decision sets, and must not be lost with the answer to its
// write, or one that each look makes anew.
func TestEveryChangeIsPendingOrSeen(t *testing.T) {
	seen := map[string]bool{"Replicas": true, "Blocked": true, "Pending": true, "ByName": true}
	_, decided := decision()
	fields := reflect.ValueOf(decided.Changes)
	for i := range fields.NumField() {
		if name := fields.Type().Field(i).Name; seen[name] != fields.Field(i).IsZero() {
			t.Errorf("Changes.%s: the tests here decide it: %t; it is seen: %t", name, !fields.Field(i).IsZero(), seen[name])
		}
	}
}

// What was counted between the decision and its being found in force stays.
func TestWhatWasCountedMeanwhileStays(t *testing.T) {
	was, decided := decision()
	lost := decided.Unwritten(was, "sha256:x")
	at := decided.Changes.Restarted.Add(time.Minute)
	lost.Changes.Ledger = lost.Changes.Ledger.Add(at, change.Healing, 2)
	lost.Changes.Failover, lost.Changes.Pinned = failover.Last{At: at, Replica: 3}, map[string]time.Time{"d": at}
	got := lost.Resume("sha256:x").Changes
	want := change.Ledger{{At: at.Add(-time.Minute), Cause: change.Failover, Moves: 1}, {At: at, Cause: change.Healing, Moves: 2}}
	if diff := cmp.Diff(want, got.Ledger); diff != "" {
		t.Errorf("the ledger (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]time.Time{"c": at.Add(-time.Minute), "d": at}, got.Pinned) + cmp.Diff(failover.Last{At: at, Replica: 3}, got.Failover); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again := got
	again.Pending = lost.Changes.Pending
	lost.Changes = again
	if diff := cmp.Diff(want, lost.Resume("sha256:x").Changes.Ledger); diff != "" {
		t.Errorf("found a second time, moves count twice (-want +got):\n%s", diff)
	}
}

// What a trip for memory holds by now stays held, whatever it held when a plan was decided whose write nobody knows the end of.
func TestWhatATripHoldsMeanwhileStaysHeld(t *testing.T) {
	was, decided := decision()
	lost := decided.Unwritten(was, "sha256:x")
	at := decided.Changes.Trip.At.Add(time.Minute)
	lost.Changes.Trip, lost.Changes.TripMoved = &harm.Trip{At: at, Reason: harm.OOMKilled, Replicas: []int{1, 2}, Moved: 2}, []string{"a", "b"}
	got := lost.Resume("sha256:x").Changes
	if diff := cmp.Diff(lost.Changes.Trip, got.Trip) + cmp.Diff(lost.Changes.TripMoved, got.TripMoved); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What was decided and not written changed no number of replicas, no size and no savings; what was seen stays.
func TestWhatIsNotWrittenChangedNothing(t *testing.T) {
	was, decided := decision()
	want := was
	want.Sizes.Peaks = decided.Sizes.Peaks
	got := decided.Unwritten(was, "sha256:x")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Changes{}, "Pending")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(got, got.Resume("sha256:other"), cmpopts.IgnoreUnexported(Pending{})); diff != "" {
		t.Errorf("another plan was taken for it: %s", diff)
	}
}

// Where only the answer was lost, the leader that finds its plan in force goes on as if it had come.
func TestWhatIsWrittenAfterAllCounts(t *testing.T) {
	was, decided := decision()
	if diff := cmp.Diff(decided, decided.Unwritten(was, "sha256:x").Resume("sha256:x")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A leader that dies with its write leaves the limits to the next one, by the history.
func TestTheNextLeaderFindsWhatIsPending(t *testing.T) {
	was, decided := decision()
	saved := was
	saved.Changes.Pending = decided.PendingOf(was, "sha256:x")
	parts, stale := saved.Parts(nil)
	if len(stale) != 0 {
		t.Fatal(stale)
	}
	next, dropped := Of(parts)
	if len(dropped) != 0 {
		t.Fatal(dropped)
	}
	seen := maps.Clone(was.Changes.Failed)
	want := decided
	want.Savings, want.Rebased, want.Sizes.Peaks = was.Savings, was.Rebased, nil // of no harm to another leader
	want.Even, want.Unit = was.Even, was.Unit
	if diff := cmp.Diff(want, next.Resume("sha256:x"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(was, next.Resume("sha256:y"), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Changes{}, "Pending")); diff != "" {
		t.Errorf("a plan that never came about limits:\n%s", diff)
	}
	if diff := cmp.Diff(seen, was.Changes.Failed); diff != "" {
		t.Errorf("a map of others changed: %s", diff)
	}
}

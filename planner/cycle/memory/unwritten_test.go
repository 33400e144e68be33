package memory

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/change"
	"ballast/planner/evaluate"
	"ballast/planner/failover"
	"ballast/planner/ownership"
)

// decision is a memory, and what a decision made of it: a failover that restarts the fleet.
func decision() (was, decided Memory) {
	now := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	was = Memory{Counts: Counts{Start: Start{Replicas: 3, Load: 30}}, Sizes: Sizes{Killed: map[int]int64{0: 1}},
		Savings: evaluate.Savings{At: now.Add(-time.Hour)}, Changes: Changes{Failed: map[string]time.Time{"a": now.Add(-time.Hour)}, Moved: map[string]time.Time{"a": now}}}
	decided = Memory{Counts: Counts{Start: Start{Replicas: 5, Load: 50}}, Sizes: Sizes{Killed: map[int]int64{0: 2}, Peaks: map[int]Peak{0: {Bytes: 7}}},
		Savings: evaluate.Savings{At: now}, Rebased: now, Changes: Changes{Failed: map[string]time.Time{"a": now.Add(-time.Hour), "b": now}, Moved: map[string]time.Time{"a": now},
			Cause: change.Failover, Why: "replica 1 is dead", Target: map[string]int{"b": 2}, Ledger: change.Ledger{{At: now, Cause: change.Failover, Moves: 1}}, Counted: now,
			Failover: failover.Last{At: now}, Restarted: now, Stopped: now, Ownership: ownership.Memory{Followed: now}}}
	return was, decided
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

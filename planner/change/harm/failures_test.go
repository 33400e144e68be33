package harm

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
)

// TestTheThirdFailureOfTheSameIsATrip: before, the same rollout was tried 36 times a day, for ever.
func TestTheThirdFailureOfTheSameIsATrip(t *testing.T) {
	hours := func(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Hour))) }
	type try struct {
		at    float64 // hours
		cause change.Cause
		what  string
	}
	for name, test := range map[string]struct {
		tries []try
		want  string // why it trips at the last one; empty: it does not
		kept  int
	}{
		"twice":                   {[]try{{0, change.Balance, "moves"}, {1, change.Balance, "moves"}}, "", 2},
		"thrice":                  {[]try{{0, change.Balance, "moves"}, {1, change.Balance, "moves"}, {2, change.Balance, "moves"}}, "a rollout (Balance: moves) failed 3 times within a day, the last time: late", 3},
		"a fourth time":           {[]try{{0, change.Pin, "3 to 5"}, {1, change.Pin, "3 to 5"}, {2, change.Pin, "3 to 5"}, {3, change.Pin, "3 to 5"}}, "a rollout (Pin: 3 to 5) failed 4 times within a day, the last time: late", 4},
		"other causes":            {[]try{{0, change.Balance, "moves"}, {1, change.Drain, "moves"}, {2, change.Rollback, "moves"}}, "", 3},
		"other counts":            {[]try{{0, change.Balance, "3 to 5"}, {1, change.Balance, "3 to 4"}, {2, change.Balance, "5 to 3"}}, "", 3},
		"within a day":            {[]try{{0, change.Balance, "moves"}, {12, change.Balance, "moves"}, {23.99, change.Balance, "moves"}}, "a rollout (Balance: moves) failed 3 times within a day, the last time: late", 3},
		"a day apart":             {[]try{{0, change.Balance, "moves"}, {12, change.Balance, "moves"}, {24, change.Balance, "moves"}}, "", 2},
		"a clock that went back":  {[]try{{5, change.Balance, "moves"}, {6, change.Balance, "moves"}, {1, change.Balance, "moves"}}, "a rollout (Balance: moves) failed 3 times within a day, the last time: late", 3},
		"and a day after that":    {[]try{{5, change.Balance, "moves"}, {1, change.Balance, "moves"}, {25, change.Balance, "moves"}}, "", 1},
		"a failover that scales":  {[]try{{0, change.Failover, "3 to 2"}, {1, change.Failover, "3 to 2"}, {2, change.Failover, "3 to 2"}}, "a rollout (Failover: 3 to 2) failed 3 times within a day, the last time: late", 3},
		"a failover goes on":      {[]try{{0, change.Failover, "moves"}, {1, change.Failover, "moves"}, {2, change.Failover, "moves"}}, "", 3},
		"others between the same": {[]try{{0, change.Drain, "moves"}, {1, change.Balance, "moves"}, {2, change.Drain, "moves"}, {3, change.Drain, "moves"}}, "a rollout (Drain: moves) failed 3 times within a day, the last time: late", 4},
	} {
		t.Run(name, func(t *testing.T) {
			var failures Failures
			var trip *Trip
			for i, one := range test.tries {
				before := cmp.Diff(failures, Failures(nil))
				next, got := failures.Add(hours(one.at), one.cause, one.what, "late")
				if cmp.Diff(failures, Failures(nil)) != before {
					t.Error("the failures that were given were changed")
				}
				if failures, trip = next, got; trip != nil && i < mostFailures-1 {
					t.Errorf("a trip at the try %d", i+1)
				}
			}
			got := ""
			if trip != nil {
				got = trip.Why
				last := test.tries[len(test.tries)-1]
				if trip.Reason != Failing || trip.Cause != last.cause || !trip.At.Equal(hours(last.at)) {
					t.Errorf("the trip is %+v", trip)
				}
			}
			if got != test.want || len(failures) != test.kept {
				t.Errorf("%d are kept, want %d; trip %q, want %q", len(failures), test.kept, got, test.want)
			}
		})
	}
}

// TestWhatIsTriedAllTheSameWaitsLonger each time: as often as stops ballast at once, then after half an hour, an hour, two, four and four.
func TestWhatIsTriedAllTheSameWaitsLonger(t *testing.T) {
	const what, whole = "3 to 1 replicas", "3 to 1 replicas, ENV 3 to 1"
	var failures Failures
	now := start
	for i, want := range []time.Duration{0, 0, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 4 * time.Hour} {
		failures, _ = failures.Add(now, change.Pin, whole, "late")
		failures, _ = failures.Add(now, change.Pin, "3 to 12 replicas, ENV 3 to 1", "late")
		got := max(failures.Again(now, change.Pin, what).Sub(now), 0)
		if got != want || !failures.Again(now.Add(want), change.Pin, what).IsZero() {
			t.Errorf("after failure %d it waits %s, want %s and no longer", i+1, got, want)
		}
		if other := failures.Again(now, change.Drain, what); !other.IsZero() {
			t.Errorf("another cause waits until %s", other)
		}
		now = now.Add(want)
	}
	if again := failures.Again(now.Add(24*time.Hour), change.Pin, what); !again.IsZero() {
		t.Errorf("a day later it waits until %s", again)
	}
}

func TestFailuresAreBounded(t *testing.T) {
	var failures Failures
	for i := range 1000 {
		failures, _ = failures.Add(start.Add(time.Duration(i)*time.Second), change.Failover, "moves", "late")
	}
	if len(failures) != keptFailures || !failures[keptFailures-1].At.Equal(start.Add(999*time.Second)) {
		t.Errorf("%d are kept, the last of %s", len(failures), failures[len(failures)-1].At)
	}
}

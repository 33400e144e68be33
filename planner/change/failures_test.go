package change

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTheThirdFailureOfTheSameIsATrip: before, the same rollout was tried 36 times a day, for ever.
func TestTheThirdFailureOfTheSameIsATrip(t *testing.T) {
	hours := func(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Hour))) }
	type try struct {
		at    float64 // hours
		cause Cause
		what  string
	}
	for name, test := range map[string]struct {
		tries []try
		want  string // why it trips at the last one; empty: it does not
		kept  int
	}{
		"twice":                   {[]try{{0, Balance, "moves"}, {1, Balance, "moves"}}, "", 2},
		"thrice":                  {[]try{{0, Balance, "moves"}, {1, Balance, "moves"}, {2, Balance, "moves"}}, "a rollout (Balance: moves) failed 3 times within a day, the last time: late", 3},
		"a fourth time":           {[]try{{0, Pin, "3 to 5"}, {1, Pin, "3 to 5"}, {2, Pin, "3 to 5"}, {3, Pin, "3 to 5"}}, "a rollout (Pin: 3 to 5) failed 4 times within a day, the last time: late", 4},
		"other causes":            {[]try{{0, Balance, "moves"}, {1, Drain, "moves"}, {2, Rollback, "moves"}}, "", 3},
		"other counts":            {[]try{{0, Balance, "3 to 5"}, {1, Balance, "3 to 4"}, {2, Balance, "5 to 3"}}, "", 3},
		"within a day":            {[]try{{0, Balance, "moves"}, {12, Balance, "moves"}, {23.99, Balance, "moves"}}, "a rollout (Balance: moves) failed 3 times within a day, the last time: late", 3},
		"a day apart":             {[]try{{0, Balance, "moves"}, {12, Balance, "moves"}, {24, Balance, "moves"}}, "", 2},
		"a clock that went back":  {[]try{{5, Balance, "moves"}, {6, Balance, "moves"}, {1, Balance, "moves"}}, "a rollout (Balance: moves) failed 3 times within a day, the last time: late", 3},
		"and a day after that":    {[]try{{5, Balance, "moves"}, {1, Balance, "moves"}, {25, Balance, "moves"}}, "", 1},
		"a failover that scales":  {[]try{{0, Failover, "3 to 2"}, {1, Failover, "3 to 2"}, {2, Failover, "3 to 2"}}, "a rollout (Failover: 3 to 2) failed 3 times within a day, the last time: late", 3},
		"a failover goes on":      {[]try{{0, Failover, "moves"}, {1, Failover, "moves"}, {2, Failover, "moves"}}, "", 3},
		"others between the same": {[]try{{0, Drain, "moves"}, {1, Balance, "moves"}, {2, Drain, "moves"}, {3, Drain, "moves"}}, "a rollout (Drain: moves) failed 3 times within a day, the last time: late", 4},
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

func TestFailuresAreBounded(t *testing.T) {
	var failures Failures
	for i := range 1000 {
		failures, _ = failures.Add(start.Add(time.Duration(i)*time.Second), Failover, "moves", "late")
	}
	if len(failures) != keptFailures || !failures[keptFailures-1].At.Equal(start.Add(999*time.Second)) {
		t.Errorf("%d are kept, the last of %s", len(failures), failures[len(failures)-1].At)
	}
}

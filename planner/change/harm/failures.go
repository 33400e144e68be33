package harm

import (
	"fmt"
	"slices"
	"time"

	"ballast/planner/change"
)

// Failing is that the same rollout failed again and again.
const Failing TripReason = "Failing"

const (
	// failsAgain is for how long a rollout that failed counts.
	failsAgain = 24 * time.Hour
	// mostFailures of one rollout within that time stop ballast: what kept it from ending twice does so again, and each
	// try makes pods come and go, or clusters.
	mostFailures = 3
	// keptFailures bounds what is remembered.
	keptFailures = 32
)

// OnlyMoves is what failed of a rollout that changes neither replicas nor env.
const OnlyMoves = "moves"

// Failure is a rollout that did not come to its end: for what cause, and what it was to bring about, in words.
type Failure struct {
	At    time.Time    `json:"at"`
	Cause change.Cause `json:"cause"`
	What  string       `json:"what"`
}

// Failures are those that count, oldest first. It is a value.
type Failures []Failure

// Add remembers one, and forgets what counts no more. The third of the same is a trip.
func (f Failures) Add(now time.Time, cause change.Cause, what, why string) (Failures, *Trip) {
	kept := slices.DeleteFunc(f.Until(now), func(one Failure) bool { return now.Sub(one.At) >= failsAgain })
	kept = append(kept, Failure{At: now, Cause: cause, What: what})
	kept = kept[max(0, len(kept)-keptFailures):]
	same := 0
	for _, one := range kept {
		if one.Cause == cause && one.What == what {
			same++
		}
	}
	tried := cause == change.Failover && what == OnlyMoves // nobody has those clusters: they are tried for as long as it takes
	if same < mostFailures || tried {
		return kept, nil
	}
	return kept, &Trip{At: now, Reason: Failing, Cause: cause, Why: fmt.Sprintf("a rollout (%s: %s) failed %d times within a day, the last time: %s", cause, what, same, why)}
}

// Until takes times that lie ahead as now, in a copy.
func (f Failures) Until(now time.Time) Failures {
	f = slices.Clone(f)
	for i := range f {
		if f[i].At.After(now) {
			f[i].At = now
		}
	}
	return f
}

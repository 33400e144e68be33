package change

import (
	"fmt"
	"slices"
	"time"
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

// Failure is a rollout that did not come to its end: for what cause, and what it was to bring about, in words.
type Failure struct {
	At    time.Time `json:"at"`
	Cause Cause     `json:"cause"`
	What  string    `json:"what"`
}

// Failures are those that count, oldest first. It is a value.
type Failures []Failure

// Add remembers one, and forgets what counts no more. The third of the same is a trip.
func (f Failures) Add(now time.Time, cause Cause, what, why string) (Failures, *Trip) {
	kept := slices.DeleteFunc(slices.Clone(f), func(one Failure) bool {
		since := now.Sub(one.At)
		return since < 0 || since >= failsAgain
	})
	kept = append(kept, Failure{At: now, Cause: cause, What: what})
	kept = kept[max(0, len(kept)-keptFailures):]
	same := 0
	for _, one := range kept {
		if one.Cause == cause && one.What == what {
			same++
		}
	}
	if same < mostFailures || cause == Failover { // nobody has those clusters: they are tried for as long as it takes
		return kept, nil
	}
	return kept, &Trip{At: now, Reason: Failing, Cause: cause, Why: fmt.Sprintf("a rollout (%s: %s) failed %d times within a day, the last time: %s", cause, what, same, why)}
}

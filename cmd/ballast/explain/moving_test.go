package explain

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/cycle/explain"
	"ballast/planner/plan"
)

// What a move would gain and cost stands before the answer; where there is nowhere to go the answer stands alone.
func TestExplainSaysWhatAMoveWouldTake(t *testing.T) {
	objects := 1234.0
	gains := "\nOn replica 1, the best other one, the fullest would carry 0.5, and 0.75 now (makespan/mean 1.20); of overload it would mend 0.25.\n"
	of := func(change func(*explain.Moving)) explain.Moving {
		m := explain.Moving{To: 1, Clusters: 1, Makespan: 3 * plan.LoadUnit / 4, After: plan.LoadUnit / 2, Level: 1.2, Saves: plan.LoadUnit / 4, LoadHours: 0.0625, Answer: "Leave it: x."}
		change(&m)
		return m
	}
	for want, m := range map[string]explain.Moving{
		gains + "It would cost 0.0625 load hours: its new owner starts from an empty cache.\nLeave it: x.\n": of(func(*explain.Moving) {}),
		gains + "It would cost 0.0625 load hours: 3 clusters go, and their new owner starts from an empty cache, and lists 1234 objects anew; the move budget has room for it now.\nLeave it: x.\n": of(func(m *explain.Moving) {
			m.Clusters, m.Objects, m.Limited, m.Done = 3, &objects, true, fixture.Noon
		}),
		gains + "It would cost 0.0625 load hours: every replica restarts, and starts from an empty cache; by the move budget in 1h20m at the earliest.\nLeave it: x.\n": of(func(m *explain.Moving) {
			m.Restarts, m.Limited, m.Done = true, true, fixture.Noon.Add(80*time.Minute)
		}),
		gains + "It would cost 0.0625 load hours: its new owner starts from an empty cache; the move budget never has room for it.\nLeave it: x.\n": of(func(m *explain.Moving) { m.Limited = true }),
		"Leave it: x.\n": of(func(m *explain.Moving) { m.To = -1 }),
	} {
		var b bytes.Buffer
		explained{explain.Explanation{At: fixture.Noon}}.moving(&b, m)
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

package cycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/plan"
)

// byCause is what the ledger has.
func (w *liveWorld) byCause() map[change.Cause]int {
	counted := map[change.Cause]int{}
	for _, r := range w.in.Memory.Changes.Ledger {
		counted[r.Cause] += r.Moves
	}
	return counted
}

// TestEveryCauseCountsAgainstTheBudget: whatever gave a cluster another replica, everything that may wait waits for it.
func TestEveryCauseCountsAgainstTheBudget(t *testing.T) {
	atRest := func(w *liveWorld) func(outcome.Outcome) bool {
		return func(outcome.Outcome) bool { return len(w.moved()) > 0 && w.in.InForce.Rollout == nil }
	}
	for cause, run := range map[change.Cause]func(*testing.T, *liveWorld) int{
		change.Balance: func(t *testing.T, w *liveWorld) int {
			w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
			w.imbalanced()
			w.until(t, "a wave is done", time.Hour, atRest(w))
			return len(w.moved())
		},
		change.Failover: func(t *testing.T, w *liveWorld) int {
			w.down[2] = true
			w.until(t, "a wave is done", time.Hour, atRest(w))
			return len(w.moved())
		},
		change.Drain: func(t *testing.T, w *liveWorld) int {
			w.in.Cordon = fmt.Sprintf("1=%s", w.in.Now.Add(6*time.Hour).UTC().Format(time.RFC3339))
			w.until(t, "a wave is done", time.Hour, atRest(w))
			return len(w.moved())
		},
		change.Rollback: func(t *testing.T, w *liveWorld) int {
			earlier := w.in.InForce.Clone()
			for name, row := range earlier.Clusters {
				row.Replica = (row.Replica + 1) % 3
				earlier.Clusters[name] = row
			}
			w.in.Rollback = &input.Rollback{Revision: 1, Plan: &earlier}
			w.until(t, "a wave is done", time.Hour, atRest(w))
			return len(w.moved())
		},
		change.Pin: func(t *testing.T, w *liveWorld) int {
			w.in.Pins = plan.Pins{}
			for _, name := range w.on(0)[:6] {
				w.in.Pins[name] = 1
			}
			w.step(time.Minute)
			return len(w.moved())
		},
		change.Healing: func(_ *testing.T, w *liveWorld) int {
			w.in.Repaired = w.on(0)[:6]
			w.step(time.Minute)
			w.in.Repaired = nil
			return 6
		},
	} {
		t.Run(string(cause), func(t *testing.T) {
			w := undecided(t, skewed(40)...)
			for range 30 {
				w.step(time.Minute) // settled
			}
			w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 10, Period: config.Duration(time.Hour)}}
			w.in.Memory.Changes.Ledger, w.waves = nil, nil
			moved := run(t, w)
			if diff := cmp.Diff(map[change.Cause]int{cause: moved}, w.byCause()); diff != "" || moved < 4 {
				t.Fatalf("%d clusters moved (-moved +counted):\n%s", moved, diff)
			}
			w.in.Cordon, w.in.Rollback, w.down = "", nil, map[int]bool{}
			waves := len(w.waves)
			w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
			w.imbalanced()
			out := w.step(time.Minute)
			if out.Budget.Left != 0 || len(w.waves) != waves || !strings.HasPrefix(out.Candidate.Verdict, "waits for the move budget: ") && cause != change.Failover {
				t.Errorf("%d may move yet, verdict %q", out.Budget.Left, out.Candidate.Verdict)
			}
			if out := w.step(time.Second); len(out.Counted) > 0 {
				t.Errorf("%v are counted again", out.Counted)
			}
		})
	}
}

// TestOrphanedAndDoubledClustersAreProblems, beyond their grace, and are none any more once they are mended.
func TestOrphanedAndDoubledClustersAreProblems(t *testing.T) {
	w := undecided(t, skewed(12)...)
	w.in.Cordon = "" // nobody moves anything
	w.in.Paused = true
	look := func() (found []string) {
		out := w.step(30 * time.Second)
		for _, o := range out.Verdict.Orphans {
			found = append(found, "orphan "+o.Cluster)
		}
		for _, d := range out.Verdict.Doubled {
			found = append(found, "doubled "+d.Cluster)
		}
		return append(found, problems(out)...)
	}
	look()
	lost, twice := w.on(1)[0], w.on(2)[0]
	w.taken[lost] = true
	w.doubled = map[string]bool{twice: true}
	if diff := cmp.Diff([]string(nil), look()); diff != "" {
		t.Errorf("within the grace (-want +got):\n%s", diff)
	}
	var found []string
	for range 5 {
		found = look()
	}
	want := []string{"orphan " + lost, "doubled " + twice, "ownership/Doubled/" + twice, "ownership/Orphaned/" + lost}
	if diff := cmp.Diff(want, found, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("beyond the grace (-want +got):\n%s", diff)
	}
	w.taken, w.doubled = map[string]bool{}, nil
	look()
	if diff := cmp.Diff([]string(nil), look()); diff != "" {
		t.Errorf("mended (-want +got):\n%s", diff)
	}
}

package cycle

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/failover"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

func TestRecallReadsWhatTheLeaderSaved(t *testing.T) {
	changes := Changes{
		Target: map[string]int{"c001": 2}, Cause: change.Drain, Ledger: change.Ledger{{At: epoch, Moves: 3, Cause: change.Drain}},
		Trip: &change.Trip{At: epoch, Reason: change.Orphaned, Why: "c001 has no owner"}, Failover: failover.Last{Replica: 1, At: epoch},
	}
	changes.Ownership.Lost = map[string]time.Time{"c001": epoch}
	whole := Memory{Changes: changes, HoldOff: epoch}
	limits, others := changes, Changes{Target: changes.Target, Ownership: changes.Ownership}
	limits.Target, limits.Ownership.Lost = nil, nil
	broken := "reading what was known of moves: "
	for name, test := range map[string]struct {
		saved Memory
		spoil string // the part that breaks
		want  Saved
		says  []string
	}{
		"all of it":                    {whole, "", Saved{Changes: changes, HeldUntil: epoch.Add(holdOff)}, nil},
		"no rollout failed":            {Memory{Changes: changes}, "", Saved{Changes: changes}, nil},
		"nothing":                      {Memory{}, "", Saved{}, nil},
		"moves that cannot be read":    {whole, partChanges, Saved{Changes: limits, HeldUntil: epoch.Add(holdOff)}, []string{broken}},
		"limits that cannot be read":   {whole, partLimits, Saved{Changes: others}, []string{"reading what limits changes: "}},
		"a fleet that cannot be read":  {whole, partFleet, Saved{Changes: changes, HeldUntil: epoch.Add(holdOff)}, []string{"reading what was known of the fleet: "}},
		"votes that nobody asked for":  {whole, partVotes, Saved{Changes: changes, HeldUntil: epoch.Add(holdOff)}, nil},
		"values that nobody asked for": {whole, partLastGood, Saved{Changes: changes, HeldUntil: epoch.Add(holdOff)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			parts, _ := test.saved.Parts(nil)
			if test.spoil != "" {
				parts[test.spoil] = []byte("no part")
			}
			got, dropped := ReadSaved(epoch, parts)
			test.want.SavedAt = epoch
			if diff := cmp.Diff(test.want, got, equalTimes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var says []string
			for i, err := range dropped {
				says = append(says, err.Error()[:min(len(err.Error()), len(test.says[i]))])
			}
			if diff := cmp.Diff(test.says, says); diff != "" {
				t.Errorf("what was dropped (-want +got):\n%s", diff)
			}
		})
	}
	if got, dropped := ReadSaved(time.Time{}, nil); !cmp.Equal(Saved{}, got) || len(dropped) > 0 {
		t.Errorf("of no history %+v is saved, dropped %v", got, dropped)
	}
}

func TestTheBudgetIsTheLeadersOwn(t *testing.T) {
	w := adopted(t, skewed(40)...)
	w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 10, Period: config.Duration(time.Hour)}}
	for i := range w.in.Discovered.Secrets {
		w.setLoad(w.in.Discovered.Secrets[i].Name, float64(10+90*(i%2)))
	}
	moved := 0
	for range 240 {
		w.in.Now = w.in.Now.Add(30 * time.Second)
		w.observe()
		in := clone(t, w.in)
		in.Observed, in.Fetched = Observed{}, nil
		got, out := Follow(in).Budget, w.cycle()
		if diff := cmp.Diff(out.Budget, got, equalTimes); diff != "" {
			t.Fatalf("at %s (-leader's +what is shown):\n%s", w.in.Now, diff)
		}
		moved = max(moved, got.Windows[0].Used)
	}
	if moved != 4 {
		t.Errorf("at most %d moves were seen in a window, want 4: the test shows nothing else", moved)
	}
}

// The leader's memory alone says which replicas it holds for unwell.
func TestUnwellReplicasAreAsTheLeaderHadThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Inputs{Config: config.Default(), InForce: &plan.Plan{Replicas: rapid.IntRange(1, 5).Draw(t, "replicas")}}
		in.Workload.Kind = rapid.SampledFrom([]string{plan.StatefulSet, plan.Deployment}).Draw(t, "kind")
		in.Workload.DynamicDistribution = in.Workload.Kind == plan.Deployment
		o := failover.Options{After: time.Duration(in.Config.Failover.After), Settle: time.Duration(in.Config.Failover.Settle), Interval: time.Duration(in.Config.Interval)}
		now, restarts := epoch, map[int]int{}
		var want failover.Verdict
		var m failover.Memory
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(20, 180).Draw(t, "seconds")) * time.Second)
			seen := failover.Fleet{Known: true, Replicas: in.InForce.Replicas, Dynamic: in.Workload.DynamicDistribution, Rolling: rapid.IntRange(0, 9).Draw(t, "rolling") == 0}
			for r := range in.InForce.Replicas {
				p := observed.Pod{Replica: r, Name: fmt.Sprint("c-", r)}
				switch rapid.IntRange(0, 5).Draw(t, "pod") {
				case 0:
					continue // it has none
				case 1: // it neither works nor restarts
				case 2:
					restarts[r]++
					p.OOMKilled = rapid.Bool().Draw(t, "killed")
					p.RestartedAt = now.Add(-time.Second)
				default:
					p.Ready, p.Claimed = true, true
				}
				p.Restarts = restarts[r]
				seen.Pods = append(seen.Pods, p)
			}
			want, m = failover.Judge(seen, o, now, m)
			in.Observed = Observed{Known: true, Dynamic: seen.Dynamic, Pods: seen.Pods}
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &in.Memory.Changes.Replicas); err != nil {
			t.Fatal(err)
		}
		// Whom the memory names stays named, even if that pod is not there any more.
		same := cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Sick.Pod" }, cmp.Comparer(func(a, b string) bool { return a == b || a == "" || b == "" }))
		if diff := cmp.Diff(want, Follow(in).Replicas, equalTimes, cmpopts.EquateEmpty(), same); diff != "" {
			t.Fatalf("(-leader's +saved):\n%s", diff)
		}
	})
}

func TestNobodyIsUnwellToALeaderThatNeverLookedOrDoesNotFailOver(t *testing.T) {
	in := Inputs{Now: epoch, Config: config.Default(), InForce: &plan.Plan{Replicas: 2}}
	if got := Follow(in).Replicas; len(got.Sick) > 0 || got.Held != "" {
		t.Errorf("of no memory: %+v", got)
	}
	in.Memory.Changes.Replicas = failover.Memory{Looked: epoch, Replicas: map[int]failover.History{0: {Pod: "c-0", Down: epoch.Add(-time.Hour)}, 1: {Pod: "c-1"}}}
	if got := Follow(in).Replicas; len(got.Sick) != 1 || got.Sick[0].Reason != failover.NotReady || got.Sick[0].Pod != "c-0" {
		t.Errorf("of a pod that is not ready: %+v", got)
	}
	in.Config.Failover = nil
	if got := Follow(in).Replicas; len(got.Sick) > 0 {
		t.Errorf("without failover: %+v", got)
	}
}

package change

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPinHealingAndAFailoverNeverWaitForTheBudget(t *testing.T) {
	want := map[Cause]bool{Balance: true, Failover: false, Drain: true, Rollback: true, Healing: false, Pin: false}
	for _, c := range Causes() {
		if got := c.Limited(); got != want[c] {
			t.Errorf("%s is limited: %t, want %t", c, got, want[c])
		}
	}
}

// TestWhatEachCauseWaitsFor: whoever may create Secrets pins as many of his as he likes, and must keep no failover waiting by it; and levelling, which
// spends its budget each day, keeps nothing waiting but itself.
func TestWhatEachCauseWaitsFor(t *testing.T) {
	want := map[Cause][]Cause{
		Balance:  {Balance, Failover, Drain, Healing, Rollback, Pin},
		Failover: {Failover},
		Drain:    {Failover, Drain, Rollback},
		Rollback: {Failover, Drain, Rollback},
	}
	for _, cause := range Causes() {
		if cause == Pin || cause == Healing {
			continue
		}
		var all Ledger
		for i, c := range Causes() {
			all = all.Add(start, c, i+1)
		}
		var waits []Cause
		for _, c := range Causes() {
			if slices.ContainsFunc(all.Before(cause), func(r Record) bool { return r.Cause == c }) {
				waits = append(waits, c)
			}
		}
		if diff := cmp.Diff(want[cause], waits); diff != "" {
			t.Errorf("%s waits for (-want +got):\n%s", cause, diff)
		}
	}
}

func TestAHealedSecretIsAMoveOnlyIfItsClusterHadAnotherOwner(t *testing.T) {
	for name, test := range map[string]struct {
		foreign ForeignShard
		want    bool
	}{
		"another replica's shard":                               {ForeignShard{Replica: 1, Of: 16, Valid: true, Shard: 2}, true},
		"the plan's own shard, written in another way":          {ForeignShard{Replica: 2, Of: 16, Valid: true, Shard: 2}, false},
		"a negative shard, which nobody owns":                   {ForeignShard{Replica: 1, Of: 16, Valid: true, Shard: -1}, true},
		"a shard beyond the replicas, which is shard 0":         {ForeignShard{Replica: 1, Of: 16, Valid: true, Shard: 16}, true},
		"a shard beyond the replicas, and the plan says 0":      {ForeignShard{Replica: 0, Of: 16, Valid: true, Shard: 99}, false},
		"no number, and nobody knows what the algorithm chose":  {ForeignShard{Replica: 1, Of: 16}, true},
		"no number, and the algorithm chose another replica":    {ForeignShard{Replica: 1, Of: 16, Seen: []int{3}}, true},
		"no number, and the algorithm chose the same replica":   {ForeignShard{Replica: 1, Of: 16, Seen: []int{1}}, false},
		"no number, and the cluster had two owners":             {ForeignShard{Replica: 1, Of: 16, Seen: []int{1, 3}}, true},
		"another shard, though metrics have not noticed it yet": {ForeignShard{Replica: 1, Of: 16, Valid: true, Shard: 2, Seen: []int{1}}, true},
		"another shard of a cluster without Applications":       {ForeignShard{Replica: 1, Of: 16, Valid: true, Shard: 2, Idle: true}, false},
		"another shard where every pod owns every cluster":      {ForeignShard{Replica: 1, Of: 1, Valid: true, Shard: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.foreign.Moved(); got != test.want {
				t.Errorf("moved: %t, want %t", got, test.want)
			}
		})
	}
}

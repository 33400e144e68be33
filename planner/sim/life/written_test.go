package life

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/plan"
)

// written is what the Secrets themselves say of moves, whatever the planner counts: the replica that each server had last, and when one
// left it that nobody had to leave.
type written struct {
	home    map[string]int
	excused map[string]time.Time // servers that somebody asked to be elsewhere, until when
	ailing  map[int]time.Time    // replicas that did not serve, or were to be empty, until when
	all     time.Time            // until when every move is somebody's word
	levels  []time.Time
	looked  time.Time
}

// excuse is how long what people ask for, and what a replica ailed, excuses moves: waves and budgets take their time.
const excuse = 24 * time.Hour

// tally takes note of which servers' Secrets were written otherwise since the last look, and judges what levelling wrote by the
// budget.
func (j *judge) tally() {
	w, now := &j.written, j.leaders()
	if w.home == nil {
		w.home, w.excused, w.ailing = map[string]int{}, map[string]time.Time{}, map[int]time.Time{}
	}
	j.excuses(now)
	// A Secret that is gone had no replica: one that comes back by its name is a new one.
	maps.DeleteFunc(w.home, func(name string, _ int) bool { return !slices.Contains(j.Clusters, name) })
	before := len(w.levels)
	for _, name := range j.Clusters {
		shard, stamped := j.Shards[name]
		if !stamped || j.First(name) != name || len(j.SecretsOf(name)) > 1 {
			continue
		}
		home, known := w.home[name]
		row, planned := j.Plan.Clusters[name]
		if !planned || row.Replica != shard { // not as the plan has it: somebody else's write, or one to come
			continue
		}
		w.home[name] = shard
		ill, asked := now.Before(w.ailing[home]) || home >= j.Replicas, now.Before(w.excused[name]) || now.Before(w.all)
		if left := known && home != shard; left && !ill && !asked {
			w.levels = append(w.levels, now)
		}
	}
	if len(w.levels) == before {
		return
	}
	for _, rate := range j.Config.Change.Moves.Rate {
		most := 2 * (j.share(rate.Percent) + j.beyond())
		if n := within(w.levels, now.Add(-time.Duration(rate.Period))); n > most {
			j.fail("the Secrets of %d servers went to another replica within %s though nobody had to leave, and %d may", n, time.Duration(rate.Period), most)
		}
	}
}

// excuses takes note of whom somebody, or something, has leave.
func (j *judge) excuses(now time.Time) {
	w, until := &j.written, now.Add(excuse)
	anew := !j.anew.at.IsZero() && j.Now.Sub(j.anew.at) < excuse
	if now.Before(w.looked) || anew {
		w.all = until // a clock went back, or an older plan is in force
	}
	w.looked = now
	if j.Rollback != nil || j.Deployment && !j.Settled(j.Now) {
		w.all = until
	}
	if j.Plan.Rollout != nil && j.Plan.Rollout.Replicas != j.Plan.Rollout.From.Replicas {
		w.all = until // those of replicas that are to go leave them, whatever the budget is
	}
	for name := range j.Pins {
		w.excused[name] = until
	}
	for name := range j.Asks {
		w.excused[name] = until
	}
	for ordinal := range max(j.Replicas, j.Plan.Replicas) {
		if !j.serves(ordinal) || slices.Contains(j.cordoned(), ordinal) {
			w.ailing[ordinal] = until
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.OptedOut)) {
		if j.OptedOut[name] {
			w.excused[name] = until
		}
	}
	if j.Plan.Mode != plan.Enforce || j.Glass {
		w.all = until
	}
}

// TestTheJudgeCountsByTheSecrets: a planner that counts none of its moves, so that its budget is never spent, is found out by what it wrote.
func TestTheJudgeCountsByTheSecrets(t *testing.T) {
	for name, forgets := range map[string]bool{"as it is": false, "one that counts nothing": true} {
		t.Run(name, func(t *testing.T) {
			l := level(4, 5, rolloutsJudged()["live"])
			said := judgement(t, l, func() {
				if forgets {
					l.memory.Changes.Ledger = nil
				}
			}, func() {
				judged := l.Watch
				l.Watch = func(of *Life) {
					clear(of.Moves) // the planner's own word
					judged(of)
				}
				l.Pass(time.Hour)
				for i := range 10 {
					l.Loads[fmt.Sprintf("c%02d", 4*i)] = 200
				}
				l.Pass(8 * time.Hour)
			})
			moved := 0
			for i := range 10 {
				if l.Shards[fmt.Sprintf("c%02d", 4*i)] != 0 {
					moved++
				}
			}
			if want := "the Secrets of "; strings.HasPrefix(said, want) != forgets || moved < 3 {
				t.Errorf("the judge says %q, want %q: %t; %d clusters left", said, want, forgets, moved)
			}
		})
	}
}

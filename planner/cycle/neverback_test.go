package cycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// TestAReplicaThatNeverComesBackIsNotWaitedForEver: replica 2 of three died, its clusters are elsewhere, and those of replica 0 grow. Six
// hours after the death the other two are levelled without it, and nothing goes there before it is back. One that people closed, and one
// that a restart would have to wait for, is waited for.
func TestAReplicaThatNeverComesBackIsNotWaitedForEver(t *testing.T) {
	for name, test := range map[string]struct {
		stays  func(w *liveWorld, cluster string) // before the death, what keeps a cluster of replica 2 there
		change func(w *liveWorld)                 // once replica 2 is empty
		back   time.Duration                      // after its death; 0: never
		from   time.Duration                      // when what levels moves first, after the death; 0: within half a day nothing does
		onto   bool                               // replica 2 has clusters in the end

		verdict string // on the candidate, in the end; empty: any
	}{
		"never":                   {change: func(*liveWorld) {}, from: 6 * time.Hour},
		"after four hours":        {change: func(*liveWorld) {}, back: 4 * time.Hour, from: 4 * time.Hour, onto: true},
		"after eight hours":       {change: func(*liveWorld) {}, back: 8 * time.Hour, from: 6 * time.Hour, onto: true},
		"never, with a pin to it": {change: func(w *liveWorld) { w.in.Pins = plan.Pins{w.on(1)[0]: 2} }, from: 6 * time.Hour, onto: true},
		"never, with a Secret that nobody may write": {stays: func(w *liveWorld, cluster string) { w.secret(cluster).Immutable = true },
			change: func(*liveWorld) {}, from: 6 * time.Hour, onto: true},
		"never, with a pin of one that is there": {stays: func(w *liveWorld, cluster string) { w.in.Pins = plan.Pins{cluster: 2} },
			change: func(*liveWorld) {}, from: 6 * time.Hour, onto: true},
		"never, with a pin to a replica that cannot be": {change: func(w *liveWorld) { w.in.Pins = plan.Pins{w.on(1)[0]: 99} }, from: 6 * time.Hour},
		"never, and one is cordoned": {change: func(w *liveWorld) {
			w.in.Cordon = fmt.Sprintf("1=%s", w.in.Now.Add(72*time.Hour).UTC().Format(time.RFC3339))
		}},
		"never, and it is dealt anew": {change: func(w *liveWorld) {
			w.in.Config.Partition, w.in.Config.Evaluate = sim.Config().Partition, config.Evaluate{None: &config.None{}}
		}, verdict: "waits: replica 2 has not worked for long, and clusters would go there"},
		"never, and two more are asked for": {change: func(w *liveWorld) {
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 5}
		}, verdict: "waits: replica 2 has not worked for long: their number stays until it does"},
		"never, in mode default": {change: func(w *liveWorld) {
			w.in.Config.Rollout = config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: w.in.Config.Rollout.StageTimeout}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 30)
			w.cycles(120, func(int) {}) // nothing that moved lately is to blame for the death
			left := 0
			if test.stays != nil {
				test.stays(w, w.on(2)[0])
				left = 1
			}
			w.down[2] = true
			died := w.in.Now
			w.until(t, "replica 2 is empty", 2*time.Hour, func(outcome.Outcome) bool { return len(w.on(2)) == left && w.in.InForce.Rollout == nil })
			for _, cluster := range w.on(0)[:4] {
				w.setLoad(cluster, 40)
			}
			test.change(w)
			was := map[string]int{}
			for _, s := range w.in.Discovered.Secrets {
				was[s.Name] = s.Shard.N
			}
			from := time.Duration(0)
			for w.in.Now.Before(died.Add(12 * time.Hour)) {
				w.down[2] = test.back == 0 || w.in.Now.Before(died.Add(test.back))
				w.step(2 * time.Minute)
				for cluster, at := range was {
					now := w.secret(cluster).Shard.N
					if _, pinned := w.in.Pins[cluster]; pinned {
						continue
					}
					if at != 2 && now == 2 && w.down[2] {
						t.Fatalf("%v after the death %q goes to the dead replica", w.in.Now.Sub(died), cluster)
					}
					if went := at == 0 && now != 0; went && from == 0 {
						from = w.in.Now.Sub(died)
					}
				}
			}
			latest := test.from + 2*time.Hour
			if test.from == 0 {
				latest = 0
			}
			if from < test.from || from > latest {
				t.Errorf("the first moved %v after the death, want %v: %s; %v", from, test.from, w.last.Candidate.Verdict, messages(w.last))
			}
			if onto := len(w.on(2)) > 0; onto != test.onto {
				t.Errorf("replica 2 has %v", w.on(2))
			}
			if got := w.last.Candidate.Verdict; test.verdict != "" && got != test.verdict {
				t.Errorf("the verdict is %q, want %q", got, test.verdict)
			}
			loads := slices.Clone(w.last.Now)
			if test.from > 0 && test.back == 0 && loads[0].TotalLoad.Float() > 1.25*loads[1].TotalLoad.Float() {
				t.Errorf("the loads are %v and %v", loads[0].TotalLoad, loads[1].TotalLoad)
			}
		})
	}
}

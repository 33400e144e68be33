package cycle

import (
	"testing"
	"time"

	"ballast/planner/config"
)

// TestNobodysSecretKeepsAVoteFromItsEnd: one that is pinned to and fro, comes and goes or turns its shard every nine minutes began each
// vote anew, which takes ten, and nothing was ever levelled.
func TestNobodysSecretKeepsAVoteFromItsEnd(t *testing.T) {
	for name, turn := range map[string]func(w *liveWorld, on bool){
		"nobody": func(*liveWorld, bool) {},
		"a pin": func(w *liveWorld, on bool) {
			w.secret("own").Pin = map[bool]string{true: "0", false: "1"}[on]
		},
		"a Secret that comes and goes": func(w *liveWorld, on bool) {
			if !on {
				w.remove("own")
			} else if w.secret("own") == nil {
				w.add("own", 0)
			}
		},
		"the shard of one that opted out": func(w *liveWorld, on bool) {
			w.secret("own").Unmanaged = true
			w.secret("own").Shard.N = map[bool]int{true: 0, false: 1}[on]
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := adopted(t, make([]float64, 40)...)
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(time.Hour), MinSamples: 10}}
			for _, s := range w.in.Discovered.Secrets {
				w.setLoad(s.Name, 10)
			}
			w.add("own", 0)
			w.idle = map[string]bool{"own": true}
			for range 180 {
				w.step(time.Minute)
			}
			for _, s := range w.in.Discovered.Secrets {
				if s.Name != "own" && s.Shard.N == 0 {
					w.setLoad(s.Name, 40)
				}
			}
			waves := len(w.waves)
			for minute := range 3 * 60 {
				if minute%9 == 0 {
					turn(w, minute/9%2 == 0)
				}
				w.step(time.Minute)
			}
			if len(w.waves) == waves {
				t.Errorf("nothing was levelled within three hours: %+v", w.last.Candidate.Verdict)
			}
		})
	}
}

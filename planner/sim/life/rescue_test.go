package life

import (
	"testing"
	"time"
)

// TestADeadReplicaIsEmptiedBesideAnEnvThatIsNotLives: a failover set the env, too, which restarts pods one by one behind the
// one that is dead: it was turned back and begun again for ever, and the dead replica kept its clusters.
func TestADeadReplicaIsEmptiedBesideAnEnvThatIsNotLives(t *testing.T) {
	twenty := 20
	for name, before := range map[string]func(*Life){
		"one Secret that nobody may write": func(l *Life) { l.Refused[l.Clusters[4]] = true; l.Pass(3 * time.Hour) },
		"maxReplicas raised":               func(l *Life) { l.Pass(3 * time.Hour); l.Config.Partition.MaxReplicas = &twenty },
		"broken at installation":           func(*Life) {},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(1, configuration(), 3, "3", loadsOf(1, 30))
			before(l)
			envs := l.Counts["envs"]
			l.Broken[1] = true
			l.Crash(1, false, l.Now)
			l.Pass(2 * time.Hour)
			var left []string
			for name, row := range l.Plan.Clusters {
				if row.Replica == 1 && !l.Refused[name] {
					left = append(left, name)
				}
			}
			if made := l.Counts["envs"] - envs; left != nil || made > 2 {
				t.Errorf("after two hours %v are on the dead replica, and the env was written %d times", left, made)
			}
		})
	}
}

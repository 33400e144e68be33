package life

import (
	"maps"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"ballast/planner/config"
	"ballast/planner/plan"
)

// TestAPlanLostWithItsHistoryIsTheFleetAsItIs: nobody knows what the revisions were, so that they begin at 1, as does a first plan; it
// moves nothing, scales nothing and restarts nothing, whatever ballast was about, and a cluster that stands where levelling would not have
// put it stays there.
func TestAPlanLostWithItsHistoryIsTheFleetAsItIs(t *testing.T) {
	for name, amid := range map[string]bool{"at rest": false, "amid a failover": true} {
		t.Run(name, func(t *testing.T) {
			l := New(1, configuration(), 4, "16", loadsOf(1, 40))
			l.Pass(26 * time.Hour)
			if amid {
				l.dies(1)
				for l.Plan.Rollout == nil {
					l.Pass(act)
				}
				l.Pass(act)
			}
			before, env, moved := l.Plan.Revision, l.Counts["envs"], maps.Clone(l.Moves)
			shards, replicas := maps.Clone(l.Shards), l.Replicas
			l.lose()
			for l.Plan == nil {
				l.Pass(act)
			}
			first := map[string]int{}
			for name, row := range l.Plan.Clusters {
				first[name] = row.Replica
			}
			asIs := l.Plan.Mode == plan.Enforce && l.Plan.Rollout == nil && l.Plan.Replicas == replicas && maps.Equal(first, shards)
			if before < 2 || l.Plan.Revision <= before || !asIs {
				t.Errorf("revision %d came after %d, with %d replicas and a rollout %v; the rows are the Secrets': %t",
					l.Plan.Revision, before, l.Plan.Replicas, l.Plan.Rollout, maps.Equal(first, shards))
			}
			l.Pass(4 * time.Minute)
			if !maps.Equal(l.Shards, shards) || l.Counts["envs"] != env || l.Replicas != replicas || !maps.Equal(l.Moves, moved) {
				t.Errorf("four minutes later %v moved since, before %v; the env was written %d times, %d before; %d replicas",
					l.Moves, moved, l.Counts["envs"], env, l.Replicas)
			}
			if l.Pass(2 * time.Hour); amid && l.orphans() > 0 {
				t.Errorf("two hours later %d clusters have no owner", l.orphans())
			}
		})
	}
}

// TestAPlanLostAmidX0YsStopBringsReplicasBack: with plan and history gone, the env says how many there were, or the Secrets
// where the env is larger, as where live was the mode before.
func TestAPlanLostAmidX0YsStopBringsReplicasBack(t *testing.T) {
	for _, env := range []string{"4", "16"} {
		t.Run("env "+env, func(t *testing.T) {
			c := configuration()
			c.Rollout.Live, c.Rollout.X0Y = nil, &config.X0YRollout{}
			l := New(1, c, 4, env, loadsOf(1, 40))
			l.Pass(26 * time.Hour)
			l.Config.Partition.MinReplicas = ptr.To(5)
			for l.Replicas > 0 {
				l.Pass(act)
			}
			l.lose()
			l.Pass(time.Hour)
			if l.Replicas != 4 || l.Env != env || l.Plan.Replicas != 4 || l.orphans() > 0 {
				t.Errorf("an hour later there are %d replicas with env %s, and %d in the plan; %d clusters have no owner",
					l.Replicas, l.Env, l.Plan.Replicas, l.orphans())
			}
		})
	}
}

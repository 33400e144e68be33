package life

import (
	"slices"
	"testing"
	"time"

	"ballast/planner/plan"
	"ballast/planner/sim"
)

// judge knows what may never be. It looks at a life after each act, and at each write before it is done.
type judge struct {
	*luck
	t testing.TB

	before  *plan.Plan // the plan at the last look
	envs    []time.Time
	written int // of Counts["envs"]

	still     still
	budget    budget
	receivers receivers
	owned     owned
	anew      anew
}

// judged has a life judged from now on.
func (l *luck) judged(t testing.TB) *judge {
	j := &judge{luck: l, t: t, owned: newOwned()}
	l.Watch, l.Wrote = func(*Life) { j.look() }, j.wrote
	return j
}

func (j *judge) fail(format string, args ...any) {
	j.t.Helper()
	j.fatal(j.t, format, args...)
}

func (j *judge) look() {
	if err := j.savesLater(); err != nil {
		j.fail("%v", err)
	}
	j.begunAnew()
	j.restarts()
	j.since()
	j.moves()
	j.ownerless()
	j.forgotten()
	if j.Plan == nil {
		return
	}
	j.changed()
	if j.Replicas < 1 && j.Config.Rollout.X0Y == nil {
		j.fail("the workload stands at %d replicas", j.Replicas)
	}
	j.together()
	for _, name := range j.Clusters {
		j.doubled(name)
	}
	j.before = j.Plan
}

// changed judges a plan beside the one before it.
func (j *judge) changed() {
	if j.before == nil || j.before == j.Plan {
		return
	}
	if j.Plan.Revision < j.before.Revision {
		j.fail("revision %d came after %d", j.Plan.Revision, j.before.Revision)
	}
	if r := j.Plan.Rollout; j.begins() && r.Replicas > max(r.From.Replicas, j.Plan.MaxReplicas) {
		j.fail("a rollout begins from %d to %d replicas, and maxReplicas is %d", r.From.Replicas, r.Replicas, j.Plan.MaxReplicas)
	}
	j.frozenPlan()
	j.heldPlan()
	j.receives()
	j.failedOver()
}

// begins reports whether a rollout began with the present plan.
func (j *judge) begins() bool { return j.Plan.Rollout != nil && j.before.Rollout == nil }

// mostEnvs is how often the env may be written in a day: once by itself, and for what people ask for and what is turned back.
const mostEnvs = 8

func (j *judge) restarts() {
	for ; j.written < j.Counts["envs"]; j.written++ {
		j.envs = append(j.envs, j.Now)
	}
	if n := len(j.envs); n > mostEnvs && j.Now.Sub(j.envs[n-1-mostEnvs]) < 24*time.Hour {
		j.fail("the env was written %d times within %s", mostEnvs+1, j.Now.Sub(j.envs[n-1-mostEnvs]))
	}
}

// doubled: no cluster has two owners.
func (j *judge) doubled(name string) {
	owners := j.Owners(name)
	if len(owners) < 2 || !j.agreed(name) {
		return
	}
	first, last := j.Pods[owners[0]], j.Pods[owners[len(owners)-1]]
	if first.Env > 1 && last.Env > 1 && (!j.anyOptedOut(name) || j.alike(name, first, last)) {
		j.fail("cluster %s is owned by %v", name, owners)
	}
}

// alike reports whether two pods count with the same number of replicas, or the cluster's shard is below both.
func (l *luck) alike(cluster string, a, b *sim.Pod) bool {
	shard, stamped := l.Shards[cluster]
	return a.Env == b.Env || stamped && shard < min(a.Env, b.Env)
}

// agreed reports whether the Secrets of a server carry the same shard: between two writes they do not.
func (l *luck) agreed(name string) bool {
	shard, stamped := l.Shards[name]
	return !slices.ContainsFunc(l.SecretsOf(name), func(other string) bool {
		another, too := l.Shards[other]
		return another != shard || too != stamped
	})
}

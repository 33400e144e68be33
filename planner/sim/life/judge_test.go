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
	highest int64      // revision that plan, history or status showed by then
	envs    []time.Time
	wrotes  int // of Counts["envs"]
	zero    time.Time

	still     still
	budget    budget
	receivers receivers
	owned     owned
	anew      anew
	stops     stops
	restarted restarted
	written   written
	saved     known // with the backup
}

// judged has a life judged from now on.
func (l *luck) judged(t testing.TB) *judge {
	j := &judge{luck: l, t: t, owned: newOwned()}
	l.Watch, l.Wrote, l.onSave = func(*Life) { j.look() }, j.wrote, func() { j.saved = j.knows() }
	return j
}

func (j *judge) fail(format string, args ...any) {
	j.t.Helper()
	j.fatal(j.t, format, args...)
}

func (j *judge) look() {
	j.begunAnew()
	j.restarts()
	j.since()
	j.moves()
	if err := j.savesLater(); err != nil {
		j.fail("%v", err)
	}
	j.ownerless()
	j.forgotten()
	if j.Plan == nil {
		return
	}
	j.budget.works(j)
	j.changed()
	j.tally()
	j.stopped()
	j.together()
	for _, name := range j.Clusters {
		j.doubled(name)
	}
	j.before = j.Plan
}

// recovers reports whether the leader takes a replica that is down for one that may be back at once: its hour holds up no dead one.
func (j *judge) recovers(replica int) bool {
	f := j.Config.Failover
	return f != nil && j.memory.Changes.Replicas.Recovers(replica, time.Duration(f.After), j.leaders())
}

// comesBack is how long replicas take to be asked for again once a plan stops them no more: a write that was lost is done again.
const comesBack = 2 * time.Minute

// stopped: no replica is asked for only while a plan of ours stops them all.
func (j *judge) stopped() {
	if j.Replicas > 0 || j.Plan.StopsAll() {
		j.zero = time.Time{}
		return
	}
	if j.zero.IsZero() {
		j.zero = j.Now
	}
	if j.Config.Rollout.X0Y == nil || j.Now.Sub(j.zero) > comesBack {
		j.fail("the workload stands at %d replicas since %s", j.Replicas, j.zero)
	}
}

// changed judges a plan beside the one before it.
func (j *judge) changed() {
	if j.before == j.Plan {
		return
	}
	if j.Plan.Revision <= j.highest {
		j.fail("revision %d came after %d", j.Plan.Revision, j.highest)
	}
	if j.highest = j.Plan.Revision; j.before == nil {
		return
	}
	if r := j.Plan.Rollout; j.begins() && r.Replicas > max(r.From.Replicas, j.Plan.MaxReplicas) {
		j.fail("a rollout begins from %d to %d replicas, and maxReplicas is %d", r.From.Replicas, r.Replicas, j.Plan.MaxReplicas)
	}
	j.restartsOnceADay()
	j.frozenPlan()
	j.heldPlan()
	j.receives()
	j.failedOver()
	j.sizes()
}

// begins reports whether a rollout began with the present plan.
func (j *judge) begins() bool { return j.Plan.Rollout != nil && j.before.Rollout == nil }

// mostEnvs is how often the env may be written in a day: once by itself, and for what people ask for and what is turned back.
const mostEnvs = 8

func (j *judge) restarts() {
	for ; j.wrotes < j.Counts["envs"]; j.wrotes++ {
		j.envs = append(j.envs, j.Now)
	}
	if n := len(j.envs); n > mostEnvs && j.Now.Sub(j.envs[n-1-mostEnvs]) < 24*time.Hour {
		j.fail("the env was written %d times within %s", mostEnvs+1, j.Now.Sub(j.envs[n-1-mostEnvs]))
	}
}

// restartsAll reports whether a rollout has all pods restart: by another env, or another number of a Deployment's replicas.
func (j *judge) restartsAll(r plan.Rollout) bool {
	if j.Plan.Target.Kind == plan.Deployment {
		return r.Replicas != r.From.Replicas && !j.Plan.FreeReplicas
	}
	return r.ControllerReplicas != r.From.ControllerReplicas
}

// restartsOnceADay: a rollout that has all pods restart begins by itself once in change.restarts.every.
func (j *judge) restartsOnceADay() {
	r := j.Plan.Rollout
	if !j.begins() || !j.restartsAll(*r) {
		return
	}
	if n := j.Counts["begun anew"]; n != j.restarted.times {
		j.restarted = restarted{times: n} // what was before is not known to a leader of an older history
	}
	every, since := time.Duration(j.Config.Change.Restarts.Every), j.leaders().Sub(j.restarted.at)
	if j.levels() && !j.restarted.at.IsZero() && since < every {
		j.fail("the fleet restarts %s after it did last, by itself: %s", since, j.memory.Changes.Why)
	}
	j.restarted.at = j.leaders()
}

// restarted is when a rollout that restarts the fleet began last.
type restarted struct {
	times int // of Counts["begun anew"]
	at    time.Time
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

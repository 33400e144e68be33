// Package change says when anything may change: how much of a fleet may move, whether replicas may come, go, grow or
// shrink now.
package change

import "slices"

// Cause is why a cluster changed its replica. The set is closed.
type Cause string

// The causes. Turning a wave back counts with the cause of the wave.
const (
	Balance  Cause = "Balance"  // a better partition
	Failover Cause = "Failover" // off a replica that is unwell
	Drain    Cause = "Drain"    // off a replica that a person cordoned, or that goes
	Healing  Cause = "Healing"  // put back after another writer: see ForeignShard
	Rollback Cause = "Rollback" // back to an earlier plan, as a person asked
	Pin      Cause = "Pin"      // a person's pin
)

// Causes lists the closed set.
func Causes() []Cause { return []Cause{Balance, Failover, Drain, Healing, Rollback, Pin} }

func (c Cause) known() bool { return slices.Contains(Causes(), c) }

// Limited reports whether moves of this cause wait for the budget. A pin is a person's word. Healing brings back what
// is in force, and has a pace of its own: to withhold it would leave the fleet to the other writer. Of a failover only
// what the other replicas do not take on freely waits, and it has been chosen by then. All of them still count, so that
// everything else waits for them.
func (c Cause) Limited() bool { return c != Pin && c != Healing && c != Failover }

// Levels reports whether a rollout for that cause only levels loads: it can be given up.
func (c Cause) Levels() bool { return c == Balance || c == "" }

// WaitsFor reports whether moves of this cause wait for earlier ones of another. Nobody has the clusters of a replica
// that is unwell, so that they wait for failovers alone. What people ask for waits neither for levelling, which would
// spend the budget of each day, nor for pins, of which who may create Secrets makes as many as he likes, nor for what
// was put back after another writer. Levelling waits for everything.
func (c Cause) WaitsFor(other Cause) bool {
	switch c {
	case Failover:
		return other == Failover
	case Drain, Rollback:
		return other == Failover || other == Drain || other == Rollback
	}
	return true
}

// ForeignShard is what a healed Secret said before: another writer's shard, and what is known of who owned the cluster
// then.
type ForeignShard struct {
	Replica int   // that the plan gives the cluster
	Of      int   // replicas that Argo CD counts with: ARGOCD_CONTROLLER_REPLICAS, in Deployment mode spec.replicas
	Valid   bool  // the value is a number
	Shard   int   // that number
	Seen    []int // replicas whose metrics carried the cluster; nil: not known
	Idle    bool  // no Application has this destination
}

// Moved reports whether the cluster had another owner in reality, so that healing it is a move: Argo CD takes a changed
// shard at once, a negative one for no owner and one beyond the replicas for 0. What is no number leaves the cluster to
// Argo CD's algorithm; only metrics know whom that chose, and without them it counts. Nothing moved where nobody caches
// the cluster, and where Argo CD believes in one replica, for then every pod owns every cluster.
func (f ForeignShard) Moved() bool {
	switch {
	case f.Idle || f.Of <= 1:
		return false
	case !f.Valid:
		return len(f.Seen) != 1 || f.Seen[0] != f.Replica
	case f.Shard >= f.Of:
		return f.Replica != 0
	}
	return f.Shard != f.Replica // a negative one never is
}

package cycle

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// drainTimeout is the deadline of the one stage in which nothing is reconciled.
const drainTimeout = 5 * time.Minute

// modeOf is the rollout mode that the configuration names.
func modeOf(r config.Rollout) string {
	switch {
	case r.Live != nil:
		return plan.ModeLive
	case r.X0Y != nil:
		return plan.ModeX0Y
	}
	return plan.ModeDefault
}

func (c *cycle) rolloutOptions() rollout.Options {
	r := c.in.Config.Rollout
	o := rollout.Options{Mode: modeOf(r), StageTimeout: time.Duration(r.StageTimeout), DrainTimeout: drainTimeout,
		MaxClusters: c.in.Config.Partition.MaxClustersPerReplica, Budget: c.budget(), Ends: c.ends(), TurnsBack: c.turnsBack}
	switch {
	case r.Live != nil:
		o.MaxMovesPerWave = r.Live.MaxMovesPerWave
	case r.Default != nil:
		o.RolloutRestart = r.Default.RolloutRestart
	}
	cause := c.out.Memory.Changes.Cause
	if (cause == change.Failover || cause == change.Drain) && o.Mode != plan.ModeLive {
		// An unwell pod keeps all behind it from starting (OrderedReady): for its sake, or that of one replica that a person
		// wants empty, nobody else may stop.
		o.Mode, o.RolloutRestart = plan.ModeDefault, false
	}
	o.Unwell, o.Insists = c.unwell(), byPerson(cause)
	if cause != change.Pin { // that is a person's word, and where it says
		o.Closed = c.closed()
	}
	return o
}

// closed are the replicas that may receive nothing: those that are unwell, whatever holds failover back, and the cordoned.
func (c *cycle) closed() map[int]bool {
	closed := c.unwell()
	for _, replica := range c.out.Cordoned {
		closed[replica] = true
	}
	return closed
}

func (c *cycle) unwell() map[int]bool {
	unwell := map[int]bool{}
	for _, s := range c.out.Replicas.Sick {
		unwell[s.Replica] = true
	}
	return unwell
}

// ends says why the rollout under way is to end where it may: what is left of it is decided anew when the reason is gone. One
// that waited instead would keep people's wishes and a failover waiting, too.
func (c *cycle) ends() string {
	cause := c.out.Memory.Changes.Cause
	switch {
	case c.in.Paused && !byPerson(cause):
		return "a person paused it"
	case c.tripped() && !byPerson(cause):
		return "a wave did harm and nobody has cleared it"
	case cause != change.Balance && cause != "":
	case len(c.closed()) > 0:
		return "a replica is unwell or cordoned"
	case c.in.Rollback != nil:
		return "a person asked for an earlier plan"
	}
	return ""
}

// budget is how many clusters may change their replica now, for the cause of the rollout under way. A person's own word
// waits neither for a pause nor for a trip to be cleared: to take a change back is what both are for.
func (c *cycle) budget() int {
	cause := c.out.Memory.Changes.Cause
	if c.stopped() && !byPerson(cause) {
		return 0 // a wave that is under way ends, and no other begins
	}
	if cause != "" && !cause.Limited() {
		return math.MaxInt
	}
	return c.out.Budget.Left
}

// stopped reports whether ballast may decide nothing by itself.
func (c *cycle) stopped() bool { return c.in.Paused || c.tripped() }

func (c *cycle) tripped() bool { return c.in.Tripped != "" || c.out.Memory.Changes.Trip != nil }

func byPerson(cause change.Cause) bool {
	return cause == change.Pin || cause == change.Rollback || cause == change.Drain
}

// seen is what stands, with what the pods say of themselves.
func (c *cycle) seen() rollout.Seen {
	s := Seen(c.out.Fleet, c.in.Workload)
	s.Pods, s.Asked, s.Owned = c.in.Observed.Pods, c.in.Observed.Sight.Asked, c.out.Verdict.Owned
	s.Orphans = c.bereft()
	for _, d := range c.out.Verdict.Doubled {
		s.Doubled = append(s.Doubled, d.Cluster)
	}
	s.InCluster, s.Accepted = inCluster(c.out.Fleet, c.in), c.in.Discovered.AcceptDiscovery
	s.Passing = c.out.Memory.Passing
	return s
}

func inCluster(fleet discover.Fleet, in Inputs) rollout.InCluster {
	for _, cl := range fleet.Clusters {
		if cl.Implicit {
			return rollout.InCluster{Implicit: true, Algorithm: string(algorithm(in))}
		}
	}
	return rollout.InCluster{}
}

// constantEnv is what ARGOCD_CONTROLLER_REPLICAS is held at for good in mode live: with it above every replica there will
// ever be, and every Secret explicit, replicas come and go and no pod has to read it again. One that was found larger stays.
func (a *adoption) constantEnv() int { return max(a.next.MaxReplicas, a.next.ControllerReplicas) }

// prepares reports whether the one restart that the mode live needs is still to come.
func (c *cycle) prepares(a *adoption) bool {
	ours := a.next.Target.Kind == plan.StatefulSet && !a.next.Unmanaged
	return ours && c.in.Config.Rollout.Live != nil && a.next.ControllerReplicas != a.constantEnv()
}

// tellRestart says in Observe and Hold what mode live will do once: people hear of a restart before it comes.
func (c *cycle) tellRestart(a *adoption) {
	if a.next.Rollout != nil || !c.prepares(a) || a.next.Mode == plan.Enforce {
		return
	}
	c.problem(Problem{Phase: PhaseRollout, Kind: "RestartAhead", Message: fmt.Sprintf(
		"rollout.live restarts the application-controller once, when the mode becomes Enforce: %s changes from %s to %d and stays there, so that nothing restarts for scaling afterwards",
		plan.EnvReplicas, envFound(a.next.ControllerReplicas), a.constantEnv())})
}

func envFound(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

// prepare is the rollout that the mode live needs once.
func (c *cycle) prepare(a *adoption) *proposed {
	if !c.prepares(a) {
		return nil
	}
	why := fmt.Sprintf("prepares live rollouts: %s becomes %d for good, "+
		"which restarts the application-controller once, and scaling restarts nothing afterwards",
		plan.EnvReplicas, a.constantEnv())
	return &proposed{c.wantOf(a, a.next.Replicas, nil), why, change.Balance}
}

// destination remembers where a live rollout goes: its plan has the present wave only.
func destination(mode string, now plan.Plan, want rollout.Want) map[string]int {
	if mode != plan.ModeLive {
		return nil
	}
	target := map[string]int{}
	for _, m := range rollout.Moves(now, plan.Plan{Clusters: want.Rows}) {
		target[m.Cluster] = m.To
	}
	return target
}

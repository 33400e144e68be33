package cycle

import (
	"time"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// lostPast is what the world still shows of a past that no history has any more.
type lostPast struct{ *outcome.Draft }

// remembersFor is how old what a leader remembers may be: the history is written every five minutes, and another leader takes over in less
// than one. What is older was put back, or nobody has looked meanwhile.
const remembersFor = 15 * time.Minute

// restart counts the fleet's last restart where nobody remembers it, since plan and history are lost, or are older than the fleet: else
// rollout.x0y could stop every replica twice within change.restarts.every. It is for a fleet that ballast held: most Secrets have their
// shard, and the env needs no restart of rollout.live's.
func (f lostPast) restart(g *ground.Ground) {
	if f.remembers() || !mostStamped(g.Fleet) || g.Env().Prepares() {
		return
	}
	if m, shown := &f.Out.Memory.Changes, shownRestart(f.In); shown.After(m.Restarted) {
		m.Restarted = shown
	}
}

// remembers reports whether what is remembered is of just now.
func (f lostPast) remembers() bool {
	first := f.In.InForce == nil && f.In.Last == nil
	if first || len(f.In.Memory.Known.Clusters) == 0 {
		return !f.In.Memory.Changes.Restarted.IsZero()
	}
	looked := f.In.Memory.Changes.Ownership.Newest
	return looked.IsZero() || f.In.Now.Sub(looked) < remembersFor
}

// mostStamped reports whether more than half of the Secrets that ballast may write have a shard.
func mostStamped(fleet discover.Fleet) bool {
	ours, stamped := 0, 0
	for _, c := range fleet.Clusters {
		if !standing.Managed(c) {
			continue
		}
		ours++
		if c.Explicit.State == discover.ShardValid {
			stamped++
		}
	}
	return 2*stamped > ours
}

// shownRestart is when the fleet may have restarted last, by its pods; zero: not within change.restarts.every, or they do not tell. After a
// restart of all of them none runs for longer, so that the oldest tells how long ago it is at least.
func shownRestart(in input.Inputs) time.Time {
	every := time.Duration(in.Config.Change.Restarts.Every)
	if every > 0 && (in.Workload.Replicas == 0 || ground.Rolling(in, plan.Plan{})) {
		return in.Now // it begins, or goes on
	}
	var oldest time.Time
	for _, p := range in.Observed.Pods {
		if !p.Started.IsZero() && (oldest.IsZero() || p.Started.Before(oldest)) {
			oldest = p.Started
		}
	}
	if oldest.After(in.Now) { // by a node's clock that is ahead
		oldest = in.Now
	}
	if in.Now.Sub(oldest) >= every {
		return time.Time{}
	}
	return oldest
}

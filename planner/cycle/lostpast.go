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

// restart counts the fleet's last restart where plan and history are lost: else rollout.x0y could stop every replica twice within
// change.restarts.every. It is for a fleet that ballast held: most Secrets have their shard, and the env needs no restart of rollout.live's.
func (f lostPast) restart(g *ground.Ground) {
	first := f.In.InForce == nil && f.In.Last == nil
	remembers := !f.In.Memory.Changes.Restarted.IsZero() || len(f.In.Memory.Known.Clusters) > 0 && !first
	held := mostStamped(g.Fleet) && !g.Env().Prepares()
	if held && !remembers {
		f.Out.Memory.Changes.Restarted = shownRestart(f.In)
	}
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

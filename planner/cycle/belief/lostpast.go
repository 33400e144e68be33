package belief

import (
	"slices"
	"time"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// lostPast is what the world still shows of a past that no history has any more.
type lostPast struct{ *outcome.Draft }

// RestoreLastRestart counts the fleet's last restart where nobody remembers it, since plan and history are lost, or are
// older than the fleet: else rollout.x0y could stop every replica twice within change.restarts.every. It is for a fleet
// that ballast held: most Secrets have their shard, and the env needs no restart of rollout.live's.
func RestoreLastRestart(d *outcome.Draft, g *ground.Ground) {
	f := lostPast{d}
	m, seen := &f.Out.Memory.Changes, podsSeen(f.In)
	if f.lost() && mostStamped(g.Fleet) && !g.Env().Prepares() {
		m.Restarted = f.lastRestart(seen)
	}
	if seen {
		m.Looked = f.In.Now
	}
}

// lost reports whether the fleet may have restarted and nobody remembers it.
func (f lostPast) lost() bool {
	m := f.Out.Memory.Changes
	if !m.Looked.IsZero() {
		return sizing.Blind(f.In, m)
	}
	first := f.In.InForce == nil && f.In.Last == nil || len(f.In.Memory.Known.Clusters) == 0
	return first || !m.Restarted.IsZero()
}

// lastRestart is what is remembered of it, or what the pods show that nobody remembers. Where nobody ever saw a pod it
// is taken to be now, until one is seen.
func (f lostPast) lastRestart(seen bool) time.Time {
	m := f.Out.Memory.Changes
	shown := ShownRestart(f.In)
	underWay := f.In.InForce != nil && f.In.InForce.Rollout != nil
	switch {
	case !seen && m.Looked.IsZero() && m.Restarted.IsZero():
		return f.In.Now
	case !seen:
		return m.Restarted
	case m.Looked.IsZero() && !underWay:
		return shown // whatever it was taken to be
	case shown.After(m.Looked) && shown.After(m.Restarted):
		return shown
	}
	return m.Restarted
}

// podsSeen reports whether the fleet's pods tell of a restart, or that there was none.
func podsSeen(in input.Inputs) bool {
	return in.Workload.Replicas == 0 || ground.Rolling(in, plan.Plan{}) ||
		slices.ContainsFunc(in.Observed.Pods, func(p observed.Pod) bool { return p.Ready || !p.Started.IsZero() })
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

// ShownRestart is when the fleet may have restarted last, by its pods; zero: not within change.restarts.every, or they
// do not tell. After a restart of all of them none runs for longer, so that the oldest tells how long ago it is at
// least.
func ShownRestart(in input.Inputs) time.Time {
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

package snapshot

import (
	"fmt"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/config/changerules"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/safety"
	"ballast/planner/cycle/sizing"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/readiness"
)

// Judge asks every gate what may begin.
func (s *Snapshot) Judge(tell func(problem.Problem)) {
	s.Looked = s.Situation()
	s.Verdicts = gate.Judge(gate.Table(), s.Looked, tell)
}

// Situation works out what the gates look at.
func (s *Snapshot) Situation() gate.Situation {
	now := gate.Situation{BreakGlass: s.In.BreakGlass, Paused: s.In.Paused, Tripped: safety.Tripped(s.In, s.Changes),
		First:   s.In.InForce == nil,
		Partial: s.Partial, Mode: s.Next.Mode, UnderWay: s.Next.Rollout != nil}
	now.Starved = now.Tripped && safety.StopsFor(change.Failover, s.In, s.Changes)
	if trip := s.Changes.Trip; trip != nil {
		now.Failing = trip.Cause
	}
	if !now.AtRest() {
		return now
	}
	now.HeldUntil, now.Unstamped = s.In.Memory.HeldUntil(s.In.Now), unstamped(s.Ground)
	now.MoveBlock = MoveBlock(s)
	now.Keyless = s.In.Keyless != "" && ModeOf(s.In.Config.Rollout) == plan.ModeX0Y
	renumbered := s.In.Workload.Renumbered(s.Next.Widest()) != ""
	now.ShardAhead = renumbered && s.Own != nil
	now.Renumbered = renumbered && s.Own == nil
	now.OnlyReplica0 = s.In.Workload.OnlyReplica0(s.Next.Widest()) != ""
	now.Scaled = scaledDeployment(s.Next)
	now.StopAgain, now.RestartAgain = stopAgain(now.HeldUntil), restartAgain(s)
	now.Unmanaged, now.ContainerGone = s.Next.Unmanaged, s.In.Workload.ContainerGone
	now.Unenforced = s.In.Enforcement != nil && !*s.In.Enforcement
	if s.In.Config.Rollout.Live == nil {
		return now
	}
	seen := s.Seen()
	seen.Secrets = slices.DeleteFunc(seen.Secrets, func(stamp observed.Secret) bool { // what the plan has no room for stays where it is
		_, planned := s.Next.Clusters[stamp.Name]
		return !planned && !stamp.Immutable && !stamp.Unmanaged
	})
	now.Missing, now.OwnersUnknown = readiness.Missing(s.Next, seen), readiness.OwnersUnknown(seen)
	now.EnvLacks = readiness.EnvLacks(s.Next, seen)
	now.Fault = seen.Fault(s.Next)
	now.Restart = s.Env().RestartWaits()
	return now
}

// unstamped are the Secrets whose cluster is still owned by an algorithm. An algorithm answers otherwise as soon as the
// number of replicas changes, in some pods before others: two owners. So every present owner is written first.
func unstamped(g *ground.Ground) []string {
	var names []string
	for i := range g.Fleet.Clusters {
		cl := &g.Fleet.Clusters[i]
		if cl.Explicit.State == discover.ShardValid || cl.Immutable || cl.Skip {
			continue
		}
		if _, planned := g.Next.Clusters[cl.Shard.ID]; planned { // what the plan has no room for is nobody's to write
			names = append(names, cl.Shard.ID)
		}
	}
	return names
}

// scaledDeployment is why next to nothing begins on a Deployment whose replicas are people's: its pods read their
// number once, at their start, so those of before and after a change own by different numbers, and nothing restarts
// them.
func scaledDeployment(p plan.Plan) string {
	if p.Target.Kind != plan.Deployment || !p.FreeReplicas {
		return ""
	}
	return "pods of a Deployment read their number of replicas once, at their start, so that with partition.replicas: workload a cluster may have two owners after each change: " +
		"only a failover begins, and what follows replicas that were taken away; set partition.replicas to a number, or leave it out, or run the controller as a StatefulSet"
}

// stopAgain says until when another stop of every replica waits, and why; empty: they may stop.
func stopAgain(heldUntil time.Time) string {
	if heldUntil.IsZero() {
		return ""
	}
	return fmt.Sprintf("waits until %s, since a rollout failed or went back to an earlier plan, and rollout.x0y stops every replica",
		heldUntil.UTC().Format(time.RFC3339))
}

// restartAgain says until when another restart of every replica waits, and why; empty: they may restart.
func restartAgain(s *Snapshot) string {
	again, every := sizing.RestartAgain(s.In, s.Changes), time.Duration(s.In.Config.Change.Restarts.Every)
	switch {
	case again.IsZero():
		return ""
	case sizing.Blind(s.In, s.Changes):
		return fmt.Sprintf("waits until a pod is seen, since every replica restarts for it, and nobody saw whether they just did "+
			"(change.restarts.every is %s); rollout.live restarts none", every)
	}
	return fmt.Sprintf("waits until %s, since every replica restarts for it, and did so at %s "+
		"(change.restarts.every is %s); rollout.live restarts none",
		again.UTC().Format(time.RFC3339), s.Changes.Restarted.UTC().Format(time.RFC3339), every)
}

// MoveBlocks is why change.moves lets nothing that levels begin now, beside its rates.
func MoveBlocks(s *Snapshot) []change.Block {
	var h change.Past
	if n := len(s.Changes.Ledger); n > 0 {
		h.Last = s.Changes.Ledger[n-1].At.Unix()
	}
	return changerules.OfMoves(s.In.Config.Change).MayMove(s.In.Now, h)
}

// MoveBlock words the first of them; empty: there is none.
func MoveBlock(s *Snapshot) string {
	blocks := MoveBlocks(s)
	if len(blocks) == 0 {
		return ""
	}
	return worded(blocks[0])
}

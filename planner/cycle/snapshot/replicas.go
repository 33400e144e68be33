package snapshot

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/failover/health"
	"ballast/planner/placement"
)

// What may be done with a replica, by how it is:
//
//	                     levelled   receives by failover   receives by a wave   emptied
//	cordoned             -          -                      of pins alone        as a person asked
//	unwell               -          -                      of pins alone        by failover
//	unwell for long      around it  -                      of pins alone        done
//	not ready            -          -                      -                    -
//	silent (mode live)   -          -                      -                    -
//
// UnwellOrCordoned, LongDown and LevelWaits are the first column, beside the gate liveBlind for what is silent;
// CannotReceive with the cordoned is the second; Closed and answers.CannotReceive are the third.

// Closed are the replicas that may receive nothing: those that are unwell, whatever holds failover back, and the
// cordoned.
func (s *Snapshot) Closed() map[int]bool {
	closed := s.unwell()
	for _, replica := range s.Cordoned {
		closed[replica] = true
	}
	return closed
}

func (s *Snapshot) unwell() map[int]bool {
	unwell := map[int]bool{}
	for _, s := range s.Replicas.Sick {
		unwell[s.Replica] = true
	}
	return unwell
}

// UnwellOrCordoned reports whether a replica is unwell or cordoned, but for those that nobody waits for: meanwhile
// nothing is levelled.
func (s *Snapshot) UnwellOrCordoned() bool {
	longDown := s.LongDown()
	return len(s.Cordoned) > 0 || slices.ContainsFunc(s.Replicas.Sick, func(sick health.Sick) bool { return !longDown[sick.Replica] })
}

// LevelWaits says why nothing is levelled while replicas are as they are; empty: they keep it from nothing.
func (s *Snapshot) LevelWaits() string {
	if s.UnwellOrCordoned() {
		return "a replica is unwell or cordoned, and nothing is levelled out meanwhile"
	}
	if replica, down := s.down(); down {
		return fmt.Sprintf("replica %d is not ready, and nothing is levelled out onto it", replica)
	}
	return ""
}

// down names a replica that nobody works for now, as far as pods are seen: a new leader does not know for how long it
// has been so, and would undo what the last one did about it.
func (s *Snapshot) down() (int, bool) {
	if !s.In.Observed.Known {
		return 0, false
	}
	longDown := s.LongDown()
	for replica := range s.Next.Replicas {
		if !standing.Works(s.In.Observed.Pods, replica) && !longDown[replica] {
			return replica, true
		}
	}
	return 0, false
}

// longDownAfter is for how long a replica that does not work is waited for: a node that is replaced is back by then.
const longDownAfter = 6 * time.Hour

// LongDown are the replicas that nobody waits for any more: they have not worked for long, and no cluster that may
// leave is on them. Nothing goes there, and the others are levelled without them. In the modes that restart pods one
// that does not start keeps those behind it from starting: there they are waited for.
func (s *Snapshot) LongDown() map[int]bool {
	if s.In.Config.Rollout.Live == nil || s.Replicas.Held != "" {
		return nil
	}
	longDown := map[int]bool{}
	for _, sick := range s.Replicas.Sick {
		down := s.Changes.Replicas.Replicas[sick.Replica].Down
		if long := !down.IsZero() && s.In.Now.Sub(down) >= longDownAfter; long && !s.mayLeave(sick.Replica) {
			longDown[sick.Replica] = true
		}
	}
	return longDown
}

// mayLeave reports whether a replica has clusters that neither a pin nor their Secret holds, nor those of another
// Secret of their server: whom failover can give to another one.
func (s *Snapshot) mayLeave(replica int) bool {
	held := map[string]bool{}
	fixed := func(cl discover.Cluster) bool {
		pin, pinned := s.Pins[cl.Shard.ID]
		pinned = pinned && pin < s.Next.Running() // else it is refused or waits, and keeps its cluster nowhere
		return !standing.Managed(cl) || cl.Immutable || pinned
	}
	for _, cl := range s.Fleet.Clusters {
		if !cl.Alone && fixed(cl) {
			held[cl.Shard.Server] = true
		}
	}
	return slices.ContainsFunc(s.Fleet.Clusters, func(cl discover.Cluster) bool {
		row, planned := s.Next.Clusters[cl.Shard.ID]
		trapped := !cl.Alone && held[cl.Shard.Server]
		there := planned && row.Replica == replica
		return there && !fixed(cl) && !trapped
	})
}

// CannotReceive are the replicas that do not work now, unwell or not yet, whatever holds failover back, and those that
// do not say what they own, in mode live, which would not know whether they took a cluster.
func (s *Snapshot) CannotReceive() []int {
	shut := slices.Clone(s.Replicas.Down)
	for _, s := range s.Replicas.Sick {
		shut = append(shut, s.Replica)
	}
	for _, p := range s.In.Observed.Pods {
		if s.Looked.OwnersUnknown != "" && !p.Answered {
			shut = append(shut, p.Replica)
		}
	}
	for replica := range s.Next.Running() {
		if s.Own != nil && !s.Own[replica] {
			shut = append(shut, replica)
		}
	}
	return s.sparesFixed(shut)
}

// sparesFixed adds the replica that pods which start now take themselves for, while another can receive: its clusters
// would get a second owner by the next pod that starts.
func (s *Snapshot) sparesFixed(shut []int) []int {
	fixed, _ := strconv.Atoi(s.In.Workload.FixedShard)
	for replica := range s.Own {
		if replica != fixed && !slices.Contains(shut, replica) && !slices.Contains(s.Cordoned, replica) {
			return append(shut, fixed)
		}
	}
	return shut
}

// Bins are replicas that carry nothing yet. Those that are unwell, cordoned, not ready or silent are closed.
func (s *Snapshot) Bins(replicas int) []placement.Bin {
	bins, closed := make([]placement.Bin, replicas), append(s.CannotReceive(), s.Cordoned...)
	full := sizing.Cramped(s.In)
	for replica := range bins {
		bins[replica].Open, bins[replica].Cramped = !slices.Contains(closed, replica), full[replica]
	}
	return bins
}

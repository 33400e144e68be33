package wish

import (
	"fmt"
	"time"

	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/diff"
	"ballast/planner/size"
)

// roomAgain is how long nothing is levelled to a replica whose node had no room for its size, from the last time on that this was seen.
const roomAgain = time.Hour

// NodeRoom is what nodes have no room for.
type NodeRoom struct{ question.Question }

// NoRoom remembers the replicas whose nodes have no room for their size.
func (q NodeRoom) NoRoom(beyond map[int]size.Resources) map[int]time.Time {
	var all map[int]time.Time
	remember := func(replica int, at time.Time) {
		if all == nil {
			all = map[int]time.Time{}
		}
		all[replica] = at
	}
	for replica, at := range q.Memory.NoRoom {
		if q.Now.Sub(at) < roomAgain && replica < q.Replicas {
			remember(replica, at)
		}
	}
	for _, u := range q.Unmet {
		if u.NoRoom() && u.Replica >= 0 && u.Replica < q.Replicas {
			remember(u.Replica, q.Now)
		}
	}
	for replica := range beyond {
		remember(replica, q.Now)
	}
	for replica, g := range q.Memory.GivenUp {
		if !g.At.IsZero() && !q.Uniform() {
			remember(replica, q.Now)
		}
	}
	return all
}

// Tight names the pods whose nodes have no room for their size.
func (q NodeRoom) Tight() (all []problem.Problem) {
	for _, u := range q.Unmet {
		if !u.NoRoom() {
			continue
		}
		mend := "the node tries again"
		if u.State == diff.PodInfeasible {
			mend = "delete the pod once a larger node has room for it"
		}
		all = append(all, problem.Problem{Phase: problem.PhaseSize, Subject: u.Pod, Kind: "NodeFull", Message: fmt.Sprintf(
			"the node of pod %q has no room for the size of replica %d (%s): %s; no cluster is levelled to it for an hour", u.Pod, u.Replica, u.State, mend)})
	}
	return all
}

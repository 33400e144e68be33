package resize

import (
	"fmt"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/problem"
	"ballast/planner/diff"
	"ballast/planner/size"
)

// roomAgain is how long nothing is levelled to a replica whose node had no room for its size, from the last time on that this was seen.
const roomAgain = time.Hour

// nodeRoom is what nodes have no room for.
type nodeRoom struct{ Question }

// noRoom remembers the replicas whose nodes have no room for their size.
func (q nodeRoom) noRoom(beyond map[int]size.Resources) map[int]time.Time {
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
		if !g.At.IsZero() && !q.uniform() {
			remember(replica, q.Now)
		}
	}
	return all
}

// tight names the pods whose nodes have no room for their size.
func (q nodeRoom) tight() (all []problem.Problem) {
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

// left shows what of their sizes pods are not asked for while they run: each gets it when it is made anew.
func (j *judge) left() {
	for _, u := range j.Unmet {
		stands, want := quantitiesOf(&u.Stands), quantitiesOf(&u.Left)
		for _, name := range resources() {
			from, to := stands.Requests[name], want.Requests[name]
			_, differs := want.Requests[name]
			if !differs {
				from, to = stands.Limits[name], want.Limits[name]
				_, differs = want.Limits[name]
			}
			if !differs || u.Replica < 0 {
				continue
			}
			direction := change.Up
			if to.Cmp(from) < 0 {
				direction = change.Down
			}
			j.blocked(Blocked{Replica: j.shown(u.Replica), Resource: name, Direction: direction, Reason: change.UpdatePolicy,
				From: sizeText(name, from), To: sizeText(name, to), Why: fmt.Sprintf("pod %q, %s: %s", u.Pod, u.State, u.Words)})
		}
	}
}

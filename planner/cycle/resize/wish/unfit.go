package wish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/size"
)

const (
	// unfitAfter is for how long a node must say that it never has room: pods are moved and nodes replaced meanwhile.
	unfitAfter = time.Hour
	// UnfitFor is how long a replica then stays as large as its pod is, before it is tried again.
	UnfitFor = 24 * time.Hour
)

// lacksCapacity is what the kubelet, or an API server that knows the node, says where the node is too small. A size is
// Infeasible for other reasons, too, as beside a static CPU manager, and there a pod that is made anew has it.
const lacksCapacity = "capacity"

// Stay has a replica whose node never has room for its size stay as large as its pod is. A pod that is made anew with
// the larger size may find no node, and nobody works for the replica. Where the node cap is known some node has that
// room: there the size waits for the pod that is made anew.
func (w *Wishes) Stay(q question.Question, v View, nodes map[string]resource.Quantity) {
	w.Unfit, w.Beyond = NodeRoom{Question: q}.unfit(), map[int]size.Resources{}
	for _, replica := range slices.Sorted(maps.Keys(w.Unfit)) {
		u, wanted := w.Unfit[replica], w.Sizes[replica]
		less := Within(wanted, noLess(quantity.Of(&u.Has), v.Found), nodes)
		if limit, limited := less.Limits[size.Memory]; limited {
			less.Limits[size.Memory] = size.NotBelow(limit, v.used(q)[replica], nil)
		}
		if u.Stays.IsZero() || quantity.Same(wanted, less, size.CPU) && quantity.Same(wanted, less, size.Memory) {
			continue
		}
		w.Beyond[replica], w.Sizes[replica] = wanted, less
		if w.Asked == nil {
			w.Asked = map[int]bool{}
		}
		w.Asked[replica] = true
	}
}

// noLess is of each amount the larger one: what a pod's status says it has is its writer's word, and the template's is
// no less.
func noLess(has size.Resources, found *plan.Resources) size.Resources {
	all, template := quantity.Over(has, size.Resources{}), quantity.Of(found)
	for _, of := range []struct{ mine, theirs map[string]resource.Quantity }{{all.Requests, template.Requests}, {all.Limits, template.Limits}} {
		for name, q := range of.theirs {
			if stands, is := of.mine[name]; is && stands.Cmp(q) < 0 {
				of.mine[name] = q
			}
		}
	}
	return all
}

// Within is a size that requests no more than has, but for what the nodes are known to give. A limit takes no room of a
// node's; one that equals its request stays equal where it does in the pod, and is never less than the pod's, as far as
// it is wanted: who writes the pod's status makes it no larger than that.
func Within(wanted, has size.Resources, nodes map[string]resource.Quantity) size.Resources {
	less := quantity.Over(wanted, size.Resources{})
	for name, request := range wanted.Requests {
		stands, is := has.Requests[name]
		_, known := nodes[name]
		if known || !is || stands.Cmp(request) >= 0 {
			continue
		}
		if limit, limited := wanted.Limits[name]; limited && limit.Cmp(request) == 0 {
			less.Limits[name] = stands
			if most, is := has.Limits[name]; is && most.Cmp(stands) > 0 {
				less.Limits[name] = least(most, limit)
			}
		}
		less.Requests[name] = stands
	}
	return less
}

func least(a, b resource.Quantity) resource.Quantity {
	if b.Cmp(a) < 0 {
		return b
	}
	return a
}

// unfit are the replicas whose nodes never have room for their size, as far as each has a size of its own.
func (q NodeRoom) unfit() map[int]memory.Unfit {
	if q.Uniform() {
		return nil
	}
	next := map[int]memory.Unfit{}
	for replica, u := range q.Memory.Unfit {
		if !u.Stays.IsZero() && q.Now.Sub(u.Stays) < UnfitFor && replica < q.Replicas {
			next[replica] = u
		}
	}
	for _, u := range q.Unmet {
		known := q.Memory.Unfit[u.Replica]
		_, stays := next[u.Replica]
		foreign := u.Replica < 0 || u.Replica >= q.Replicas
		if stays || foreign || !u.Short {
			continue
		}
		has := q.has(u.Pod)
		never := u.State == diff.PodInfeasible && strings.Contains(u.Words, lacksCapacity) && len(has.Requests) > 0
		goesOn := !known.Since.IsZero() && known.Stays.IsZero() // also while it is asked once more
		switch {
		case goesOn && never && q.Now.Sub(known.Since) >= unfitAfter:
			next[u.Replica] = memory.Unfit{Since: known.Since, Stays: q.Now, Has: has}
		case goesOn:
			next[u.Replica] = known
		case never:
			next[u.Replica] = memory.Unfit{Since: q.Now}
		}
	}
	return next
}

// has is what a pod's container has, by its node's account.
func (q NodeRoom) has(pod string) plan.Resources {
	for _, p := range q.Pods {
		if p.Name == pod && p.Size != nil {
			return p.Size.Has
		}
	}
	return plan.Resources{}
}

// Unfitting names the replicas that stay as large as they are for their nodes' sake.
func (w Wishes) Unfitting() (all []problem.Problem) {
	for _, replica := range slices.Sorted(maps.Keys(w.Beyond)) {
		all = append(all, problem.Problem{Phase: problem.PhaseSize, Subject: fmt.Sprintf("replica %d", replica),
			Kind: "NodeFull", Message: fmt.Sprintf(
				"the node of replica %d never had room for its size: it stays as large as it is until %s, and no cluster is levelled to it; "+
					"write size.nodeCap, or give it a larger node", replica,
				w.Unfit[replica].Stays.Add(UnfitFor).UTC().Format(time.RFC3339))})
	}
	return all
}

// roomAgain is how long nothing is levelled to a replica whose node had no room for its size, from the last time on
// that this was seen.
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
		all = append(all, problem.Problem{Phase: problem.PhaseSize, Subject: u.Pod, Kind: "NodeFull",
			Message: fmt.Sprintf(
				"the node of pod %q has no room for the size of replica %d (%s): %s; no cluster is levelled to it for an hour", u.Pod, u.Replica, u.State, mend)})
	}
	return all
}

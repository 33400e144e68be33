// Package failover says where the clusters of unwell and cordoned replicas go.
package failover

import (
	"slices"
	"time"

	"ballast/planner/placement"
)

// Evacuate says where clusters of unwell and cordoned replicas go.
//
// One unwell replica an hour is emptied, first one that does not work, then the most loaded, and with one that does not
// all others that did not work when that began, nor since; cordoned ones at once, all of them. One that is cordoned and
// does not work is unwell first: nobody has its clusters, and a person who wants it empty must not keep them waiting by
// that. What the failover leaves of it waits as a drain does. Clusters go to replicas that are neither, nor shut: first
// those that fit within the capacity, the heaviest first, each to the fullest replica that takes it; then the others,
// placed the heaviest first on the lightest replica, which keeps the largest load small. Secrets with one server, and
// groups that stay together, go together, and join the ones that stand on a healthy replica; what is pinned to the
// replica that it has stays. What is kept apart goes where none of its group is. Where every other replica has one,
// what a replica has that works stays, and what nobody has goes there all the same: a cluster without an owner comes
// before a group.
//
// What is on a replica that does not work waits for no budget, for nobody reconciles it, as long as it fits the
// capacity or a quarter more than the others carried when that began, and the memory, unless its replicas may die of
// it: it would take half of the fleet along each hour. What the others do not take on freely waits for the rates' share
// of each hour; what replicas may die of, and what no other replica has the memory for, waits for the whole budget. At
// least one an hour goes. A replica that works again, though it is unwell, has its clusters: they wait for the budget.
// Where that is too small, those that fit the capacity come first, the heaviest first; then, of those beyond it, the
// lightest first, for they do the least harm, and what carries nothing comes last. The rest waits. Nothing ever brings
// a cluster back but balance.
func Evacuate(r Request, now time.Time) Evacuation {
	if now.Before(r.Last.At) {
		r.Last.At = now // the clock went back: no time passed
	}
	e := newEvacuation(r)
	e.out.Last = r.Last
	e.keep()
	if !slices.ContainsFunc(e.bins, func(b placement.Bin) bool { return b.Open }) {
		e.nowhere()
		return e.out
	}
	s := schedule{e, now}
	if replica, ok := s.next(); ok {
		s.failOver(replica)
	}
	each := func(unit) bool { return true } // one that works waits for the budget
	left := room{r.BudgetDrain, r.BudgetDrain}
	_, later := emptying{e, e.cordoned, left, func() func(unit) bool { return each }}.empty()
	e.waits(e.cordoned, later)
	e.overloads()
	return e.out
}

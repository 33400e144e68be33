package failover

import (
	"math"
	"slices"
	"time"

	"ballast/planner/plan"
)

// betweenFailovers is how long after one replica's failover another's may begin. An illness that wanders from replica
// to replica with the clusters takes one replica an hour instead of the fleet. What did not work before that failover
// began, and did not since, has no illness of it, and is emptied beside it.
const betweenFailovers = time.Hour

// takesOn is the share of what a replica carries that it takes on freely within an hour, in percent. More of it than
// that waits for the budget: a replica that dies of what another one left has all others die after it.
const takesOn = 25

// schedule is which unwell replica is emptied now, and how much of it.
type schedule struct {
	*evacuation
	now time.Time
}

// failOver empties an unwell replica.
func (e schedule) failOver(replica int) {
	last, left := e.Last, room{e.BudgetRescue, e.BudgetSuspect}
	if !e.within(replica) {
		last, left = Last{Replica: replica, At: e.now, Carried: e.carried(), Dead: union(e.Dead)},
			room{max(left.all, 1), max(left.whole, 1)}
	}
	freely := last.Carried
	if last.Worked = e.Recovered[replica]; last.Worked {
		budget := min(e.BudgetSuspect, e.BudgetDrain)
		freely, left = nil, room{budget, budget}
	}
	replicas := e.besides(replica, last.Dead)
	var later []unit
	if e.out.FailedOver, later = (emptying{e.evacuation, replicas, left, func() func(unit) bool { return e.beyond(freely) }}).empty(); e.out.FailedOver > 0 {
		e.out.Last = last
	}
	e.waiting(replicas)
	asked := func(replica int) bool { return slices.Contains(e.cordoned, replica) } // those wait as a drain does
	e.waits(slices.DeleteFunc(slices.Clone(replicas), asked), slices.DeleteFunc(later, func(u unit) bool { return asked(e.at(u.Names[0])) }))
}

// besides are the replicas that are emptied with one: where that does not work, all unwell ones that did not all along.
func (e schedule) besides(replica int, dead []int) []int {
	if e.Recovered[replica] {
		return []int{replica}
	}
	others := slices.DeleteFunc(slices.Clone(e.unwell), func(other int) bool { return e.Recovered[other] || !slices.Contains(dead, other) })
	return union(others, []int{replica})
}

// beyond reports of one unit after the other off an unwell replica whether it waits for the budget.
func (e schedule) beyond(carried []plan.Load) func(unit) bool {
	loads := e.carried()
	return func(u unit) bool {
		loads[u.To] += min(u.Load, math.MaxInt64/4)
		freely := u.Fits && carried != nil
		if u.To < len(carried) && carried[u.To] > 0 && !u.Starves { // without loads nobody knows what a replica bears
			freely = freely || loads[u.To] <= carried[u.To]+share(carried[u.To])
		}
		waits := e.asksWhole(u) || !freely
		if waits {
			loads[u.To] -= min(u.Load, math.MaxInt64/4)
		}
		return waits
	}
}

// next chooses the unwell replica to empty: the one whose failover began within the hour, else one that does not work,
// else the one with the most load that can move. The others wait, and are named.
func (e schedule) next() (replica int, ok bool) {
	for _, candidate := range e.unwell {
		overtakes := e.Last.Worked && !e.Recovered[candidate]
		if e.busy() && !e.within(candidate) && !overtakes {
			continue
		}
		if !ok || e.sooner(candidate, replica) {
			replica, ok = candidate, true
		}
	}
	if !ok {
		e.waiting(nil)
	}
	return replica, ok
}

// sooner reports whether one replica is emptied before another.
func (e schedule) sooner(a, b int) bool {
	if e.Recovered[a] != e.Recovered[b] {
		return !e.Recovered[a]
	}
	return e.movable[a].Compare(e.movable[b]) > 0
}

// until is when another replica's failover may begin.
func (e schedule) until() time.Time {
	if e.busy() {
		return e.Last.At.Add(betweenFailovers)
	}
	return e.now.Add(betweenFailovers)
}

// busy reports whether a failover began less than an hour ago.
func (e schedule) busy() bool {
	return !e.Last.At.IsZero() && e.now.Sub(e.Last.At) < betweenFailovers
}

func (e schedule) within(replica int) bool {
	along := slices.Contains(e.Last.Dead, replica) && !e.Recovered[replica]
	return e.busy() && (along || e.Last.Replica == replica)
}

// waiting names the unwell replicas that keep their clusters for now.
func (e schedule) waiting(emptied []int) {
	for _, replica := range e.unwell {
		if slices.Contains(e.cordoned, replica) { // it is emptied as a drain
			continue
		}
		if e.movable[replica].Clusters > 0 && !slices.Contains(emptied, replica) {
			e.note(HourWaits, "", replica, "replica %d is unwell and keeps its clusters for now: one replica an hour is emptied, and another may be from %s",
				replica, e.until().UTC().Format(time.RFC3339))
		}
	}
}

// share is what a replica takes on freely beside what it carries: to the last unit, or of four equal clusters' replica
// no fifth fits.
func share(carried plan.Load) plan.Load { return carried/100*takesOn + carried%100*takesOn/100 }

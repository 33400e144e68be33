package failover

import (
	"cmp"
	"fmt"
	"slices"

	"ballast/planner/plural"
)

func (e *evacuation) note(kind NoteKind, cluster string, replica int, format string, args ...any) {
	e.out.Notes = append(e.out.Notes, Note{Kind: kind, Cluster: cluster, Replica: replica,
		Message: fmt.Sprintf(format, args...)})
}

// state is why a replica is to be empty.
func (e *evacuation) state(replica int) string {
	if slices.Contains(e.cordoned, replica) {
		return "cordoned"
	}
	return "unwell"
}

// keep names the clusters that stay on replicas that are to be empty.
func (e *evacuation) keep() {
	for _, name := range e.names {
		at := e.at(name)
		if e.absent(at) || !e.emptied[at] {
			continue
		}
		g := e.groupOf[name]
		switch {
		case e.Gone[name]: // nobody runs it, and its row goes in time
		case e.Held[name]: // the trip that holds it is told of
		case e.pinned(name):
			e.note(PinnedStays, name, at, "cluster %q stays on replica %d, which is %s, for it is pinned there: unpin it, or pin it to another", name, at, e.state(at))
		case e.Fixed[name]:
			e.note(FixedStays, name, at, "cluster %q stays on replica %d, which is %s, "+
				"for its Secret is immutable, unmanaged or refuses writes: let ballast write it", name, at, e.state(at))
		case g.stays():
			kind := FixedStays
			if e.pinned(g.trapped) {
				kind = PinnedStays
			}
			why := "it has the server of %q, which stays: delete or unpin one of them"
			if e.Held[g.trapped] {
				why = "it goes with %q, which a trip for memory holds: `ballast resume` ends that"
			}
			if rows := e.View.Plan.Clusters; !e.Held[g.trapped] && rows[name].Server != rows[g.trapped].Server {
				why = "a group has it stay together with %q, which stays: unpin that, or change the group"
			}
			e.note(kind, name, at, "cluster %q stays on replica %d, which is %s, for "+why, name, at, e.state(at),
				g.trapped)
		}
	}
}

// overloads names the replicas that received more than they may carry.
func (e *evacuation) overloads() {
	for replica, received := range e.received {
		b := e.bins[replica]
		switch {
		case !received:
		case e.Capacity > 0 && b.Load > e.Capacity:
			e.note(BeyondCapacity, "", replica, "replica %d goes to load %s, beyond the capacity of %s: "+
				"no other replica has room for what leaves", replica, b.Load.Display(), e.Capacity.Display())
		case e.MaxClusters > 0 && b.Clusters > e.MaxClusters:
			e.note(BeyondCapacity, "", replica, "replica %d goes to %d clusters, beyond maxClustersPerReplica %d: "+
				"no other replica has room for what leaves", replica, b.Clusters, e.MaxClusters)
		}
	}
}

// nowhere says that no replica is open.
func (e *evacuation) nowhere() {
	switch {
	case e.running == 0 || !slices.Contains(e.emptied, true):
	case slices.ContainsFunc(e.Killed, func(replica int) bool { return replica < e.running && !e.emptied[replica] }):
		e.note(NowhereToGo, "", 0, "clusters have nowhere to go: of the %s none is well, ready, answers for itself, is not cordoned "+
			"and was not killed for its memory: see what happened, then run `ballast resume`", plural.Of(e.running, "replica"))
	case slices.Contains(e.emptied, false):
		e.note(NowhereToGo, "", 0, "clusters have nowhere to go: of the %s none is well, ready, answers for itself and is not cordoned", plural.Of(e.running, "replica"))
	default:
		e.note(NowhereToGo, "", 0, "all of the %s are unwell or cordoned, so that clusters have nowhere to go: let a cordon end", plural.Of(e.running, "replica"))
	}
}

func (e *evacuation) tellStays(u unit) {
	at := e.at(u.Names[0])
	if u.Starves {
		e.note(MemoryStays, u.Names[0], at, "cluster %q stays on replica %d, which is %s, for no replica that may take it has the %s of memory that it takes: "+
			"add a replica, or raise the memory", u.Names[0], at, e.state(at), u.Memory)
		return
	}
	e.note(GroupStays, u.Names[0], at, "cluster %q stays on replica %d, which is %s, for every replica that may take it has another one of %s, "+
		"which is kept apart: add a replica, or change the group", u.Names[0], at, e.state(at), quoted(u.Apart))
}

func quoted(groups []string) string {
	if len(groups) == 1 {
		return fmt.Sprintf("group %q", groups[0])
	}
	return fmt.Sprintf("groups %q", groups)
}

// waits names what waits for the budget.
func (e *evacuation) waits(replicas []int, later []unit) {
	waiting, first := 0, ""
	for _, u := range later {
		waiting, first = waiting+len(u.Names), cmp.Or(first, u.Names[0])
	}
	if waiting > 0 {
		wait := map[bool]string{true: "waits", false: "wait"}[waiting == 1]
		e.note(BudgetWaits, first, e.at(first), "%s of %s %s for the move budget, the first is %q",
			plural.Of(waiting, "cluster"), e.these(replicas), wait, first)
	}
}

func (e *evacuation) these(replicas []int) string {
	if len(replicas) == 1 {
		return fmt.Sprintf("replica %d, which is %s,", replicas[0], e.state(replicas[0]))
	}
	return fmt.Sprintf("%s that are %s", plural.Of(len(replicas), "replica"), e.state(replicas[0]))
}

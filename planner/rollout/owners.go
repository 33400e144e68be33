package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// nearLimit is the share of its memory limit, in percent, from which a replica receives no cluster, and a wave onto it
// stops. At 100 the kernel kills it without a warning, and its clusters have no owner until it is back; a cluster that
// arrives lists all it has at once, and memory was read some seconds ago.
const nearLimit = 90

// NearsLimit reports whether a pod is near its memory limit, as far as both are known.
func NearsLimit(p observed.Pod) bool {
	return p.Memory > 0 && p.MemoryLimit > 0 && 100*p.Memory >= nearLimit*p.MemoryLimit
}

// answers are what the pods, and the Secrets, say of a wave and of the fleet.
type answers struct{ *ground }

// cannotReceive says why no wave may be begun onto a replica. In a Deployment pods claim replicas, whichever they find:
// no wave is begun before those that are there have claimed theirs.
func (a answers) cannotReceive(replica int) string {
	if why := a.unclaimed(); why != "" {
		return why
	}
	if why := a.seen.Asleep(replica); why != "" {
		return why
	}
	for _, p := range a.seen.PodsOf(replica) {
		if NearsLimit(p) {
			return nearing(p)
		}
	}
	return ""
}

// unclaimed names the first slot of a Deployment's that no pod has claimed while one is there that will: it is ready
// and has none. A slot that nobody is there to claim is that of a pod which hangs, or is gone for good: its clusters
// have to leave it. So have those of a slot that was unclaimed for as long as makes a replica unwell: its pod may be ready
// and never claim it.
func (a answers) unclaimed() string {
	if a.p.Target.Kind != plan.Deployment || !slices.ContainsFunc(a.seen.Pods, func(p observed.Pod) bool { return p.Ready && !p.Claimed }) {
		return ""
	}
	running := a.p.Replicas
	if a.p.FreeReplicas {
		running = a.seen.Workload.Count().Replicas
	}
	for r := range running {
		left := a.o.Rescue && a.o.Unwell[r]
		if why := a.seen.Asleep(r); why != "" && !left {
			return why
		}
	}
	return ""
}

func nearing(p observed.Pod) string {
	return fmt.Sprintf("replica %d uses %d MiB of its memory limit of %d MiB", p.Replica, p.Memory>>20, p.MemoryLimit>>20)
}

// unseen reports whether too few of the plan's Secrets are seen to go by them. A rescue goes by those that are there.
func (g *ground) unseen() bool { return !g.o.Rescue && g.seen.Blind(g.p) }

// blind says why nothing can be said of the fleet as a whole.
func (g *ground) blind() string {
	switch {
	case g.unseen():
		return "most of the plan's Secrets are not seen"
	case !g.seen.OwnersKnown:
		return observed.Unsaid
	}
	return ""
}

// risk says why a unit waits: who should have it is not known, or another cluster of the plan has a fault that this
// wave does not mend, and for all that is known another wave would make more of them. What nobody works for is worse
// off where it is, and needs no more than an answer of who receives it. A person's own word waits for no fault: it may
// be the mend.
func (a answers) risk(u unit) string {
	switch {
	case a.unserved(u.from):
		for _, name := range u.Names {
			if slices.Contains(a.seen.Doubled, name) && !a.disputed(name) {
				return observed.Severally(name)
			}
		}
		return a.seen.Mute(u.Home)
	case !a.seen.OwnersKnown:
		return observed.Unsaid
	case a.o.Insists:
		return ""
	}
	return a.seen.Fault(a.p)
}

// trouble says why the present wave must stop: a replica that receives died of it, or is about to.
func (a answers) trouble() string {
	since := a.p.Rollout.Since
	for _, replica := range a.receivers() {
		for _, p := range a.seen.PodsOf(replica) {
			died := p.RestartedAt.After(since)
			switch {
			case p.OOMKilled && (died || !p.Ready && p.RestartedAt.IsZero()): // killed, and not started again yet
				return fmt.Sprintf("replica %d was out of memory", replica)
			case p.Restarts > 0 && died:
				return fmt.Sprintf("replica %d restarted", replica)
			case NearsLimit(p):
				return nearing(p)
			}
		}
	}
	return ""
}

// concerned are the replicas whose answers say whether the present wave is done.
func (a answers) concerned() []int {
	replicas := a.receivers()
	for _, was := range a.p.Rollout.Was {
		if !a.unserved(was) {
			replicas = append(replicas, was)
		}
	}
	return replicas
}

// receivers are the replicas that the present wave gives clusters to, ascending.
func (a answers) receivers() []int {
	set := map[int]bool{}
	for name := range a.p.Rollout.Moves {
		if to, _, known := a.v.Effective(name); known {
			set[to] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// unfinished says what the present wave waits for. unconnected says that its clusters are all owned as they should be,
// and that each of those that nobody has connected went to a replica that has others connected: then the cluster is
// what cannot be reached, and to take the wave back would help nobody.
func (a answers) unfinished() (rest string, unconnected bool) {
	if a.unseen() {
		return a.blind(), false
	}
	if rest = a.uncarried(); rest != "" {
		return rest, false
	}
	for _, replica := range a.receivers() {
		if why := a.seen.Asleep(replica); why != "" {
			return why, false
		}
	}
	return a.untaken()
}

// unreturned is unfinished for a wave that goes back. Where nobody says who owns what, Secrets that are written are
// enough: the replicas that had those clusters are as good as they were.
func (a answers) unreturned() string {
	rest := a.uncarried()
	if rest == "" && a.seen.OwnersKnown {
		rest, _ = a.untaken()
	}
	return rest
}

// uncarried says which of the wave's Secrets are not written yet.
func (a answers) uncarried() string {
	var behind []string
	for _, s := range a.seen.Sorted() {
		_, moves := a.p.Rollout.Moves[s.Name]
		if replica, _, known := a.v.Effective(s.Name); moves && known && s.Managed() && !s.Carries(replica) {
			behind = append(behind, s.Name)
		}
	}
	if len(behind) == 0 {
		return ""
	}
	return waitsFor(behind, nil, false)
}

// untaken says which of the wave's clusters its new owner does not have yet. Who receives must answer, and so must who
// gives if anybody works there: a pod that keeps silent may still have what it gave.
func (a answers) untaken() (rest string, unconnected bool) {
	if why := a.seen.Mute(a.concerned()...); why != "" {
		return why, false
	}
	idle := false
	for _, s := range a.seen.Sorted() {
		_, moves := a.p.Rollout.Moves[s.Name]
		replica, _, known := a.v.Effective(s.Name)
		owned, told := a.seen.Owned[s.Name]
		switch {
		case !moves || !known || !s.Managed() || !s.Awaited(owned):
		case !told:
			return fmt.Sprintf("nobody says who owns cluster %q", s.Name), false
		case s.Disputed && len(owned.Owners) > 0: // whoever it is
		case !slices.Equal(owned.Owners, []int{replica}):
			return fmt.Sprintf("cluster %q is owned by %s instead of replica %d", s.Name, owners(owned.Owners), replica), false
		case !slices.Contains(owned.Live, replica):
			idle = idle || !a.works(replica)
			rest = cmp.Or(rest, fmt.Sprintf("replica %d has not connected cluster %q", replica, s.Name))
		}
	}
	return rest, rest != "" && !idle
}

// works reports whether a replica has any cluster connected.
func (g *ground) works(replica int) bool {
	for _, owned := range g.seen.Owned {
		if slices.Contains(owned.Live, replica) {
			return true
		}
	}
	return false
}

// disputed reports whether people's own Secret of a cluster's server decides who has it.
func (g *ground) disputed(name string) bool {
	if g.disputes == nil {
		g.disputes = map[string]bool{}
		for _, s := range g.seen.Secrets {
			g.disputes[s.Name] = s.Disputed
		}
	}
	return g.disputes[name]
}

// left says what is still on replicas that are to go.
func (a answers) left() string {
	r := a.p.Rollout
	if !falls(r) {
		return ""
	}
	if why := a.blind(); why != "" {
		return why
	}
	if stray := strays(a.seen, r.Replicas, present(a.p, a.seen, r.Replicas, r.From.Replicas)); len(stray) > 0 {
		return waitsFor(nil, stray, false)
	}
	for _, name := range slices.Sorted(maps.Keys(a.seen.Owned)) {
		for _, owner := range a.seen.Owned[name].Owners {
			if owner >= r.Replicas {
				return fmt.Sprintf("cluster %q is owned by replica %d, which is to go", name, owner)
			}
		}
	}
	return ""
}

// several names the first cluster that several replicas own, or several pods of one: a replica may go, and with it the
// owner that was to stay.
func (a answers) several() string {
	for _, name := range slices.Sorted(maps.Keys(a.seen.Owned)) {
		if _, planned := a.p.Clusters[name]; !planned || a.disputed(name) {
			continue
		}
		if len(a.seen.Owned[name].Owners) > 1 || slices.Contains(a.seen.Doubled, name) {
			return observed.Severally(name)
		}
	}
	return ""
}

// disagreement names the first cluster that is not owned as its Secret says. One that only people may write, and whose
// Secret names no replica, is owned by whom an algorithm says, if by anybody.
func (a answers) disagreement() string {
	if why := a.blind(); why != "" {
		return why
	}
	if behind := laggards(a.v, a.seen); len(behind) > 0 {
		return waitsFor(behind, nil, false)
	}
	limit := a.seen.Workload.Count().Reach(a.p.Target.Kind)
	for _, s := range a.seen.Sorted() {
		replica, _, known := a.v.Effective(s.Name)
		if !s.Managed() {
			known, replica = known && s.Valid && s.Shard < limit, s.Shard
		}
		owned, told := a.seen.Owned[s.Name]
		switch {
		case !known || !s.Awaited(owned):
		case !told:
			return fmt.Sprintf("nobody says who owns cluster %q", s.Name)
		case s.Disputed && len(owned.Owners) > 0: // whoever it is
		case a.o.Unwell[replica] && len(owned.Owners) == 0: // what is left there for another time
		case !slices.Equal(owned.Owners, []int{replica}):
			return fmt.Sprintf("cluster %q is owned by %s instead of replica %d", s.Name, owners(owned.Owners), replica)
		}
	}
	return ""
}

// owners words who owns a cluster.
func owners(replicas []int) string {
	switch len(replicas) {
	case 0:
		return "nobody"
	case 1:
		return fmt.Sprintf("replica %d", replicas[0])
	}
	return fmt.Sprintf("replicas %v", replicas)
}

// Package answers is what the pods, and the Secrets, say of a wave and of the fleet.
package answers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// nearLimit is the share of its memory limit, in percent, from which a replica receives no cluster, and a wave onto it
// stops. At 100 the kernel kills it without a warning, and its clusters have no owner until it is back; a cluster that
// arrives lists all it has at once, and memory was read some seconds ago.
const nearLimit = 90

// NearsLimit reports whether a pod is near its memory limit, as far as both are known. Who writes the template may ask
// for any limit, and who answers for a pod tell any number: products of whole numbers would overflow.
func NearsLimit(p observed.Pod) bool {
	return p.Memory > 0 && p.MemoryLimit > 0 && 100*float64(p.Memory) >= nearLimit*float64(p.MemoryLimit)
}

// Answers are what the pods, and the Secrets, say of a wave and of the fleet.
type Answers struct{ *basis.Basis }

// CannotReceive says why no wave may be begun onto a replica. In a Deployment pods claim replicas, whichever they find:
// no wave is begun before those that are there have claimed theirs.
func (a Answers) CannotReceive(replica int) string {
	if why := a.Unclaimed(); why != "" {
		return why
	}
	if why := a.Seen.Asleep(replica); why != "" {
		return why
	}
	for _, p := range a.Seen.PodsOf(replica) {
		if NearsLimit(p) {
			return nearing(p)
		}
	}
	return ""
}

// Unclaimed names the first slot of a Deployment's that no pod has claimed while one is there that will: it is ready
// and has none. A slot that nobody is there to claim is that of a pod which hangs, or is gone for good: its clusters
// have to leave it. So have those of a slot that was unclaimed for as long as makes a replica unwell: its pod may be
// ready and never claim it.
func (a Answers) Unclaimed() string {
	if a.Plan.Target.Kind != plan.Deployment || !slices.ContainsFunc(a.Seen.Pods, func(p observed.Pod) bool { return p.Ready && !p.Claimed }) {
		return ""
	}
	running := a.Plan.Replicas
	if a.Plan.FreeReplicas {
		running = a.Seen.Workload.Count().Replicas
	}
	for r := range running {
		left := a.Options.Rescue && a.Options.Unwell[r]
		if why := a.Seen.Asleep(r); why != "" && !left {
			return why
		}
	}
	return ""
}

func nearing(p observed.Pod) string {
	return fmt.Sprintf("replica %d uses %d MiB of its memory limit of %d MiB", p.Replica, p.Memory>>20,
		p.MemoryLimit>>20)
}

// Risk says why clusters of one server wait to go from one replica to another: who should have them is not known, or
// another cluster of the plan has a fault that this wave does not mend, and for all that is known another wave would
// make more of them. What nobody works for is worse off where it is, and needs no more than an answer of who receives
// it. A person's own word waits for no fault: it may be the mend.
func (a Answers) Risk(names []string, from, to int) string {
	switch {
	case a.Unserved(from):
		for _, name := range names {
			if slices.Contains(a.Seen.Doubled, name) && !a.Disputed(name) {
				return observed.Severally(name)
			}
		}
		return a.Seen.Mute(to)
	case !a.Seen.OwnersKnown:
		return observed.OwnersUnknown
	case a.Options.Insists:
		return ""
	}
	return a.Seen.Fault(a.Plan)
}

// Trouble says why the present wave must stop: a replica that receives died of it, or is about to.
func (a Answers) Trouble() string {
	since := a.Plan.Rollout.Since
	for _, replica := range a.receivers() {
		for _, p := range a.Seen.PodsOf(replica) {
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
func (a Answers) concerned() []int {
	replicas := a.receivers()
	for _, was := range a.Plan.Rollout.Was {
		if !a.Unserved(was) {
			replicas = append(replicas, was)
		}
	}
	return replicas
}

// receivers are the replicas that the present wave gives clusters to, ascending.
func (a Answers) receivers() []int {
	set := map[int]bool{}
	for name := range a.Plan.Rollout.Moves {
		if to, _, known := a.View.Effective(name); known {
			set[to] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// Unfinished says what the present wave waits for. unconnected says that its clusters are all owned as they should be,
// and that each of those that nobody has connected went to a replica that has others connected: then the cluster is
// what cannot be reached, and to take the wave back would help nobody.
func (a Answers) Unfinished() (rest string, unconnected bool) {
	if a.Unseen() {
		return a.Blind(), false
	}
	if rest = a.uncarried(); rest != "" {
		return rest, false
	}
	for _, replica := range a.receivers() {
		if why := a.Seen.Asleep(replica); why != "" {
			return why, false
		}
	}
	return a.untaken()
}

// Unreturned is Unfinished for a wave that goes back. Where nobody says who owns what, Secrets that are written are
// enough: the replicas that had those clusters are as good as they were.
func (a Answers) Unreturned() string {
	rest := a.uncarried()
	if rest == "" && a.Seen.OwnersKnown {
		rest, _ = a.untaken()
	}
	return rest
}

// uncarried says which of the wave's Secrets are not written yet.
func (a Answers) uncarried() string {
	var behind []string
	for _, s := range a.Seen.Sorted() {
		_, moves := a.Plan.Rollout.Moves[s.Name]
		if replica, _, known := a.View.Effective(s.Name); moves && known && s.Managed() && !s.Carries(replica) {
			behind = append(behind, s.Name)
		}
	}
	if len(behind) == 0 {
		return ""
	}
	return basis.WaitsFor(behind, nil, false)
}

// untaken says which of the wave's clusters its new owner does not have yet. Who receives must answer, and so must who
// gives if anybody works there: a pod that keeps silent may still have what it gave.
func (a Answers) untaken() (rest string, unconnected bool) {
	if why := a.Seen.Mute(a.concerned()...); why != "" {
		return why, false
	}
	idle := false
	for _, s := range a.Seen.Sorted() {
		_, moves := a.Plan.Rollout.Moves[s.Name]
		replica, _, known := a.View.Effective(s.Name)
		owned, told := a.Seen.Owned[s.Name]
		switch {
		case !moves || !known || !s.Managed() || !s.Awaited(owned):
		case !told:
			return fmt.Sprintf("nobody says who owns cluster %q", s.Name), false
		case s.Disputed && len(owned.Owners) > 0: // whoever it is
		case !slices.Equal(owned.Owners, []int{replica}):
			return fmt.Sprintf("cluster %q is owned by %s instead of replica %d", s.Name, owners(owned.Owners),
				replica), false
		case !slices.Contains(owned.Live, replica):
			idle = idle || !a.Works(replica)
			rest = cmp.Or(rest, fmt.Sprintf("replica %d has not connected cluster %q", replica, s.Name))
		}
	}
	return rest, rest != "" && !idle
}

// Left says what is still on replicas that are to go.
func (a Answers) Left() string {
	r := a.Plan.Rollout
	if !Falls(r) {
		return ""
	}
	if why := a.Blind(); why != "" {
		return why
	}
	if stray := basis.Strays(a.Seen, r.Replicas, basis.Present(a.Plan, a.Seen, r.Replicas, r.From.Replicas)); len(stray) > 0 {
		return basis.WaitsFor(nil, stray, false)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Seen.Owned)) {
		for _, owner := range a.Seen.Owned[name].Owners {
			if owner >= r.Replicas {
				return fmt.Sprintf("cluster %q is owned by replica %d, which is to go", name, owner)
			}
		}
	}
	return ""
}

// Several names the first cluster that several replicas own, or several pods of one: a replica may go, and with it the
// owner that was to stay.
func (a Answers) Several() string {
	for _, name := range slices.Sorted(maps.Keys(a.Seen.Owned)) {
		if _, planned := a.Plan.Clusters[name]; !planned || a.Disputed(name) {
			continue
		}
		if len(a.Seen.Owned[name].Owners) > 1 || slices.Contains(a.Seen.Doubled, name) {
			return observed.Severally(name)
		}
	}
	return ""
}

// Disagreement names the first cluster that is not owned as its Secret says. One that only people may write, and whose
// Secret names no replica, is owned by whom an algorithm says, if by anybody.
func (a Answers) Disagreement() string {
	if why := a.Blind(); why != "" {
		return why
	}
	if behind := basis.Unassigned(a.View, a.Seen); len(behind) > 0 {
		return basis.WaitsFor(behind, nil, false)
	}
	limit := a.Seen.Workload.Count().Reach(a.Plan.Target.Kind)
	for _, s := range a.Seen.Sorted() {
		replica, _, known := a.View.Effective(s.Name)
		if !s.Managed() {
			known, replica = known && s.Valid && s.Shard < limit, s.Shard
		}
		owned, told := a.Seen.Owned[s.Name]
		switch {
		case !known || !s.Awaited(owned):
		case !told:
			return fmt.Sprintf("nobody says who owns cluster %q", s.Name)
		case s.Disputed && len(owned.Owners) > 0: // whoever it is
		case a.Options.Unwell[replica] && len(owned.Owners) == 0: // what is left there for another time
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

// Falls reports whether a rollout ends with fewer replicas than it began with.
func Falls(r *plan.Rollout) bool { return r.Replicas < r.From.Replicas }

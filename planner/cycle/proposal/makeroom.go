package proposal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/partition"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// MakeRoom has clusters leave the replicas whose nodes have had no room for their size for as long as size.moveAway
// says: the fewest that make what is left need what the pod has, as their loads say it, and at least one stays. They go
// where there is room, to no replica that would carry as much as the one that they leave did.
func MakeRoom(s *snapshot.Snapshot) *Proposed {
	away, live := s.In.Config.Size.MoveAway, s.In.Config.Rollout.Live != nil
	if away == nil || s.Loads == nil || !live {
		return nil
	}
	if snapshot.GoneBack(s) {
		return nil
	}
	if s.LevelWaits() != "" {
		return nil
	}
	var off []int
	for _, replica := range slices.Sorted(maps.Keys(s.In.Memory.Sizes.Cramped)) {
		c := s.In.Memory.Sizes.Cramped[replica] // once clusters have left it, what it needs falls by and by
		if c.Left.IsZero() && replica < s.Next.Replicas && c.Due(time.Duration(away.After), s.In.Now) {
			off = append(off, replica)
		}
	}
	if len(off) == 0 {
		return nil
	}
	r, err := newRelieving(s)
	if err != nil {
		return nil // the partition said so
	}
	p := &Proposed{Cause: change.Balance}
	for _, replica := range off {
		has := s.In.Memory.Sizes.Cramped[replica].Has
		to := r.relieve(replica, has, r.bins)
		if len(to) == 0 {
			p.Told = append(p.Told, problem.Problem{Phase: problem.PhaseSize, Subject: "size.moveAway",
				Kind: "NodeFull", Message: fmt.Sprintf(
					"the node of replica %d has had no room for its size for %s, and no cluster can leave it: %s",
					replica, time.Duration(away.After), r.whyNone(replica, has))})
		}
		maps.Copy(r.to, to)
	}
	if len(r.to) == 0 {
		return p
	}
	p.Why = fmt.Sprintf("moves %s off %s: the node has had no room for its size for %s (size.moveAway)",
		plural.Of(ledger.ServersOf(s.Beside, maps.Keys(r.to), s.Next), "cluster"), division.ReplicaList(off),
		time.Duration(away.After))
	p.Want = s.WantOf(s.Next.Replicas, r.to)
	p.Want.ControllerReplicas = s.Next.ControllerReplicas
	return p
}

// relieving is where clusters can go.
type relieving struct {
	*snapshot.Snapshot
	bins   []placement.Bin
	held   []int // replicas that may not grow now, and would receive if they might
	policy placement.Policy
	items  []partition.Item
	units  [][]int // the clusters of each item
	to     map[string]int
}

// newRelieving has each replica carry what stands on it. A replica whose node is full, or that may not grow, receives
// nothing.
func newRelieving(s *snapshot.Snapshot) (*relieving, error) {
	r := &relieving{Snapshot: s, bins: s.Bins(s.Next.Replicas), to: map[string]int{}, policy: placement.Policy{
		Capacity: cmp.Or(bounds.Capacity(s.Ground), s.Capacity), MaxClusters: s.MostClusters(), Memory: s.InUse.Most()}}
	groups := s.Units().All()
	var err error
	if r.items, err = division.ItemsOf(s.Ground, groups, s.Loads); err != nil {
		return nil, err
	}
	for _, u := range groups {
		r.units = append(r.units, u.Clusters)
	}
	for i, cl := range s.Fleet.Clusters {
		if at := s.Standing(i); at >= 0 && at < len(r.bins) {
			r.bins[at] = r.bins[at].Take(placement.Unit{Names: []string{cl.Shard.ID}, Load: s.Loads[i],
				Memory: s.InUse.Takes(i), Apart: cl.Apart})
		}
	}
	for replica := range r.bins {
		_, held := s.Ungrown[replica]
		receives := r.bins[replica].Open && !r.bins[replica].Cramped
		r.bins[replica].Open = receives && !held
		if receives && held {
			r.held = append(r.held, replica)
		}
	}
	return r, nil
}

// relieve finds places for what is to leave a replica whose pod has that many percent of what it needs, and has the
// bins that they go to carry it. Empty: nothing leaves it.
func (r *relieving) relieve(replica, has int, bins []placement.Bin) map[string]int {
	carried := bins[replica].Load
	goal := carried - plan.Load(float64(carried)*float64(has)/100)
	leaving := r.fewest(replica, max(goal, 1))
	units := make([]placement.Unit, len(leaving))
	for k, item := range leaving {
		units[k] = r.unit(item)
	}
	others := slices.Clone(bins)
	others[replica].Open = false
	if !slices.ContainsFunc(others, func(b placement.Bin) bool { return b.Open }) {
		return nil
	}
	to := map[string]int{}
	for k, placed := range placement.Place(units, others, r.policy) {
		if !r.takes(placed, units[k], carried, bins) {
			continue
		}
		bins[placed.To] = bins[placed.To].Take(units[k])
		for _, name := range units[k].Names {
			to[name] = placed.To
		}
	}
	return to
}

// whyNone says why nothing leaves a replica.
func (r *relieving) whyNone(replica, has int) string {
	bins := slices.Clone(r.bins)
	for _, held := range r.held {
		bins[held].Open = true
	}
	if len(r.held) > 0 && len(r.relieve(replica, has, bins)) > 0 {
		return r.Ungrown[r.held[0]]
	}
	return "it has one alone, those that it has are fixed, or no other replica has room"
}

// takes reports whether a unit goes where it was placed: to a replica that may receive it and carries less with it than
// the one that it leaves carried.
func (r *relieving) takes(placed placement.Placed, u placement.Unit, carried plan.Load, bins []placement.Bin) bool {
	if placed.To == plan.NoReplica || placed.Crowds || placed.Starves {
		return false
	}
	if bounds.Capacity(r.Ground) > 0 && !placed.Fits { // beyond what a person says that one carries it is levelled off again
		return false
	}
	b := bins[placed.To]
	with := b.With(u.Load, len(u.Names))
	fits := r.policy.MaxClusters <= 0 || with.Clusters <= r.policy.MaxClusters
	return b.Open && fits && with.Load < carried
}

// unit is an item as it is placed.
func (r *relieving) unit(item int) placement.Unit {
	u := placement.Unit{Home: plan.NoReplica, Load: r.items[item].Load, Memory: r.items[item].Memory}
	for _, i := range r.units[item] {
		u.Names = append(u.Names, r.Fleet.Clusters[i].Shard.ID)
		u.Apart = placement.Joined(u.Apart, r.Fleet.Clusters[i].Apart)
	}
	slices.Sort(u.Names)
	return u
}

// fewest are the fewest items of a replica that carry so much together, of those about the lightest. One stays.
func (r *relieving) fewest(replica int, goal plan.Load) (chosen []int) {
	all, free := 0, []int(nil)
	for k, clusters := range r.units {
		here := func(i int) bool { return r.Standing(i) == replica }
		if !slices.ContainsFunc(clusters, here) {
			continue
		}
		all++
		whole := !slices.ContainsFunc(clusters, func(i int) bool { return !here(i) })
		if whole && r.items[k].Replica == partition.Free && r.items[k].Load > 0 {
			free = append(free, k)
		}
	}
	slices.SortFunc(free, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.items[a].Load, r.items[b].Load), cmp.Compare(r.items[a].ID, r.items[b].ID))
	})
	most := min(len(free), all-1)
	if one := slices.IndexFunc(free, func(k int) bool { return r.items[k].Load >= goal }); one >= 0 && most > 0 {
		return free[one : one+1]
	}
	for sum := plan.Load(0); len(chosen) < most && sum < goal; {
		next := free[len(free)-1-len(chosen)]
		chosen, sum = append(chosen, next), sum+r.items[next].Load
	}
	return chosen
}

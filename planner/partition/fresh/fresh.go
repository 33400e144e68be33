// Package fresh divides a fleet as if nothing were in force: as few replicas as it finds, never more than LPT, and
// level.
//
// LPT says how many replicas are enough. Where their number is fixed and a plan in force has it, the fullest is
// relieved from there, by moves of little load. Where a lower bound leaves fewer possible, or as many with a lower
// makespan, package pack looks for them within a budget of steps. Then exchanges between replicas level what came out.
// Caps, groups, closed replicas and the memory are kept to as sticky keeps to them; package pack does not look at them.
// What is above its bound then is dealt out by best fit and first fit, too, which keep to every rule, and taken where
// that has fewer replicas or a lower makespan. Without has the plan in force do with one replica less.
package fresh

import (
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky"
	"ballast/planner/plan"
)

// Options bound the effort. 0 stands for the default.
type Options struct {
	// Steps of the search for fewer replicas and for a lower makespan, and of each construction. 0: 3 million, and none
	// above 20,000 items.
	Steps int
}

// complete fills in the default.
func (o Options) complete(items int) Options {
	if o.Steps == 0 && items <= largeFleet {
		o.Steps = 3_000_000
	}
	return o
}

// largeFleet is how many items are too many to search: each is so small a part that LPT is at the bound or next to it.
const largeFleet = 20_000

// Plan answers a partition. It renumbers replicas to what they have now, if the problem has a plan in force.
func Plan(p constraint.Question, o Options) (partition.Partition, error) {
	return by(p, o, (*state).fewer, constructions)
}

// by is Plan by a search and these constructions.
func by(p constraint.Question, o Options, search func(*state, int), all []construction) (partition.Partition, error) {
	c, err := p.Check()
	if err != nil {
		return partition.Partition{}, err
	}
	ranked, err := partition.HeaviestFirst(p.Items)
	if err != nil {
		return partition.Partition{}, err
	}
	base, err := begin(p, &c, ranked)
	if err != nil {
		return partition.Partition{}, err
	}
	o = o.complete(len(p.Items))
	var s *state
	order := lightestFirst(ranked)
	if p.Bounds.Fixed > 0 && stands(&p, base.Replicas) {
		s = newState(&c, order, p.Now, base.Replicas)
		s.relieve(slices.Max(newState(&c, order, base.Of, base.Replicas).load), o.Steps)
	} else {
		s = newState(&c, order, base.Of, base.Replicas)
		search(s, o.Steps)
		s.level()
		if s.construct(all, o.Steps) {
			s.level()
		}
	}
	out := c.Build(p.Items, s.of, s.n)
	if !plain(p) {
		return out, nil
	}
	if len(base.Lost) < len(out.Lost) || worse(out, base) {
		out = base
	}
	return relabelled(p, out), nil
}

// stands reports whether the plan in force has so many replicas, each item on one of them, and each pinned item on its
// own.
func stands(p *constraint.Question, replicas int) bool {
	if p.Now == nil || p.Replicas != replicas || p.Bounds.MaxClusters > 0 || !plain(*p) {
		return false
	}
	for i := range p.Items {
		at, pin := p.Stands(i), p.Items[i].Replica
		if at == plan.NoReplica || pin != partition.Free && pin != at {
			return false
		}
	}
	return true
}

// worse: more replicas, or as many with a higher makespan.
func worse(a, b partition.Partition) bool {
	if a.Replicas != b.Replicas {
		return a.Replicas > b.Replicas
	}
	return a.Makespan() > b.Makespan()
}

// plain problems are those that LPT can be asked.
func plain(p constraint.Question) bool {
	return len(p.Apart) == 0 && p.Bounds.Memory == 0 && !slices.Contains(p.Closed, true)
}

func begin(p constraint.Question, c *constraint.Setting, ranked []partition.Ranked) (partition.Partition, error) {
	if plain(p) {
		return partition.LPTOf(p.Items, ranked, p.Bounds), nil
	}
	// What stands on a closed replica stays there; everything else is new.
	now := make([]int, len(p.Items))
	for i := range now {
		now[i] = plan.NoReplica
		if at := p.Stands(i); at != plan.NoReplica && p.IsClosed(at) {
			now[i] = at
		}
	}
	q := *c
	q.Now = now
	q.Replicas = c.Least
	for _, at := range now {
		q.Replicas = max(q.Replicas, at+1)
	}
	a, err := sticky.PlanChecked(&q, sticky.Options{High: plan.LoadUnit, Low: plan.LoadUnit})
	return a.Partition, err
}

func relabelled(p constraint.Question, out partition.Partition) partition.Partition {
	if p.Now == nil {
		return out
	}
	now := make(map[string]int, len(p.Items))
	for i := range p.Items {
		if at := p.Stands(i); at != plan.NoReplica {
			now[p.Items[i].ID] = at
		}
	}
	if len(now) == 0 {
		return out
	}
	return partition.Relabel(out, p.Items, now)
}

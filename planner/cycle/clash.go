package cycle

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/placement"
)

// clash is rules that leave no plan at all: without any one of them the others can be kept, unless unproven says that the
// search for that was cut short.
type clash struct {
	a        *adoption
	rules    []rule
	unproven bool
}

// rule is one that a clash needs. Pin has a cluster of the fleet and its Replica, Together and Apart a group, Closed a
// replica; the others have their number.
type rule struct {
	what    partition.Rule
	cluster int
	group   int
	number  int
}

func (c *clash) Error() string {
	clauses := make([]string, len(c.rules))
	for i, r := range c.rules {
		clauses[i] = c.a.worded(r)
	}
	search := ""
	if c.unproven {
		search = " (perhaps without one of them, too: the search for that was cut short)"
	}
	return fmt.Sprintf("these rules clash, so that the plan in force stays: %s%s; drop or change one of them", strings.Join(clauses, "; "), search)
}

// worded is a rule as a clause for people, with where it is written.
func (a *adoption) worded(r rule) string {
	switch r.what {
	case partition.Pin:
		return a.wordedPin(r)
	case partition.Together:
		return fmt.Sprintf("group %q stays together (%s)", a.groups[r.group].name, problem.Plural(len(a.groups[r.group].members), "cluster"))
	case partition.Apart:
		return fmt.Sprintf("group %q is kept apart (%s)", a.groups[r.group].name, problem.Plural(len(a.groups[r.group].members), "cluster"))
	case partition.Closed:
		return fmt.Sprintf("replica %d is unwell or cordoned", r.number)
	case partition.MaxClusters:
		return fmt.Sprintf("a replica has at most %s (partition.maxClustersPerReplica)", problem.Plural(r.number, "cluster"))
	case partition.FixedReplicas:
		return fmt.Sprintf("there are exactly %s", problem.Plural(r.number, "replica"))
	}
	return fmt.Sprintf("there are at most %s (partition.maxReplicas)", problem.Plural(r.number, "replica"))
}

func (a *adoption) wordedPin(r rule) string {
	c := a.fleet.Clusters[r.cluster]
	switch {
	case a.firm(r.cluster).Claim == placement.Pinned && a.firm(r.cluster).At == r.number:
		return fmt.Sprintf("%q is pinned to replica %d", c.Shard.ID, r.number)
	case c.FixedAt != nil:
		return fmt.Sprintf("%q has no Secret, and Argo CD puts it on replica %d", c.Shard.ID, r.number)
	case c.Unmanaged:
		return fmt.Sprintf("the Secret of %q opted out of ballast, and is on replica %d", c.Shard.ID, r.number)
	}
	return fmt.Sprintf("the Secret of %q cannot be written, and is on replica %d", c.Shard.ID, r.number)
}

// firmest is the replica that a unit's firmest cluster cannot leave, and which one that is.
func (a *adoption) firmest(clusters []int) (cluster, at int) {
	cluster, at = -1, placement.NoReplica
	firmest := placement.Follows
	for _, i := range clusters {
		if c := a.firm(i); c.At >= 0 && (at < 0 || c.Claim > firmest) {
			cluster, at, firmest = i, c.At, c.Claim
		}
	}
	return cluster, at
}

// shrink leaves out one rule after the other that a clash does not need.
func shrink(rules []rule, clashes func([]rule) bool) []rule {
	for k := 0; k < len(rules); {
		if without := slices.Delete(slices.Clone(rules), k, k+1); clashes(without) {
			rules = without
		} else {
			k++
		}
	}
	return rules
}

// merged refuses groups that cannot be together, wherever they are: two pins, more clusters than a replica may have, or two
// of a group that is kept apart.
func (a *adoption) merged(maxClusters int) error {
	if len(a.links(a.groups, whole)) == 0 {
		return nil
	}
	var rules []rule
	for k, g := range a.groups {
		what := partition.Together
		if g.apart {
			what = partition.Apart
		}
		rules = append(rules, rule{what: what, group: k})
	}
	for _, u := range a.units() {
		if _, at := a.firmest(u.Clusters); at < 0 {
			continue
		}
		for _, of := range a.byServer(u) {
			if i, at := a.firmest(of); at >= 0 {
				rules = append(rules, rule{what: partition.Pin, cluster: i, number: at})
			}
		}
	}
	if maxClusters > 0 {
		rules = append(rules, rule{what: partition.MaxClusters, number: maxClusters})
	}
	if !a.mergedClash(rules) {
		return nil
	}
	return &clash{a: a, rules: shrink(rules, a.mergedClash)}
}

// byServer are a unit's clusters, those of one server together.
func (a *adoption) byServer(u discover.Unit) [][]int {
	var out [][]int
	for _, of := range placement.Group(len(u.Clusters), func(k int) string { return a.fleet.Clusters[u.Clusters[k]].Shard.Server }) {
		members := make([]int, len(of))
		for n, k := range of {
			members[n] = u.Clusters[k]
		}
		out = append(out, members)
	}
	return out
}

// chosenGroups are the groups that the rules have, those of a kind.
func (a *adoption) chosenGroups(rules []rule, what partition.Rule) (groups []group) {
	for _, r := range rules {
		if r.what == what {
			groups = append(groups, a.groups[r.group])
		}
	}
	return groups
}

// mergedClash reports whether those rules alone cannot be kept, whatever the number of replicas.
func (a *adoption) mergedClash(rules []rule) bool {
	together := a.chosenGroups(rules, partition.Together)
	pins, most := map[int]int{}, 0
	for _, r := range rules {
		switch r.what {
		case partition.Pin:
			pins[r.cluster] = r.number
		case partition.MaxClusters:
			most = r.number
		}
	}
	units := a.unitsOf(together)
	of := make(map[int]int, len(a.fleet.Clusters))
	for k, u := range units {
		at, several := placement.NoReplica, false
		for _, i := range u.Clusters {
			of[i] = k
			several = several || a.fleet.Clusters[i].Shard.Server != u.Server
			pin, pinned := pins[i]
			if pinned && at >= 0 && at != pin {
				return true
			}
			if pinned {
				at = pin
			}
		}
		if most > 0 && several && len(u.Clusters) > most {
			return true
		}
	}
	for _, g := range a.chosenGroups(rules, partition.Apart) {
		seen := map[int]bool{}
		for _, i := range g.members {
			if seen[of[i]] {
				return true
			}
			seen[of[i]] = true
		}
	}
	return false
}

// explained words what the partition found to clash by its items, and adds the groups without which it would not.
func (a *adoption) explained(err error, p constraint.Problem, units []discover.Unit) error {
	var found *constraint.Error
	if !errors.As(err, &found) {
		return err
	}
	c := &clash{a: a, unproven: found.Unproven}
	involved := map[int]bool{} // units
	for _, one := range found.Set {
		r := rule{what: one.Rule, number: cmp.Or(one.Count, one.Replica)}
		switch one.Rule {
		case partition.Pin:
			k := slices.IndexFunc(p.Items, func(it partition.Item) bool { return it.ID == one.Item })
			involved[k] = true
			r.cluster, r.number = units[k].Clusters[0], one.Replica
			if i, at := a.firmest(units[k].Clusters); at == one.Replica {
				r.cluster = i
			}
		case partition.Apart:
			r.group = slices.IndexFunc(a.groups, func(g group) bool { return g.name == one.Group })
			for _, g := range p.Apart {
				for _, k := range g.Items {
					involved[k] = involved[k] || g.Name == one.Group
				}
			}
		}
		c.rules = append(c.rules, r)
	}
	c.rules = append(a.binding(units, involved), c.rules...)
	keeps := func(rules []rule) bool { return a.stillClashes(rules, p) }
	together := slices.DeleteFunc(slices.Clone(c.rules), func(r rule) bool { return r.what != partition.Together })
	rest := slices.DeleteFunc(slices.Clone(c.rules), func(r rule) bool { return r.what == partition.Together })
	together = shrink(together, func(some []rule) bool { return keeps(slices.Concat(some, rest)) })
	c.rules = slices.Concat(together, rest)
	return c
}

// binding are the groups that make units of several servers.
func (a *adoption) binding(units []discover.Unit, involved map[int]bool) (rules []rule) {
	in := map[int]bool{}
	for k, u := range units {
		for _, i := range u.Clusters {
			in[i] = in[i] || involved[k] && len(u.Clusters) > 1
		}
	}
	for k, g := range a.groups {
		if !g.apart && slices.ContainsFunc(g.members, func(i int) bool { return in[i] }) {
			rules = append(rules, rule{what: partition.Together, group: k})
		}
	}
	return rules
}

// stillClashes reports whether the partition has no plan within those rules alone.
func (a *adoption) stillClashes(rules []rule, p constraint.Problem) bool {
	units := a.unitsOf(a.chosenGroups(rules, partition.Together))
	apart := a.apartOf(units, a.chosenGroups(rules, partition.Apart))
	q := constraint.Problem{Replicas: p.Replicas, Now: make([]int, len(units)), Apart: apart}
	pins := map[int]int{}
	for _, r := range rules {
		switch r.what {
		case partition.Pin:
			pins[r.cluster] = r.number
		case partition.Closed:
			for len(q.Closed) <= r.number {
				q.Closed = append(q.Closed, false)
			}
			q.Closed[r.number] = true
		case partition.MaxReplicas, partition.FixedReplicas:
			q.Bounds.MaxReplicas = r.number
		}
	}
	if q.Bounds.MaxReplicas == 0 { // as many as ever could be needed
		q.Bounds.MaxReplicas = len(units) + p.Replicas + len(q.Closed) + 1 + slices.Max(append(slices.Collect(maps.Values(pins)), 0))
	}
	for k, u := range units {
		item := partition.Item{ID: a.fleet.Clusters[u.Clusters[0]].Shard.ID, Clusters: len(u.Clusters), Replica: partition.Free}
		for _, i := range u.Clusters {
			if at, pinned := pins[i]; pinned {
				item.Replica = at
			}
		}
		q.Items = append(q.Items, item)
		q.Now[k] = a.standing(u.Clusters[0])
	}
	var found *constraint.Error
	_, err := q.Check()
	return errors.As(err, &found)
}

// Package clash says which of a fleet's rules clash, in words for people.
package clash

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ballast/planner/cycle/ground"
	"ballast/planner/discover"
	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// Error is rules that leave no plan at all: without any one of them the others can be kept, unless unproven says that
// the search for that was cut short.
type Error struct {
	by       rulebook
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

func (c *Error) Error() string {
	clauses := make([]string, len(c.rules))
	for i, r := range c.rules {
		clauses[i] = c.by.worded(r)
	}
	search := ""
	if c.unproven {
		search = " (perhaps without one of them, too: the search for that was cut short)"
	}
	return fmt.Sprintf("these rules clash, so that the plan in force stays: %s%s; drop or change one of them",
		strings.Join(clauses, "; "), search)
}

// rulebook has the rules of a ground: which of them clash, and their words.
type rulebook struct{ *ground.Ground }

// worded is a rule as a clause for people, with where it is written.
func (b rulebook) worded(r rule) string {
	switch r.what {
	case partition.Pin:
		return b.wordedPin(r)
	case partition.Together:
		return fmt.Sprintf("group %q stays together (%s)", b.Groups[r.group].Name,
			plural.Of(len(b.Groups[r.group].Members), "cluster"))
	case partition.Apart:
		return fmt.Sprintf("group %q is kept apart (%s)", b.Groups[r.group].Name,
			plural.Of(len(b.Groups[r.group].Members), "cluster"))
	case partition.Closed:
		return fmt.Sprintf("replica %d is unwell or cordoned", r.number)
	case partition.MaxClusters:
		return fmt.Sprintf("a replica has at most %s (partition.maxClustersPerReplica)", plural.Of(r.number, "cluster"))
	case partition.FixedReplicas:
		return fmt.Sprintf("there are exactly %s", plural.Of(r.number, "replica"))
	}
	return fmt.Sprintf("there are at most %s (partition.maxReplicas)", plural.Of(r.number, "replica"))
}

func (b rulebook) wordedPin(r rule) string {
	c := b.Fleet.Clusters[r.cluster]
	switch {
	case b.Fixed().To(r.cluster).Claim == placement.Pinned && b.Fixed().To(r.cluster).At == r.number:
		return fmt.Sprintf("%q is pinned to replica %d", c.Shard.ID, r.number)
	case c.FixedAt != nil:
		return fmt.Sprintf("%q has no Secret, and Argo CD puts it on replica %d", c.Shard.ID, r.number)
	case c.Unmanaged:
		return fmt.Sprintf("the Secret of %q opted out of ballast, and is on replica %d", c.Shard.ID, r.number)
	}
	return fmt.Sprintf("the Secret of %q cannot be written, and is on replica %d", c.Shard.ID, r.number)
}

// shrink leaves out the rules that a clash does not need: many at once first, for there may be thousands of pins, and
// at last one after the other.
func shrink(rules []rule, clashes func([]rule) bool) []rule {
	for n := max(len(rules)/2, 1); n > 0; n /= 2 {
		for k := 0; k < len(rules); {
			if without := slices.Delete(slices.Clone(rules), k, min(k+n, len(rules))); clashes(without) {
				rules = without
			} else {
				k += n
			}
		}
	}
	return rules
}

// Merged refuses groups that cannot be together, wherever they are: two pins, more clusters than a replica may have, or
// two of a group that is kept apart.
func Merged(g *ground.Ground, maxClusters int) error {
	b := rulebook{g}
	if len(b.Units().Links(b.Groups, ground.Whole)) == 0 {
		return nil
	}
	var rules []rule
	for k, g := range b.Groups {
		what := partition.Together
		if g.Apart {
			what = partition.Apart
		}
		rules = append(rules, rule{what: what, group: k})
	}
	for _, u := range b.Units().All() {
		if _, at := b.Fixed().Unit(u.Clusters); at < 0 {
			continue
		}
		servers := b.byServer(u)
		if len(servers) == 1 { // no group binds it
			continue
		}
		for _, of := range servers {
			if i, at := b.Fixed().Unit(of); at >= 0 {
				rules = append(rules, rule{what: partition.Pin, cluster: i, number: at})
			}
		}
	}
	if maxClusters > 0 {
		rules = append(rules, rule{what: partition.MaxClusters, number: maxClusters})
	}
	if !b.mergedClash(rules) {
		return nil
	}
	return &Error{by: b, rules: shrink(rules, b.mergedClash)}
}

// byServer are a unit's clusters, those of one server together.
func (b rulebook) byServer(u discover.Unit) [][]int {
	var out [][]int
	for _, of := range placement.Group(len(u.Clusters), func(k int) string { return b.Fleet.Clusters[u.Clusters[k]].Shard.Server }) {
		members := make([]int, len(of))
		for n, k := range of {
			members[n] = u.Clusters[k]
		}
		out = append(out, members)
	}
	return out
}

// chosenGroups are the groups that the rules have, those of a kind.
func (b rulebook) chosenGroups(rules []rule, what partition.Rule) (groups []ground.Group) {
	for _, r := range rules {
		if r.what == what {
			groups = append(groups, b.Groups[r.group])
		}
	}
	return groups
}

// mergedClash reports whether those rules alone cannot be kept, whatever the number of replicas.
func (b rulebook) mergedClash(rules []rule) bool {
	together := b.chosenGroups(rules, partition.Together)
	pins, most := map[int]int{}, 0
	for _, r := range rules {
		switch r.what {
		case partition.Pin:
			pins[r.cluster] = r.number
		case partition.MaxClusters:
			most = r.number
		}
	}
	units := b.Units().Of(together)
	of := make(map[int]int, len(b.Fleet.Clusters))
	for k, u := range units {
		at, several := plan.NoReplica, false
		for _, i := range u.Clusters {
			of[i] = k
			several = several || b.Fleet.Clusters[i].Shard.Server != u.Server
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
	for _, g := range b.chosenGroups(rules, partition.Apart) {
		seen := map[int]bool{}
		for _, i := range g.Members {
			if seen[of[i]] {
				return true
			}
			seen[of[i]] = true
		}
	}
	return false
}

// Explained words what the partition found to clash by its items, and adds the groups without which it would not.
func Explained(g *ground.Ground, err error, p constraint.Question, units []discover.Unit) error {
	var found *constraint.Error
	if !errors.As(err, &found) {
		return err
	}
	b := rulebook{g}
	c := &Error{by: b, unproven: found.Unproven}
	involved := map[int]bool{} // units
	for _, one := range found.Set {
		r := rule{what: one.Rule, number: cmp.Or(one.Count, one.Replica)}
		switch one.Rule {
		case partition.Pin:
			k := slices.IndexFunc(p.Items, func(it partition.Item) bool { return it.ID == one.Item })
			involved[k] = true
			r.cluster, r.number = units[k].Clusters[0], one.Replica
			if i, at := b.Fixed().Unit(units[k].Clusters); at == one.Replica {
				r.cluster = i
			}
		case partition.Apart:
			r.group = slices.IndexFunc(b.Groups, func(g ground.Group) bool { return g.Name == one.Group })
			for _, g := range p.Apart {
				for _, k := range g.Items {
					involved[k] = involved[k] || g.Name == one.Group
				}
			}
		}
		c.rules = append(c.rules, r)
	}
	c.rules = append(b.binding(units, involved), c.rules...)
	keeps := func(rules []rule) bool { return b.stillClashes(rules, p) }
	together := slices.DeleteFunc(slices.Clone(c.rules), func(r rule) bool { return r.what != partition.Together })
	rest := slices.DeleteFunc(slices.Clone(c.rules), func(r rule) bool { return r.what == partition.Together })
	together = shrink(together, func(some []rule) bool { return keeps(slices.Concat(some, rest)) })
	c.rules = slices.Concat(together, rest)
	return c
}

// binding are the groups that make units of several servers.
func (b rulebook) binding(units []discover.Unit, involved map[int]bool) (rules []rule) {
	in := map[int]bool{}
	for k, u := range units {
		for _, i := range u.Clusters {
			in[i] = in[i] || involved[k] && len(u.Clusters) > 1
		}
	}
	for k, g := range b.Groups {
		if !g.Apart && slices.ContainsFunc(g.Members, func(i int) bool { return in[i] }) {
			rules = append(rules, rule{what: partition.Together, group: k})
		}
	}
	return rules
}

// stillClashes reports whether the partition has no plan within those rules alone.
func (b rulebook) stillClashes(rules []rule, p constraint.Question) bool {
	units := b.Units().Of(b.chosenGroups(rules, partition.Together))
	apart := b.Units().Apart(units, b.chosenGroups(rules, partition.Apart))
	q := constraint.Question{Replicas: p.Replicas, Now: make([]int, len(units)), Apart: apart}
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
		q.Bounds.MaxReplicas = len(units) + p.Replicas + len(q.Closed) + 1 +
			slices.Max(append(slices.Collect(maps.Values(pins)), 0))
	}
	for k, u := range units {
		item := partition.Item{ID: b.Fleet.Clusters[u.Clusters[0]].Shard.ID, Clusters: len(u.Clusters),
			Replica: partition.Free}
		for _, i := range u.Clusters {
			if at, pinned := pins[i]; pinned {
				item.Replica = at
			}
		}
		q.Items = append(q.Items, item)
		q.Now[k] = b.Standing(u.Clusters[0])
	}
	var found *constraint.Error
	_, err := q.Check()
	return errors.As(err, &found)
}

package discover

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ballast/planner/plan"
)

// Fleet is every cluster in the order of plan.CompareShards, the units in the order of their first cluster, and what is
// wrong with the Secrets.
type Fleet struct {
	Clusters []Cluster       `json:"clusters"`
	Units    []Unit          `json:"units"`
	Problems []SecretProblem `json:"problems,omitempty"`
}

// Made is when each cluster's Secret was made: where there is room for some alone, nobody takes it from older ones by
// new ones.
func (f Fleet) Made() map[string]time.Time {
	made := make(map[string]time.Time, len(f.Clusters))
	for _, c := range f.Clusters {
		made[c.Shard.ID] = c.Created
	}
	return made
}

// Groups are what Argo CD cannot tell apart: the units, without the Secrets that stand alone, which are groups of their
// own.
func (f Fleet) Groups() []Unit {
	if !slices.ContainsFunc(f.Clusters, func(c Cluster) bool { return c.Alone }) {
		return f.Units
	}
	return grouped(f.Clusters, Cluster.OfServer)
}

func (f Fleet) find(secret string) (int, bool) {
	return slices.BinarySearchFunc(f.Clusters, secret, func(c Cluster, name string) int { return cmp.Compare(c.Shard.ID, name) })
}

// secretNames are the clusters that a Secret stands for, and those of them that ballast writes: the implicit one can
// not be lost.
func (f Fleet) secretNames() (all, ours []string) {
	all, ours = make([]string, 0, len(f.Clusters)), make([]string, 0, len(f.Clusters))
	for _, c := range f.Clusters {
		if c.Implicit {
			continue
		}
		all = append(all, c.Shard.ID)
		if !c.Unmanaged {
			ours = append(ours, c.Shard.ID)
		}
	}
	return all, ours
}

// mislead marks the other Secrets of a server of which one keeps Argo CD from reconciling it: it takes any of them.
func (f Fleet) mislead(u Unit) {
	keeps := func(i int) bool {
		c := f.Clusters[i]
		return c.Unread || c.Skip || c.Explicit.State == ShardNegative
	}
	if len(u.Clusters) > 1 && slices.ContainsFunc(u.Clusters, keeps) {
		for _, i := range u.Clusters {
			f.Clusters[i].Misled = !keeps(i)
		}
	}
}

// twinsAfter is for how long Argo CD may go by a Secret that is gone, of a server that another one has: it deletes a
// server by its text, slashes and all, and keeps it by the text without them. Hearing of the Secret that is left mends
// that, and any change of the distribution after it; for the cluster that it runs in, which has none, only a restart
// does.
const twinsAfter = time.Hour

// twins marks what is left of servers that had several Secrets within twinsAfter as misled, and says which had, and
// when last. The cluster that Argo CD runs in is one without a Secret, so that one is a second.
func (f Fleet) twins(before map[string]time.Time, now time.Time) map[string]time.Time {
	all := map[string]time.Time{}
	for key, at := range before {
		if since := now.Sub(at); since < twinsAfter {
			all[key] = at
		}
	}
	gone := len(all) > 0
	for _, u := range f.Units {
		first := &f.Clusters[u.Clusters[0]]
		switch {
		case len(u.Clusters) > 1, first.Shard.Server == plan.InClusterServer && !first.Implicit:
			all[leaderKey(u.Server)] = now
		case gone: // as nearly never
			if _, lately := all[leaderKey(u.Server)]; lately {
				first.Misled = true
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	if len(all) > mostLeaders {
		keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(all[b].Compare(all[a]), cmp.Compare(a, b)) })
		for _, key := range keys[mostLeaders:] {
			delete(all, key)
		}
	}
	return all
}

package measure

import (
	"cmp"
	"slices"
	"strings"

	"ballast/planner/discover"
	"ballast/planner/poll"
)

const (
	nobody    = -1 // no cluster has that key
	ambiguous = -2 // several clusters have it, and it says nothing of any
)

// index finds the cluster that a key names.
type index struct {
	exact  map[string]int
	folded map[string]int // server URLs with scheme and host in small letters; nil unless the key is a server URL
}

// newIndex indexes the fleet by what a label names. carriers are the clusters that stand for their unit.
func newIndex(fleet discover.Fleet, carriers []int, to poll.MatchTo) index {
	x := index{exact: make(map[string]int, len(fleet.Clusters))}
	if to == poll.ToID || to == poll.ToName {
		for i, c := range fleet.Clusters {
			key := c.Shard.ID
			if to == poll.ToName {
				key = c.Shard.Name
			}
			put(x.exact, key, i)
		}
		return x
	}
	x.folded = make(map[string]int, len(fleet.Units))
	for _, u := range fleet.Units {
		x.exact[u.Server] = carriers[u.Clusters[0]]
		put(x.folded, foldServer(u.Server), carriers[u.Clusters[0]])
	}
	return x
}

func put(m map[string]int, key string, i int) {
	if _, taken := m[key]; taken {
		i = ambiguous
	}
	m[key] = i
}

// find is the index of the cluster, nobody or ambiguous. What is written exactly so comes first: to Argo CD,
// https://A and https://a are two clusters.
func (x index) find(key string, aliases map[string]string) int {
	if alias, found := aliases[key]; found {
		key = alias
	}
	if x.folded != nil {
		key = discover.NormalizeServer(key)
	}
	if i, found := x.exact[key]; found {
		return i
	}
	if x.folded == nil {
		return nobody
	}
	if i, found := x.folded[foldServer(key)]; found {
		return i
	}
	return nobody
}

// foldServer writes scheme and host in small letters; the path keeps its case.
func foldServer(url string) string {
	start := 0
	if i := strings.Index(url, "://"); i >= 0 {
		start = i + len("://")
	}
	end := len(url)
	if slash := strings.IndexByte(url[start:], '/'); slash >= 0 {
		end = start + slash
	}
	return strings.ToLower(url[:end]) + url[end:]
}

// carry says for each cluster which one carries its unit's load: the one that leads, or where Argo CD does not
// reconcile that one, the first that it does.
func carry(fleet discover.Fleet) []int {
	carriers := make([]int, len(fleet.Clusters))
	for _, u := range fleet.Units {
		carrier := slices.MinFunc(u.Clusters, func(a, b int) int {
			x, y := fleet.Clusters[a], fleet.Clusters[b]
			return cmp.Or(discover.FalseFirst(x.Alone, y.Alone), discover.FalseFirst(x.Skip, y.Skip),
				discover.FalseFirst(x.Follows, y.Follows), cmp.Compare(a, b))
		})
		for _, i := range u.Clusters {
			carriers[i] = carrier
		}
	}
	return carriers
}

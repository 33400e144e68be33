package measure

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"ballast/planner/discover"
	"ballast/planner/poll"
)

const (
	nobody    = -1 // no cluster has that key
	ambiguous = -2 // several clusters have it, none of them is first, and it says nothing of any
)

// index finds the cluster that a key names.
type index struct {
	exact  map[string]int
	folded map[string]int // server URLs with scheme and host in small letters; nil unless the key is a server URL
	led    map[int]bool   // the clusters that have a key that others have, too, and that it is taken for
}

// newIndex indexes the fleet by what a label names. A key that several clusters have is that of the first by order, for
// who makes another cluster with it must not take the series of one that was there; where none is first, it is nobody's.
func (j *joiner) newIndex(to poll.MatchTo) index {
	x := index{exact: make(map[string]int, len(j.fleet.Clusters)), led: map[int]bool{}}
	switch to {
	case poll.ToID:
		for i, c := range j.fleet.Clusters {
			x.exact[c.Shard.ID] = i
		}
		return x
	case poll.ToName:
		named := make(map[string][]int, len(j.fleet.Clusters))
		for i, c := range j.fleet.Clusters {
			named[c.Shard.Name] = append(named[c.Shard.Name], i)
		}
		x.put(x.exact, named, j.namedFirst)
		return x
	}
	inSmall := true
	for _, u := range j.fleet.Units {
		x.exact[u.Server] = j.carriers[u.Clusters[0]]
		inSmall = inSmall && foldServer(u.Server) == u.Server
	}
	if x.folded = x.exact; inSmall { // as nearly always
		return x
	}
	folded := make(map[string][]int, len(j.fleet.Units))
	for _, u := range j.fleet.Units {
		small := foldServer(u.Server)
		folded[small] = append(folded[small], j.carriers[u.Clusters[0]])
	}
	x.folded = make(map[string]int, len(folded))
	x.put(x.folded, folded, j.first)
	return x
}

// put takes each key for the first of those that have it.
func (x index) put(into map[string]int, of map[string][]int, order func(a, b int) int) {
	for key, all := range of {
		first := slices.MinFunc(all, order)
		for _, i := range all {
			if i != first && order(i, first) == 0 {
				first = ambiguous
				break
			}
		}
		if into[key] = first; first != ambiguous && len(all) > 1 {
			x.led[first] = true
		}
	}
}

// first orders clusters that have one key: those first that carry load, were there for an hour with the server that they
// have, and are the oldest.
func (j *joiner) first(a, b int) int {
	x, y, s, t := j.fleet.Clusters[a], j.fleet.Clusters[b], j.options.Standings.of(a), j.options.Standings.of(b)
	return cmp.Or(discover.FalseFirst(x.Skip, y.Skip), discover.FalseFirst(s.New, t.New), discover.FalseFirst(s.Moved, t.Moved),
		x.Created.Compare(y.Created))
}

// namedFirst orders by who had the name last time before by age: the oldest may have had another.
func (j *joiner) namedFirst(a, b int) int {
	return cmp.Or(discover.FalseFirst(j.options.Standings.of(a).New, j.options.Standings.of(b).New),
		discover.FalseFirst(!j.hadName(a), !j.hadName(b)), j.first(a, b))
}

func (j *joiner) hadName(i int) bool {
	row := j.rows[i]
	return row >= 0 && row < len(j.names) && j.names[row] == nameKey(j.fleet.Clusters[i].Shard.Name)
}

// namesOf are for each cluster the key of the name that is its; empty where another has it.
func (j *joiner) namesOf() []string {
	x, names := j.indexBy(poll.ToName), make([]string, len(j.fleet.Clusters))
	for i, c := range j.fleet.Clusters {
		if x.exact[c.Shard.Name] == i {
			names[i] = nameKey(c.Shard.Name)
		}
	}
	return names
}

// nameKey is a name in the history: of any length in the same room, and nobody finds another with the same.
func nameKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
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

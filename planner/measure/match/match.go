// Package match says which cluster a series of a metric is of.
package match

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"ballast/planner/discover"
)

// What Find answers beside a cluster.
const (
	Nobody    = -1 // no cluster has that key
	Ambiguous = -2 // several clusters have it, none of them is first, and it says nothing of any
)

// Index finds the cluster that a key names.
type Index struct {
	exact  map[string]int
	folded map[string]int // server URLs with scheme and host in small letters; nil unless the key is a server URL
	led    map[int]bool   // the clusters that have a key that others have, too, and that it is taken for
}

func newIndex(size int) Index { return Index{exact: make(map[string]int, size), led: map[int]bool{}} }

// ByID indexes a fleet by the IDs of its clusters.
func ByID(fleet discover.Fleet) Index {
	x := newIndex(len(fleet.Clusters))
	for i, c := range fleet.Clusters {
		x.exact[c.Shard.ID] = i
	}
	return x
}

// ByName indexes a fleet by names. One that several clusters have is that of the first by order, for who makes another
// cluster with it must not take the series of one that was there; where none is first, it is nobody's.
func ByName(fleet discover.Fleet, order func(a, b int) int) Index {
	x := newIndex(len(fleet.Clusters))
	named := make(map[string][]int, len(fleet.Clusters))
	for i, c := range fleet.Clusters {
		named[c.Shard.Name] = append(named[c.Shard.Name], i)
	}
	x.put(x.exact, named, order)
	return x
}

// ByServer indexes a fleet by its servers' URLs: each is of the cluster that carries its unit's load. Spellings that
// differ by the case of scheme or host are one key of several servers, and that of the first by order.
func ByServer(fleet discover.Fleet, carriers []int, order func(a, b int) int) Index {
	x := newIndex(len(fleet.Clusters))
	inSmall := true
	for _, u := range fleet.Units {
		x.exact[u.Server] = carriers[u.Clusters[0]]
		inSmall = inSmall && foldServer(u.Server) == u.Server
	}
	if x.folded = x.exact; inSmall { // as nearly always
		return x
	}
	folded := make(map[string][]int, len(fleet.Units))
	for _, u := range fleet.Units {
		small := foldServer(u.Server)
		folded[small] = append(folded[small], carriers[u.Clusters[0]])
	}
	x.folded = make(map[string]int, len(folded))
	x.put(x.folded, folded, order)
	return x
}

// put takes each key for the first of those that have it.
func (x Index) put(into map[string]int, of map[string][]int, order func(a, b int) int) {
	for key, all := range of {
		first := slices.MinFunc(all, order)
		for _, i := range all {
			if i != first && order(i, first) == 0 {
				first = Ambiguous
				break
			}
		}
		if into[key] = first; first != Ambiguous && len(all) > 1 {
			x.led[first] = true
		}
	}
}

// Leads reports whether others have a key of a cluster's, too, which is taken for it.
func (x Index) Leads(i int) bool { return x.led[i] }

// Find is the place of the cluster that a key names, Nobody or Ambiguous. What is written exactly so comes first: to
// Argo CD, https://A and https://a are two clusters.
func (x Index) Find(key string, aliases map[string]string) int {
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
		return Nobody
	}
	if i, found := x.folded[foldServer(key)]; found {
		return i
	}
	return Nobody
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

// Carriers say for each cluster which one carries its unit's load: the one that leads, or where Argo CD does not
// reconcile that one, the first that it does.
func Carriers(fleet discover.Fleet) []int {
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

// NameKey is a name in the history: of any length in the same room, and nobody finds another with the same.
func NameKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

package ownership

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/observed"
)

// AstrayAfter is for how long a cluster must be with another replica than its plan and its Secret say: longer than the
// 3 min after which Argo CD's informer of cluster Secrets hears of each of them anew.
const AstrayAfter = 5 * time.Minute

// Astray is a cluster whose plan and Secret agree, and that the replica they name does not have, while others do: Argo
// CD's pods go by something else. They do where a second Secret of its server was deleted: each of them forgets the
// server's shard then, takes 0 for it, and does not read the Secret that is left (util/db/cluster.go,
// controller/sharding/cache.go).
type Astray struct {
	Cluster  string    `json:"cluster"`
	Since    time.Time `json:"since"`
	Intended int       `json:"intended"`
	Owners   []int     `json:"owners"`
}

// Message is the sentence for people, without the mend.
func (a Astray) Message() string {
	owners := make([]string, len(a.Owners))
	for i, owner := range a.Owners {
		owners[i] = strconv.Itoa(owner)
	}
	return fmt.Sprintf("cluster %q is reconciled by replica %s since %s, and by its plan and its Secret it is replica %d's: Argo CD goes by neither, "+
		"as after another Secret of the same server was deleted", a.Cluster, strings.Join(owners, ", "),
		a.Since.UTC().Format(time.RFC3339), a.Intended)
}

// Stray finds the clusters that are astray for longer than AstrayAfter, of those that a verdict says the owners of.
// agreed is the replica that the plan and all Secrets of a cluster's server name, if they do. The memory is Judge's,
// and is not changed.
func (m Memory) Stray(s Observation, owned map[string]observed.Owned, agreed func(cluster string) (int, bool), now time.Time) (Memory, []Astray) {
	oldest, _ := span(s.Pods, everyPod(s.Pods), now)
	since := map[string]time.Time{}
	var all []Astray
	for name, o := range owned {
		intended, agrees := agreed(name)
		if !agrees || len(o.Owners) == 0 || slices.Contains(o.Owners, intended) {
			continue
		}
		first, known := m.Astray[name]
		if !known {
			first = m.Newest
		}
		since[name] = first
		if s.Asked && oldest.Sub(first) >= AstrayAfter {
			all = append(all, Astray{Cluster: name, Since: first, Intended: intended, Owners: slices.Clone(o.Owners)})
		}
	}
	slices.SortFunc(all, func(a, b Astray) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Cluster, b.Cluster)) })
	m.Astray = nil
	if len(since) > 0 {
		m.Astray = since
	}
	return m, all
}

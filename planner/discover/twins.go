package discover

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ballast/planner/plan"
)

// twinsAfter is for how long Argo CD may go by a Secret that is gone, of a server that another one has: it deletes a server by its
// text, slashes and all, and keeps it by the text without them. Hearing of the Secret that is left mends that, and any change of
// the distribution after it; for the cluster that it runs in, which has none, only a restart does.
const twinsAfter = time.Hour

// twins marks what is left of servers that had several Secrets within twinsAfter as misled, and says which had, and when last. The
// cluster that Argo CD runs in is one without a Secret, so that one is a second.
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

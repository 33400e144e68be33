package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/planner/discover"
	"ballast/planner/nudge"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/printable"
)

// named is when a server was named last, and when a pod showed last that it reads that cluster: no Application has a
// pod do so.
type named struct{ at, read time.Time }

// servers are those that pods and Applications name: the clusters, for whoever may read no Secret.
type servers map[string]named

const (
	// forgottenAfter is how long a server counts that nobody names any more.
	forgottenAfter = 24 * time.Hour
	// mostServers are remembered, more than any Argo CD has, and mostBytes of their URLs, 200 each: whoever may create
	// Applications names any number, of any length.
	mostServers = 20_000
	mostBytes   = 4 << 20
)

// take adds what pods and Applications name now. What it leaves out is said in trouble.
func (s servers) take(reports []scrape.PodReport, applications []nudge.Destination, now time.Time) (trouble []string) {
	nowhere := notFound(reports)
	for _, r := range reports {
		for server, shown := range r.Servers {
			if nowhere[server] {
				continue
			}
			n := s[server]
			n.at = now
			if shown.Cached {
				n.read = now
			}
			s[server] = n
		}
	}
	byName, long, beyond := 0, 0, 0
	for _, d := range applications {
		server := plan.NormalizeServer(d.Server)
		n, known := s[server]
		switch {
		case server == "":
			byName++
		case nowhere[server]:
		case len(server) > discover.LongestServer: // what pods show of it is not read, so that nobody would seem to have it
			long++
		case !known && len(s) >= 2*mostServers:
			beyond++
		default:
			n.at = now
			s[server] = n
		}
	}
	for server := range nowhere { // a cluster that was taken out of Argo CD, too
		delete(s, server)
	}
	if byName > 0 {
		trouble = append(trouble, fmt.Sprintf(
			"Applications name %s by name alone: without the right to list cluster Secrets nobody knows which those are",
			say.Plural(byName, "cluster")))
	}
	if long > 0 {
		trouble = append(trouble, fmt.Sprintf("Applications name %s of more than %d bytes, which no cluster has",
			say.Plural(long, "server"), discover.LongestServer))
	}
	trouble = append(trouble, elsewhere(nowhere)...)
	if beyond += s.forget(now); beyond > 0 {
		trouble = append(trouble, fmt.Sprintf(
			"more than %d servers are named, or more than %d MiB of their URLs: %d of those that no pod reads are not watched",
			mostServers, mostBytes>>20, beyond))
	}
	return trouble
}

// fleet has a cluster of each server, which is its name.
func (s servers) fleet() (fleet discover.Fleet) {
	for i, server := range slices.Sorted(maps.Keys(s)) {
		fleet.Units = append(fleet.Units, discover.Unit{Server: server, Clusters: []int{i}})
		fleet.Clusters = append(fleet.Clusters, discover.Cluster{Shard: plan.Shard{UID: server, ID: server,
			Name: server, Server: server}})
	}
	return fleet
}

// notFound are the servers that Argo CD finds no cluster by: before 3.0.6 every pod shows the Applications that name
// such a one, and none reads it. Of several owners of a cluster one at least does.
func notFound(reports []scrape.PodReport) map[string]bool {
	holders, read := map[string]int{}, map[string]bool{}
	for _, r := range reports {
		for server, shown := range r.Servers {
			if shown.Apps > 0 {
				holders[server]++
			}
			if shown.Cached {
				read[server] = true
			}
		}
	}
	nowhere := map[string]bool{}
	for server, n := range holders {
		if n > 1 && !read[server] {
			nowhere[server] = true
		}
	}
	return nowhere
}

// elsewhere says which servers are no clusters, some by name.
func elsewhere(nowhere map[string]bool) []string {
	if len(nowhere) == 0 {
		return nil
	}
	const shown = 3
	list := slices.Sorted(maps.Keys(nowhere))
	var words []string
	for _, server := range list[:min(len(list), shown)] {
		words = append(words, printable.Server(server))
	}
	if more := len(list) - shown; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return []string{fmt.Sprintf("Argo CD finds no cluster of %s that Applications name, so that several pods show them and none reads it: %s",
		say.Plural(len(list), "server"), strings.Join(words, ", "))}
}

// forget keeps what is remembered within bounds, and answers how many it left out for them. Those that a pod reads stay
// before those that are named alone.
func (s servers) forget(now time.Time) (beyond int) {
	maps.DeleteFunc(s, func(_ string, n named) bool { return now.Sub(n.at) > forgottenAfter })
	bytes := 0
	for server := range s {
		bytes += len(server)
	}
	if len(s) <= mostServers && bytes <= mostBytes {
		return 0
	}
	first := slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		return cmp.Or(s[b].read.Compare(s[a].read), s[b].at.Compare(s[a].at), cmp.Compare(a, b))
	})
	kept := 0
	bytes = 0
	for _, server := range first {
		if kept < mostServers && bytes+len(server) <= mostBytes {
			kept++
			bytes += len(server)
			continue
		}
		delete(s, server)
		beyond++
	}
	return beyond
}

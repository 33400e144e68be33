package placement

import "ballast/planner/plan"

// Claim is how firmly a cluster belongs on its replica. The firmest cluster of a server has the others beside it.
type Claim int

// The claims, the weakest first.
const (
	Follows Claim = iota // it has that replica, and keeps no other there: its Secret is gone, or the plan has no row
	Stands               // it has that replica
	Decided              // it is to have that replica
	Fixed                // nobody may write its Secret
	Pinned               // a person says so
)

// Cluster is a cluster Secret with the replica it belongs on. Clusters with one Server stay together; one without is
// alone. Apart are the groups of which no two share a replica.
type Cluster struct {
	Name   string
	Server string
	Load   plan.Load
	Memory plan.Bytes
	At     int
	Claim  Claim
	Apart  []string
}

// stays reports whether the cluster keeps its replica, wherever the others of its server go.
func (c Cluster) stays() bool { return c.Claim >= Fixed }

// Group lists what belongs together of n: their indexes, in the order of the first of each. What has no server is
// alone.
func Group(n int, server func(i int) string) [][]int {
	groups, at := make([][]int, 0, n), make(map[string]int, n)
	members := make([]int, n) // one backing array: most servers have one cluster
	for i := range n {
		members[i] = i
		s := server(i)
		if g, found := at[s]; found && s != "" {
			groups[g] = append(groups[g], i)
			continue
		}
		at[s] = len(groups)
		groups = append(groups, members[i:i+1:i+1])
	}
	return groups
}

// Home is the replica that all clusters of one server belong on: that of the firmest of those whose replica counts, of
// several the first. NoReplica: no replica of theirs counts.
func Home(clusters []Cluster, counts func(replica int) bool) int {
	home, firmest := plan.NoReplica, Follows
	for _, c := range clusters {
		if counts(c.At) && (home == plan.NoReplica || c.Claim > firmest) {
			home, firmest = c.At, c.Claim
		}
	}
	return home
}

// Settle answers the replica of each cluster: that of its server's home, where one of these bins is, and what Place
// answers for servers without. What is pinned and what nobody may write keeps its own. The bins carry what they have
// beside the clusters.
func Settle(clusters []Cluster, bins []Bin, p Policy) []int {
	counts := func(replica int) bool { return replica >= 0 && replica < len(bins) }
	bins, of := append([]Bin(nil), bins...), make([]int, len(clusters))
	var units []Unit
	var homeless [][]int
	for _, group := range Group(len(clusters), func(i int) string { return clusters[i].Server }) {
		members := clusters[group[0] : group[0]+1]
		if len(group) > 1 {
			members = pick(clusters, group)
		}
		home := Home(members, counts)
		if home == plan.NoReplica {
			units, homeless = append(units, unitOf(members)), append(homeless, group)
			continue
		}
		for k, i := range group {
			if of[i] = home; members[k].stays() && counts(members[k].At) {
				of[i] = members[k].At
			}
			bins[of[i]] = bins[of[i]].Take(unitOf(members[k : k+1]))
		}
	}
	for k, placed := range Place(units, bins, p) {
		for _, i := range homeless[k] {
			of[i] = placed.To
		}
	}
	return of
}

func pick(clusters []Cluster, group []int) []Cluster {
	members := make([]Cluster, len(group))
	for k, i := range group {
		members[k] = clusters[i]
	}
	return members
}

func unitOf(clusters []Cluster) Unit {
	u := Unit{Home: plan.NoReplica}
	for _, c := range clusters {
		u = u.With(c.Name, c.Load).Taking(c.Memory)
		u.Apart = Joined(u.Apart, c.Apart)
	}
	return u
}

package placement

import (
	"hash/fnv"
	"math"
	"strconv"

	"ballast/planner/plan"
)

// Arrivals answers for clusters that a plan does not know. Webhook and planner ask the same question of the same plan,
// so its answer rests on the plan alone: it is the same from every webhook replica and at every retry, and nothing is
// remembered. What only the planner knows (the cap, which replicas are closed) moves an arrival later, if at all.
type Arrivals struct {
	view    *plan.View
	servers map[string]int // the replica of the rows with a server
	rows    map[string]int // how many there are
	weights []float64
}

// NewArrivals indexes a plan: once a change of it.
func NewArrivals(v *plan.View) *Arrivals {
	a := &Arrivals{view: v, servers: make(map[string]int, len(v.Plan.Clusters)),
		rows: make(map[string]int, len(v.Plan.Clusters)), weights: freeCapacity(v)}
	for name, row := range v.Plan.Clusters {
		if row.Server == "" {
			continue
		}
		a.rows[row.Server]++
		replica, _, _ := v.Effective(name)
		// Two Secrets of one server have one replica; where they do not (a pin on one of them), the lower one answers,
		// so that the answer does not depend on the order of a map.
		if other, ok := a.servers[row.Server]; !ok || replica < other {
			a.servers[row.Server] = replica
		}
	}
	return a
}

// Shared reports whether the plan has another Secret of the server than the named one.
func (a *Arrivals) Shared(server, name string) bool {
	hash, own := plan.ServerHash(server), 0
	if a.view.Plan.Clusters[name].Server == hash {
		own = 1
	}
	return a.rows[hash] > own
}

// Place is the replica of a row with that server, else the valid shard that the cluster has already (current, NoReplica
// for none) while that replica stays, else weighted rendezvous hashing of the server over the replicas' free capacity.
func (a *Arrivals) Place(server string, current int) int {
	if replica, ok := a.servers[plan.ServerHash(server)]; ok {
		return replica
	}
	if a.view.Stays(current) {
		return current
	}
	return a.rendezvous(plan.NormalizeServer(server))
}

// rendezvous gives each replica the score -w/ln(u), u in (0,1) hashed from server and replica; the highest wins, so
// that a replica is chosen with probability w/sum(w) and nothing has to be remembered.
func (a *Arrivals) rendezvous(server string) int {
	best, bestScore := 0, math.Inf(-1)
	for replica, w := range a.weights {
		h := fnv.New64a()
		h.Write([]byte(server))
		h.Write([]byte{0})
		h.Write([]byte(strconv.Itoa(replica)))
		u := (float64(mix(h.Sum64())>>11) + 0.5) / (1 << 53)
		if score := -w / math.Log(u); score > bestScore {
			best, bestScore = replica, score
		}
	}
	return best
}

// mix is the finalizer of splitmix64: FNV's high bits barely differ between inputs that differ in their last byte.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// freeCapacity weighs each replica by what it carries below twice the mean, the bound that a burst of new clusters must
// keep. Where no row has a load yet, clusters count instead. A full replica keeps 1/64 of the mean: rows are as old as
// their decision, and no replica may be shut for good.
func freeCapacity(v *plan.View) []float64 {
	n := v.Stable()
	carried, clusters := make([]plan.Load, n), make([]plan.Load, n)
	var total plan.Load
	for name, row := range v.Plan.Clusters {
		replica, _, _ := v.Effective(name)
		if replica >= n {
			replica = 0 // Argo CD takes a shard beyond the replicas for shard 0
		}
		load := plan.LoadOf(row.Load)
		carried[replica] = carried[replica].Plus(load) // integers: the sum does not depend on the map's order
		total = total.Plus(load)
		clusters[replica]++
	}
	if total == 0 {
		carried, total = clusters, plan.Load(len(v.Plan.Clusters))
	}
	mean := max(float64(total)/float64(n), 1)
	weights := make([]float64, n)
	for i, c := range carried {
		weights[i] = max(2*mean-float64(c), mean/64)
	}
	return weights
}

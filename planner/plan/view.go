package plan

import (
	"hash/fnv"
	"math"
	"strconv"
)

// View is a plan with its pins, indexed for lookups: made once a change, asked on every write.
type View struct {
	Plan     Plan
	pins     Pins
	byServer map[string]int
	stable   int // replicas below this run whatever becomes of the rollout under way
	weights  []float64
}

// NewView indexes a plan. It keeps the plan and the pins: neither may change afterwards.
func NewView(p Plan, pins Pins) *View {
	v := &View{Plan: p, pins: pins, byServer: make(map[string]int, len(p.Clusters)), stable: stableReplicas(p)}
	for name, row := range p.Clusters {
		if row.Server == "" {
			continue
		}
		replica, _, _ := v.Effective(name)
		// Two Secrets of one server have one replica; where they do not (a pin on one of them), the lower one answers,
		// so that the answer does not depend on the order of a map.
		if other, ok := v.byServer[row.Server]; !ok || replica < other {
			v.byServer[row.Server] = replica
		}
	}
	v.weights = freeCapacity(p, v)
	return v
}

// Effective is the one lookup of webhook and planner: the pin if it is below the replicas in force and no x0y rollout is
// under way, else the row. While a rollout changes the replicas, a pin must be below both ends: a replica that does not
// run yet, or is about to go, owns nothing. ok is false for a cluster that the plan does not know, unless it is pinned.
func (v *View) Effective(name string) (replica int, why Reason, ok bool) {
	if pin, pinned := v.pins[name]; pinned && v.PinHolds(pin) {
		return pin, Pinned, true
	}
	row, ok := v.Plan.Clusters[name]
	return row.Replica, InPlan, ok
}

// PinHolds reports whether a pin to that replica holds now, wherever it was written.
func (v *View) PinHolds(pin int) bool {
	return pin < v.stable && (v.Plan.Rollout == nil || v.Plan.Rollout.Mode != ModeX0Y)
}

// Pin is a cluster's pin, whether it holds now or waits for a rollout.
func (v *View) Pin(name string) (int, bool) {
	pin, ok := v.pins[name]
	return pin, ok
}

// Stays reports whether a replica runs before, during and after the rollout under way.
func (v *View) Stays(replica int) bool { return replica >= 0 && replica < v.stable }

// Assign answers for a cluster that is not in the plan: the replica of a row with its server, else the valid shard it
// has already (current, -1 for none) while that is below the replicas, else weighted rendezvous hashing of its server
// over the replicas' free capacity, which is the same answer from every webhook replica and at every retry.
func (v *View) Assign(server string, current int) int {
	if replica, ok := v.byServer[ServerHash(server)]; ok {
		return replica
	}
	if v.Stays(current) {
		return current
	}
	return v.rendezvous(NormalizeServer(server))
}

// rendezvous gives each replica the score -w/ln(u), u in (0,1) hashed from server and replica; the highest wins, so that
// a replica is chosen with probability w/sum(w) and nothing has to be remembered.
func (v *View) rendezvous(server string) int {
	best, bestScore := 0, math.Inf(-1)
	for replica, w := range v.weights {
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

// stableReplicas is the number of replicas that run before, during and after the rollout under way. New clusters and pins
// keep to them, so that none waits for a replica to come or has to leave one that goes.
func stableReplicas(p Plan) int {
	n := p.Replicas
	if r := p.Rollout; r != nil {
		for _, other := range []int{r.From.Replicas, r.Replicas} {
			if n == 0 || other > 0 && other < n {
				n = other
			}
		}
	}
	return max(n, 1)
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
func freeCapacity(p Plan, v *View) []float64 {
	n := v.stable
	carried, clusters := make([]Load, n), make([]Load, n)
	var total Load
	for name, row := range p.Clusters {
		replica, _, _ := v.Effective(name)
		if replica >= n {
			replica = 0 // Argo CD takes a shard beyond the replicas for shard 0
		}
		var load Load
		if row.Load != "" && load.UnmarshalText([]byte(row.Load)) == nil {
			carried[replica] += load // integers: the sum does not depend on the map's order
			total += load
		}
		clusters[replica]++
	}
	if total == 0 {
		carried, total = clusters, Load(len(p.Clusters))
	}
	mean := max(float64(total)/float64(n), 1)
	weights := make([]float64, n)
	for i, c := range carried {
		weights[i] = max(2*mean-float64(c), mean/64)
	}
	return weights
}

package placement

import (
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/plan"
)

// Arrivals answers for clusters that a plan does not know. Webhook and planner ask the same question of the same plan,
// so its answer rests on the plan alone: it is the same from every webhook replica and at every retry, and nothing is
// remembered. What only the planner knows (which replicas are unwell), and what several that come between two plans do
// together, moves an arrival later, if at all.
type Arrivals struct {
	view    *plan.View
	servers map[string]int // the replica of the rows with a server
	rows    map[string]int // how many there are
	carried []plan.Load    // by replica
	total   plan.Load      // of all
	each    plan.Load      // what a cluster carries of which nothing is known
	most    plan.Load      // up to which those that Add counts fill a replica; 0: any load
	weights []float64
	places  []int        // that the rows leave of the most clusters; nil: any number
	closed  map[int]bool // cordoned
	full    map[int]bool // takes none while another replica does
	groups  []group      // by name
}

// group is one of the plan's, with its selector read.
type group struct {
	plan.ClusterGroup
	name     string
	selector labels.Selector
}

// readGroups leaves out a selector that cannot be read: the planner's validation is where that is reported, and no
// write must fail on it.
func readGroups(p plan.Plan) (groups []group) {
	for _, name := range slices.Sorted(maps.Keys(p.Groups)) {
		g := p.Groups[name]
		if selector, err := labels.Parse(g.Selector()); err == nil && !selector.Empty() {
			groups = append(groups, group{g, name, selector})
		}
	}
	return groups
}

// NewArrivals indexes a plan: once a change of it.
func NewArrivals(v *plan.View) *Arrivals {
	a := &Arrivals{view: v, servers: make(map[string]int, len(v.Plan.Clusters)),
		rows:   make(map[string]int, len(v.Plan.Clusters)),
		closed: setOf(v.Plan.Cordoned), full: setOf(v.Plan.Full), groups: readGroups(v.Plan)}
	a.count()
	a.weigh()
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

func setOf(replicas []int) map[int]bool {
	set := make(map[int]bool, len(replicas))
	for _, replica := range replicas {
		set[replica] = true
	}
	return set
}

// Shared reports whether the plan has another Secret of the server than the named one.
func (a *Arrivals) Shared(server, name string) bool {
	hash, own := plan.ServerHash(server), 0
	if a.view.Plan.Clusters[name].Server == hash {
		own = 1
	}
	return a.rows[hash] > own
}

// Beside is the replica of another Secret of the server than the named one, if the plan has such a Secret, else 0.
func (a *Arrivals) Beside(server, name string) (replica int, found bool) {
	if !a.Shared(server, name) { // as nearly always
		return 0, false
	}
	hash := plan.ServerHash(server)
	for other, row := range a.view.Plan.Clusters {
		if other == name || row.Server != hash {
			continue
		}
		if at, _, _ := a.view.Effective(other); !found || at < replica {
			replica, found = at, true
		}
	}
	return replica, found
}

// Place is the replica of a row with that server, else the valid shard that the cluster has already (current, NoReplica
// for none) while that replica stays, else that of a group that it stays together with, else weighted rendezvous
// hashing of the server over the replicas' free capacity: of those that no person wants empty, of those that are not
// full, of those without a cluster that it is to be apart from. Where all are full they count as if none were.
func (a *Arrivals) Place(server string, current int, groups []string) int {
	if replica, ok := a.servers[plan.ServerHash(server)]; ok {
		return replica
	}
	if a.view.Stays(current) {
		return current
	}
	apart, beside := a.keptBy(groups)
	server = plan.NormalizeServer(server)
	for _, may := range []func(int) bool{a.roomy, a.open} {
		for _, replica := range beside {
			if a.view.Stays(replica) && may(replica) {
				return replica
			}
		}
		alone := func(replica int) bool { return may(replica) && !apart[replica] }
		for _, allowed := range []func(int) bool{alone, may} {
			if replica := a.rendezvous(server, allowed); replica != plan.NoReplica {
				return replica
			}
		}
	}
	return max(a.rendezvous(server, func(int) bool { return true }), 0)
}

func (a *Arrivals) open(replica int) bool { return !a.closed[replica] }

func (a *Arrivals) roomy(replica int) bool { return a.open(replica) && !a.full[replica] }

// AllFull reports whether every replica that may have a new cluster is full.
func (a *Arrivals) AllFull() bool {
	if len(a.full) == 0 {
		return false
	}
	for replica := range a.weights {
		if a.roomy(replica) {
			return false
		}
	}
	return true
}

// FillTo bounds by load how many of those that Add counts a replica takes while another one has room; 0 bounds nothing.
func (a *Arrivals) FillTo(most plan.Load) { a.most = most }

// Add counts a cluster for which nobody else asks, so that several that are placed one after the other leave room to
// each other, and the next Secret of its server joins it.
func (a *Arrivals) Add(server string, replica int) {
	hash := plan.ServerHash(server)
	_, known := a.servers[hash]
	if !known && server != "" {
		a.servers[hash] = replica
	}
	if replica < 0 || replica >= len(a.carried) {
		return
	}
	if a.places != nil {
		a.places[replica]--
	}
	if !known {
		a.carried[replica], a.total = a.carried[replica].Plus(a.each), a.total.Plus(a.each)
	}
	many := a.places != nil && a.places[replica] <= 0
	if much := a.most > 0 && a.carried[replica].Plus(a.each) > a.most; many || much {
		a.full[replica] = true
	}
	a.weigh()
}

// Groups are those of the plan that a Secret's labels put it in, by name.
func (a *Arrivals) Groups(of labels.Labels) (names []string) {
	for _, g := range a.groups {
		if g.selector.Matches(of) {
			names = append(names, g.name)
		}
	}
	return names
}

// keptBy are the replicas that a cluster's groups keep it from, and those that they want it on, of several groups the
// first by name first.
func (a *Arrivals) keptBy(groups []string) (apart map[int]bool, beside []int) {
	for _, g := range a.groups {
		switch {
		case !slices.Contains(groups, g.name):
		case g.Apart == "":
			beside = append(beside, g.At...)
		default:
			for _, replica := range g.At {
				if apart == nil {
					apart = map[int]bool{}
				}
				apart[replica] = true
			}
		}
	}
	return apart, beside
}

// rendezvous gives each replica the score -w/ln(u), u in (0,1) hashed from server and replica; the highest wins, so
// that a replica is chosen with probability w/sum(w) and nothing has to be remembered.
func (a *Arrivals) rendezvous(server string, may func(replica int) bool) int {
	best, bestScore := plan.NoReplica, math.Inf(-1)
	for replica, w := range a.weights {
		if !may(replica) {
			continue
		}
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

// aBurst is how many clusters may come between two plans: where a replica has room for fewer it is chosen the more
// seldom, so that those of one burst do not all find its last place.
const aBurst = 50

// count adds up what replicas carry. A row without a load is of a cluster that is not measured yet: it carries the mean
// of those that carry any. Where no row has a load, clusters count instead.
func (a *Arrivals) count() {
	v := a.view
	n := v.Stable()
	carried, clusters, unknown := make([]plan.Load, n), make([]plan.Load, n), make([]plan.Load, n)
	var loaded plan.Load
	for name, row := range v.Plan.Clusters {
		replica, _, _ := v.Effective(name)
		if replica >= n {
			replica = 0 // Argo CD takes a shard beyond the replicas for shard 0
		}
		load := max(plan.LoadOf(row.Load), 0)
		carried[replica] = carried[replica].Plus(load) // integers: the sum does not depend on the map's order
		a.total = a.total.Plus(load)
		clusters[replica]++
		switch {
		case load > 0:
			loaded++
		case row.Load == "":
			unknown[replica]++
		}
	}
	if a.total == 0 {
		a.carried, a.total, a.each = clusters, plan.Load(len(v.Plan.Clusters)), 1
	} else {
		a.carried, a.each = carried, a.total/loaded
		for replica, of := range unknown {
			for range of {
				a.carried[replica], a.total = a.carried[replica].Plus(a.each), a.total.Plus(a.each)
			}
		}
	}
	if most := v.Plan.MaxClusters; most > 0 {
		a.places = make([]int, n)
		for i, has := range clusters {
			a.places[i] = most - int(has)
		}
	}
}

// weigh weighs each replica by what it carries below twice the mean, the bound that a burst of new clusters must
// keep. A full replica keeps 1/64 of the mean: rows are as old as their decision, and no replica may be shut for good.
//
// Of the most clusters, what the rows leave says how many of a burst come; Full, which the planner counts with all that
// has no row, says who takes none.
func (a *Arrivals) weigh() {
	n := len(a.carried)
	mean := max(float64(a.total)/float64(n), 1)
	a.weights = make([]float64, n)
	for i, c := range a.carried {
		a.weights[i] = max(2*mean-float64(c), mean/64)
		if a.places != nil {
			a.weights[i] *= float64(min(max(a.places[i], 1), aBurst)) / aBurst
		}
	}
}

package cycle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/partition"
	"ballast/planner/partition/sticky"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/planner/rollout"
)

// defaultMinReplicas is how few replicas there may be where nobody said and the fleet had them: one replica's failure
// must not stop the whole fleet.
const defaultMinReplicas = 2

// division is the partition's question and answer: groups as items, and the clusters' replicas that come of it.
type division struct {
	groups []discover.Unit
	full   plan.Load // what a replica may carry; 0: nothing says it
	items  []partition.Item
	bounds partition.Bounds
	answer partition.Partition
	of     map[string]int // managed clusters' replicas, by Secret

	offers map[int]evaluate.Offer // what the moves save and cost, by the replica for whose sake they are
	musts  int                    // moves that a rule asks for
	anew   bool                   // the plan in force was no beginning

	declined string // why no plan was made anew that would be better
	drain    sticky.Drain
	over     []int     // replicas above the line that nothing relieves
	line     plan.Load // a replica above it is overloaded
	even     plan.Load // the present even share
	low      plan.Load // up to which one takes on others'; 0: the partition knows none
	starved  int       // moves that a lack of memory asks for
}

// divide asks the partition for the best distribution from what stands.
func divide(in input.Inputs, a *adoption, loads []plan.Load, now terms) (division, error) {
	d := division{groups: a.units(), bounds: boundsOf(in.Config.Partition, in.Workload, a)}
	err := a.merged(d.bounds.MaxClusters)
	if err != nil {
		return division{}, err
	}
	if d.items, err = itemsOf(a, d.groups, loads); err != nil {
		return division{}, err
	}
	bounds := d.bounds // what is derived is no bound that votes must agree on
	if bounds.Capacity == 0 {
		bounds.Capacity = a.capacity
	}
	bounds.Held, bounds.Memory = a.held(), a.memoryRoom()
	d.full = bounds.Capacity
	if in.Config.Partition.Sticky != nil {
		err = d.stick(a, bounds, loads, in.Config.Partition.Sticky, now)
	} else {
		err = d.deal(a, bounds)
	}
	if err != nil {
		return division{}, err
	}
	d.of = make(map[string]int, len(a.fleet.Clusters))
	for k, u := range d.groups {
		for _, i := range u.Clusters {
			if c := a.fleet.Clusters[i]; standing.Managed(c) {
				d.of[c.Shard.ID] = d.answer.Of[k]
				if at := a.firm(i).At; at >= 0 && at < d.answer.Replicas {
					d.of[c.Shard.ID] = at // another one of its server may be firmer
				}
			}
		}
	}
	return d, nil
}

// deal makes the partition anew, and leaves everything where it stands if that does not pay.
func (d *division) deal(a *adoption, b partition.Bounds) (err error) {
	if d.answer, err = count(d.items, b, a.next.Replicas); err != nil {
		return err
	}
	now := make(map[string]int, len(d.items))
	for k, u := range d.groups {
		if row, ok := a.next.Clusters[a.fleet.Clusters[u.Clusters[0]].Shard.ID]; ok {
			now[d.items[k].ID] = row.Replica
		}
	}
	d.answer = partition.Relabel(d.answer, d.items, now)
	d.leaveIdle(a)
	d.settle(a)
	d.offer(a)
	return nil
}

// slack is the room that fewer replicas must have under the capacity. Without it a load near the capacity would open and
// close a replica at every election; where replicas restart for another number, that is a restart of the fleet each.
const slack = 0.1

// count is the partition over as many replicas as the capacity asks for, with no replica less than one by a smaller
// capacity needs, so long as they are there: what is added once stays until there is room. The capacity says how many
// there are, and no more: what fills each to it before the next one opens is as unlevel as the capacity is loose.
func count(items []partition.Item, b partition.Bounds, now int) (partition.Partition, error) {
	packed, err := partition.LPT(items, b)
	if err != nil || b.Fixed > 0 {
		return packed, err
	}
	replicas := packed.Replicas
	if replicas < now {
		spare := b
		spare.Capacity = plan.Load((1 - slack) * float64(b.Capacity))
		roomy, err := partition.LPT(items, spare)
		if err != nil {
			return roomy, err
		}
		replicas = max(replicas, min(roomy.Replicas, now))
	}
	b.Fixed = replicas
	level, err := partition.LPT(items, b)
	if err == nil && replicas == packed.Replicas && !leveller(level, packed) {
		return packed, nil
	}
	return level, err
}

// leveller reports whether the fullest replica carries less in a than in b, of which no bound had to give way to it.
func leveller(a, b partition.Partition) bool {
	return len(a.Lost) <= len(b.Lost) && slices.Max(a.Loads) < slices.Max(b.Loads)
}

// Loads are measured and never stand still, and a partition made anew moves most of what there is. So it must lower the
// makespan by usefulGain at least, and by 1 % more for each tenth of the clusters that it moves: each starts
// somewhere with an empty cache.
const (
	usefulGain = 0.01
	moveCosts  = 0.1
)

// pays is the share by which a partition that moves so many of all clusters that carry something must lower the makespan.
func pays(moves, clusters int) float64 {
	return max(usefulGain, moveCosts*float64(moves)/float64(max(clusters, 1)))
}

// leaveIdle leaves clusters without load where they stand, as far as the answer has that replica and the cap allows it: to
// move them levels nothing, and whoever makes thousands of them would have the moves that do wait behind theirs. Where
// nothing has a load they are spread by their number.
func (d *division) leaveIdle(a *adoption) {
	if !d.loaded() {
		return
	}
	for k, u := range d.groups {
		item, to, stands := d.items[k], d.answer.Of[k], a.standing(u.Clusters[0])
		free := item.Load == 0 && item.Replica < 0 && to != stands
		if !free || stands < 0 || stands >= d.answer.Replicas {
			continue
		}
		if most := d.bounds.MaxClusters; most > 0 && d.answer.Clusters[stands]+item.Clusters > most {
			continue
		}
		d.answer.Of[k] = stands
		d.answer.Clusters[to] -= item.Clusters
		d.answer.Clusters[stands] += item.Clusters
	}
}

// loaded reports whether any item has a load.
func (d *division) loaded() bool {
	return slices.ContainsFunc(d.items, func(i partition.Item) bool { return i.Load > 0 })
}

// carrying is how many items have a load; where none has, all of them.
func (d *division) carrying() (count int) {
	for _, item := range d.items {
		if item.Load > 0 {
			count++
		}
	}
	return cmp.Or(count, len(d.items))
}

// settle leaves everything where it stands, as the answer, if the partition needs the same number of replicas, nothing
// stands where it must not, and the gain does not pay for the moves.
func (d *division) settle(a *adoption) {
	if d.answer.Replicas != a.next.Replicas {
		return
	}
	stands := partition.Partition{Replicas: d.answer.Replicas, Of: make([]int, len(d.items)), Lost: d.answer.Lost,
		Loads: make([]plan.Load, d.answer.Replicas), Clusters: make([]int, d.answer.Replicas)}
	moves, loaded := 0, d.loaded()
	for k, u := range d.groups {
		r, item := a.standing(u.Clusters[0]), d.items[k]
		if !a.movable(u) { // wherever it stands says nothing of the others
			r = d.answer.Of[k]
		}
		if r < 0 || r >= stands.Replicas || item.Replica >= 0 && item.Replica != r {
			return
		}
		if r != d.answer.Of[k] && (item.Load > 0 || !loaded) {
			moves++
		}
		stands.Of[k] = r
		stands.Loads[r] += item.Load
		stands.Clusters[r] += item.Clusters
		if most := d.bounds.MaxClusters; most > 0 && stands.Clusters[r] > most {
			return
		}
	}
	over := d.bounds.Capacity > 0 && d.peak(stands) > d.bounds.Capacity && d.peak(d.answer) <= d.bounds.Capacity
	if pay := (1 - pays(moves, d.carrying())) * float64(d.peak(stands)); over || float64(d.peak(d.answer)) < pay {
		return
	}
	d.answer = stands
}

// movable reports whether ballast may move one of a group.
func (a *adoption) movable(u discover.Unit) bool {
	return slices.ContainsFunc(u.Clusters, func(i int) bool { return standing.Managed(a.fleet.Clusters[i]) })
}

// peak is the makespan, but for units beyond what a replica may carry that have one to themselves: nothing mends those,
// and the others must not be left as they are for them.
func (d *division) peak(p partition.Partition) (most plan.Load) {
	units := make([]int, p.Replicas)
	for _, r := range p.Of {
		units[r]++
	}
	for r, load := range p.Loads {
		if alone := units[r] == 1 && d.full > 0 && load > d.full; !alone {
			most = max(most, load)
		}
	}
	return most
}

// itemsOf makes an item of each group, in their order; fixed are pins, and what no write can move.
func itemsOf(a *adoption, groups []discover.Unit, loads []plan.Load) ([]partition.Item, error) {
	items := make([]partition.Item, len(groups))
	var firm []placement.Cluster
	for k, u := range groups {
		item := partition.Item{ID: a.fleet.Clusters[u.Clusters[0]].Shard.ID, Clusters: len(u.Clusters)}
		firm = firm[:0]
		var err error
		for _, i := range u.Clusters {
			if item.Load, err = plan.SumLoads(item.Load, loads[i]); err != nil {
				return nil, fmt.Errorf("adding up the loads of %q: %w", printable.Server(u.Server), err)
			}
			item.Memory = item.Memory.Plus(a.takes(i))
			firm = append(firm, a.firm(i))
		}
		item.Replica = placement.Home(firm, func(replica int) bool { return replica >= 0 })
		items[k] = item
	}
	return items, nil
}

// firm is the replica a cluster cannot leave: its pin, or where it stands if nothing may be written to its Secret.
func (a *adoption) firm(i int) placement.Cluster {
	c, firm := a.fleet.Clusters[i], placement.Cluster{At: placement.NoReplica, Claim: placement.Fixed}
	pin, pinned := a.pins[c.Shard.ID]
	switch {
	case pinned && pin < a.pinnable():
		firm.At, firm.Claim = pin, placement.Pinned
	case c.FixedAt != nil:
		firm.At = *c.FixedAt
	case c.Alone && c.Explicit.State == discover.ShardValid: // whoever has its server now has it by the other Secret
		if c.Explicit.N < a.next.Replicas { // else it is replica 0's to Argo CD, and opens no replica
			firm.At = c.Explicit.N
		}
	case (c.Unmanaged || c.Immutable) && !a.followsCount(c):
		firm.At = a.owners[i]
	}
	most := a.next.MaxReplicas
	if a.next.FreeReplicas {
		most = a.next.Replicas // nothing keeps a replica that people take away
	}
	firm.At = min(firm.At, most-1)
	return firm
}

// followsCount reports whether Argo CD's algorithm places a cluster anew with each number of replicas: it then asks for
// none, or the count and its place would chase each other. Under rollout.live the env, and with it the place, stays.
func (a *adoption) followsCount(c discover.Cluster) bool {
	return c.Explicit.State != discover.ShardValid && a.in.Config.Rollout.Live == nil
}

// carries is the replica that a Secret names which nobody may write: whatever its pin or its server's other Secrets say,
// that replica stays.
func (a *adoption) carries(i int) int {
	c := a.fleet.Clusters[i]
	peoples := c.Immutable || c.Unmanaged
	if peoples && !c.Implicit && !a.next.FreeReplicas && c.Explicit.State == discover.ShardValid && c.Explicit.N < a.next.Replicas {
		return c.Explicit.N
	}
	return placement.NoReplica
}

// held is the number of replicas that such Secrets need.
func (a *adoption) held() (replicas int) {
	for i := range a.fleet.Clusters {
		replicas = max(replicas, a.carries(i)+1)
	}
	return replicas
}

// pinnable is the number of replicas that pins may ask for: a workload that opted out, or whose replicas are people's,
// is not scaled for one.
func (a *adoption) pinnable() int {
	if a.next.Unmanaged || a.next.FreeReplicas {
		return a.next.Replicas
	}
	return a.next.MaxReplicas
}

func boundsOf(p config.Partition, w discover.Workload, a *adoption) partition.Bounds {
	b := partition.Bounds{MaxReplicas: a.next.MaxReplicas, MaxClusters: a.mostClusters()}
	b.MinReplicas = min(defaultMinReplicas, a.next.Replicas)
	if p.MinReplicas != nil {
		b.MinReplicas = *p.MinReplicas
	}
	b.MinReplicas = min(max(b.MinReplicas, 1), b.MaxReplicas)
	switch {
	case p.Replicas == nil:
	case p.Replicas.Workload:
		b.Fixed = a.peoples()
		b.MaxReplicas = max(b.MaxReplicas, b.Fixed)
	default:
		b.Fixed = p.Replicas.Fixed
	}
	if w.Unmanaged && !byWorkload(p) {
		b.Fixed = max(a.next.Replicas, 1) // another number could not be brought about
		b.MaxReplicas = max(b.MaxReplicas, b.Fixed)
	}
	if p.Capacity != nil {
		if capacity, err := plan.NewLoad(p.Capacity.Float()); err == nil {
			b.Capacity = capacity
		}
	}
	if b.Fixed == 0 && b.Capacity == 0 {
		b.Fixed = a.countAsItIs(b)
	}
	return b
}

// peoples is how many of the replicas that people hold count: all up to maxReplicas, and beyond it those that have counted
// already. Where maxReplicas was lowered below what stands, nobody would take the others away, and a plan for fewer would
// be one for more again.
func (a *adoption) peoples() int {
	return min(standing.Replicas(a.in.Workload), max(a.next.MaxReplicas, a.next.Replicas))
}

// countAsItIs is the number of replicas where nothing that a person wrote asks for another: what one cluster makes says
// nothing of what a replica can carry.
func (a *adoption) countAsItIs(b partition.Bounds) int {
	count := max(a.next.Replicas, b.MinReplicas)
	if most := b.MaxClusters; most > 0 {
		count = max(count, (len(a.fleet.Clusters)+most-1)/most)
	}
	return min(max(count, a.largestApart()), b.MaxReplicas)
}

// needsWorkload reports whether a rollout writes to the workload: another number of replicas or another env, or a
// restart.
func needsWorkload(now, next plan.Plan, o rollout.Options) bool {
	r := next.Rollout
	if r == nil {
		return false
	}
	return !now.FreeReplicas && r.Replicas != now.Replicas || r.ControllerReplicas != now.ControllerReplicas ||
		r.Mode == plan.ModeX0Y || r.Mode == plan.ModeDefault && o.RolloutRestart
}

// basis is what candidates must agree on to be votes of one election: the bounds. What is pinned or comes meanwhile
// goes where it must, whatever candidate is elected.
func (d division) basis() string {
	b := d.bounds
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v\n", struct {
		MinReplicas, MaxReplicas, Fixed, MaxClusters int
		Capacity                                     plan.Load
	}{b.MinReplicas, b.MaxReplicas, b.Fixed, b.MaxClusters, b.Capacity}))
	return hex.EncodeToString(sum[:8])
}

// allows reports whether a candidate of another cycle keeps to what is pinned now, and to the most clusters of a
// replica.
func (d division) allows(a *adoption, c evaluate.Candidate) bool {
	if c.Replicas < a.held() {
		return false
	}
	clusters := make([]int, max(c.Replicas, 1))
	for k, u := range d.groups {
		at := d.items[k].Replica
		if at < 0 {
			at = a.decided(u, c)
		}
		if at >= c.Replicas {
			return false
		}
		if at >= 0 {
			clusters[at] += d.items[k].Clusters
		}
	}
	most := d.bounds.MaxClusters
	return (most <= 0 || slices.Max(clusters) <= most) && d.keepsGroups(a, c) && d.keepsMemory(a, c)
}

// keepsMemory reports whether a candidate of another cycle has no replica lack more memory than the one of now does.
func (d division) keepsMemory(a *adoption, c evaluate.Candidate) bool {
	if a.inUse == nil {
		return true
	}
	at := make([]int, len(d.groups))
	for k, u := range d.groups {
		if at[k] = d.items[k].Replica; at[k] < 0 {
			at[k] = a.decided(u, c)
		}
	}
	return lacks(d.items, at, c.Replicas, a.memoryRoom()) <= lacks(d.items, d.answer.Of, d.answer.Replicas, a.memoryRoom())
}

// keepsGroups reports whether a candidate of another cycle has those together and apart that are to be so now.
func (d division) keepsGroups(a *adoption, c evaluate.Candidate) bool {
	if len(a.groups) == 0 {
		return true
	}
	at := make([]int, len(d.groups))
	for k, u := range d.groups {
		at[k] = d.items[k].Replica
		if at[k] < 0 {
			at[k] = a.decided(u, c)
		}
		for _, i := range u.Clusters {
			cl := a.fleet.Clusters[i]
			if to, chosen := c.Of[cl.Shard.ID]; chosen && !cl.Follows && to != at[k] {
				return false
			}
		}
	}
	for _, g := range a.apartOf(d.groups, a.groups) {
		taken := map[int]bool{}
		for _, k := range g.Items {
			if taken[at[k]] {
				return false
			}
			taken[at[k]] = true
		}
	}
	return true
}

// chosen is where a candidate has each cluster, those of one server by the one that leads it: it may be of another
// cycle, in which they had different ones.
func (a *adoption) chosen(c evaluate.Candidate) map[string]int {
	of := maps.Clone(c.Of)
	for _, u := range a.fleet.Groups() {
		if len(u.Clusters) == 1 {
			continue
		}
		at := a.decided(u, c)
		for _, i := range u.Clusters {
			if name := a.fleet.Clusters[i].Shard.ID; at >= 0 && a.fleet.Clusters[i].Follows {
				if _, also := of[name]; also {
					of[name] = at
				}
			}
		}
	}
	return of
}

// decided is where a candidate has a group: where the one that leads it has its place.
func (a *adoption) decided(u discover.Unit, c evaluate.Candidate) int {
	for _, i := range u.Clusters {
		if to, chosen := c.Of[a.fleet.Clusters[i].Shard.ID]; chosen && !a.fleet.Clusters[i].Follows {
			return to
		}
	}
	return a.standing(u.Clusters[0])
}

// moves are the clusters whose replica differs from their rows, by name.
func (a *adoption) moves(of map[string]int) []Move {
	var moves []Move
	for _, c := range a.fleet.Clusters { // in the order of their names
		name := c.Shard.ID
		row, planned := a.next.Clusters[name]
		if to, ok := of[name]; ok && planned && row.Replica != to {
			moves = append(moves, Move{Cluster: name, From: row.Replica, To: to})
		}
	}
	return moves
}

func clustersOf(moves []Move) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, m := range moves {
			if !yield(m.Cluster) {
				return
			}
		}
	}
}

// loadIndexes are the clusters with their loads, for people, in the fleet's order; without loads they are 0.
func loadIndexes(fleet discover.Fleet, loads []plan.Load) []plan.LoadIndex {
	indexes := make([]plan.LoadIndex, len(fleet.Clusters))
	for i, c := range fleet.Clusters {
		indexes[i].Shard = c.Shard
		if loads != nil {
			indexes[i].Value = loads[i]
		}
		indexes[i].DisplayValue = indexes[i].Value.Display()
	}
	return indexes
}

// replicasOf lists who owns what, for people: of is each cluster's replica.
func replicasOf(indexes []plan.LoadIndex, count int, of func(i int) int) []plan.Replica {
	replicas, owners, owned := make([]plan.Replica, count), make([]int, len(indexes)), make([]int, count)
	for i := range indexes {
		owners[i] = of(i)
		if r := owners[i]; r >= 0 && r < count {
			owned[r]++
		}
	}
	for r := range replicas {
		replicas[r].ID = r
		if owned[r] > 0 {
			replicas[r].LoadIndexes = make([]plan.LoadIndex, 0, owned[r])
		}
	}
	for i, r := range owners {
		if r >= 0 && r < count {
			replicas[r].LoadIndexes = append(replicas[r].LoadIndexes, indexes[i])
			replicas[r].TotalLoad += indexes[i].Value
		}
	}
	for r := range replicas {
		replicas[r].TotalLoadDisplay = replicas[r].TotalLoad.Display()
	}
	return replicas
}

// Imbalance is the makespan over the mean: 1 is perfectly level. It is 1 for a fleet without load.
func Imbalance(replicas []plan.Replica) float64 {
	var most, total plan.Load
	for _, r := range replicas {
		most, total = max(most, r.TotalLoad), total+r.TotalLoad
	}
	if total == 0 {
		return 1
	}
	return float64(most) * float64(len(replicas)) / float64(total)
}

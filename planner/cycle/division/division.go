// Package division asks the partition where clusters go, from what stands or anew, within all rules.
package division

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/partition"
	"ballast/planner/partition/sticky"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plural"
	"ballast/planner/printable"
)

// Division is the partition's question and answer: groups as items, and the clusters' replicas that come of it.
type Division struct {
	groups []discover.Unit
	full   plan.Load // what a replica may carry; 0: nothing says it
	Items  []partition.Item
	Bounds partition.Bounds
	Answer partition.Partition
	Of     map[string]int             // managed clusters' replicas, by Secret
	whys   map[int]outcome.MoveReason // of items that move, as sticky has them

	Offers map[int]evaluate.Offer // what the moves save and cost, by the replica for whose sake they are
	Musts  int                    // moves that a rule asks for
	anew   bool                   // the plan in force was no beginning

	Declined string // why no plan was made anew that would be better
	spared   int    // clusters that moved so that the highest replica can go; 0: it went by itself, or did not
	Drain    sticky.Drain
	Over     []int     // replicas above the line that nothing relieves
	line     plan.Load // a replica above it is overloaded
	Even     plan.Load // the present even share
	Low      plan.Load // up to which one takes on others'; 0: the partition knows none
	Starved  int       // moves that a lack of memory asks for
	limited  bool      // change.out or change.in lets there be no more now

	Outlook map[int]evaluate.Offer // where they do, what the number that is wanted would save and cost
}

// ItemsOf makes an item of each group, in their order; fixed are pins, and what no write can move.
func ItemsOf(g *ground.Ground, groups []discover.Unit, loads []plan.Load) ([]partition.Item, error) {
	items := make([]partition.Item, len(groups))
	var firm []placement.Cluster
	for k, u := range groups {
		item := partition.Item{ID: g.Fleet.Clusters[u.Clusters[0]].Shard.ID, Clusters: len(u.Clusters)}
		firm = firm[:0]
		var err error
		for _, i := range u.Clusters {
			if item.Load, err = plan.SumLoads(item.Load, loads[i]); err != nil {
				return nil, fmt.Errorf("adding up the loads of %q: %w", printable.Server(u.Server), err)
			}
			item.Memory = item.Memory.Plus(g.InUse.Takes(i))
			firm = append(firm, g.Fixed().To(i))
		}
		item.Replica = placement.Home(firm, func(replica int) bool { return replica >= 0 })
		items[k] = item
	}
	return items, nil
}

// Terms are what a division is asked for, beside the fleet and its rules.
type Terms struct {
	All       bool                   // all that is worth it at once, however much that is
	Even      plan.Load              // an even share of before
	Closed    map[int]bool           // replicas that receive nothing
	DrainDue  bool                   // the highest replica has not been needed for long
	Patient   func(replica int) bool // nothing is done for that replica's sake now; nil: for every one there is
	Anew      int                    // moves that a plan made anew may take
	Spare     int                    // moves that half of the budget has room for now
	MostSpare int                    // and ever has
	Horizon   time.Duration          // over which that has to pay; 0: none is made
	Replicas  int                    // so many, since change.out or change.in lets there be no others now; 0: as many as are wanted
}

// Basis is what candidates must agree on to be votes of one election: the bounds. What is pinned or comes meanwhile
// goes where it must, whatever candidate is elected.
func (d Division) Basis() string {
	b := d.Bounds
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v\n", struct {
		MinReplicas, MaxReplicas, Fixed, MaxClusters int
		Capacity                                     plan.Load
	}{b.MinReplicas, b.MaxReplicas, b.Fixed, b.MaxClusters, b.Capacity}))
	return hex.EncodeToString(sum[:8])
}

// Allows reports whether a candidate of another cycle keeps to what is pinned now, and to the most clusters of a
// replica.
func (d Division) Allows(g *ground.Ground, c evaluate.Candidate) bool {
	if c.Replicas < g.ReplicasHeld() || byWaitingPin(g, c) {
		return false
	}
	clusters, of := make([]int, max(c.Replicas, 1)), d.placed(g, c)
	for k, at := range of {
		if at >= c.Replicas {
			return false
		}
		if at >= 0 {
			clusters[at] += d.Items[k].Clusters
		}
	}
	if most := d.Bounds.MaxClusters; most > 0 && slices.Max(clusters) > most {
		return false
	}
	return d.keepsGroups(g, c, of) && d.keepsMemory(g, c, of)
}

// placed is where a candidate of another cycle has each group: where that is pinned now, else where it was decided.
func (d Division) placed(g *ground.Ground, c evaluate.Candidate) []int {
	of := make([]int, len(d.groups))
	for k, u := range d.groups {
		if of[k] = d.Items[k].Replica; of[k] < 0 {
			of[k] = decided(g, u, c)
		}
	}
	return of
}

// byWaitingPin reports whether a candidate has a cluster where a pin says that counted then, and waits now.
func byWaitingPin(g *ground.Ground, c evaluate.Candidate) bool {
	for name, pin := range g.Pins {
		if to, chosen := c.Of[name]; chosen && to == pin && !g.Holds(name, pin) {
			return true
		}
	}
	return false
}

// keepsMemory reports whether a candidate of another cycle has no replica lack more memory than the one of now does.
func (d Division) keepsMemory(g *ground.Ground, c evaluate.Candidate, of []int) bool {
	if g.InUse == nil {
		return true
	}
	return lacks(d.Items, of, c.Replicas, g.InUse.Most()) <= lacks(d.Items, d.Answer.Of, d.Answer.Replicas,
		g.InUse.Most())
}

// lacks is the memory that replicas of several items have too little, of all together.
func lacks(items []partition.Item, of []int, replicas int, room plan.Bytes) (lack plan.Bytes) {
	bytes, units := make([]plan.Bytes, replicas), make([]int, replicas)
	for k, r := range of {
		if r >= 0 && r < replicas {
			bytes[r], units[r] = bytes[r].Plus(items[k].Memory), units[r]+1
		}
	}
	for r := range bytes {
		if units[r] > 1 {
			lack = lack.Plus(max(bytes[r]-room, 0))
		}
	}
	return lack
}

// keepsGroups reports whether a candidate of another cycle has those together and apart that are to be so now.
func (d Division) keepsGroups(g *ground.Ground, c evaluate.Candidate, of []int) bool {
	if len(g.Groups) == 0 {
		return true
	}
	for k, u := range d.groups {
		for _, i := range u.Clusters {
			cl := g.Fleet.Clusters[i]
			if to, chosen := c.Of[cl.Shard.ID]; chosen && !cl.Follows && to != of[k] {
				return false
			}
		}
	}
	for _, by := range g.Units().Apart(d.groups, g.Groups) {
		taken := map[int]bool{}
		for _, k := range by.Items {
			if taken[of[k]] {
				return false
			}
			taken[of[k]] = true
		}
	}
	return true
}

// Chosen is where a candidate has each cluster, those of one server by the one that leads it: it may be of another
// cycle, in which they had different ones.
func Chosen(g *ground.Ground, c evaluate.Candidate) map[string]int {
	of := maps.Clone(c.Of)
	for _, u := range g.Fleet.Groups() {
		if len(u.Clusters) == 1 {
			continue
		}
		at := decided(g, u, c)
		for _, i := range u.Clusters {
			if name := g.Fleet.Clusters[i].Shard.ID; at >= 0 && g.Fleet.Clusters[i].Follows {
				if _, also := of[name]; also {
					of[name] = at
				}
			}
		}
	}
	return of
}

// decided is where a candidate has a group: where the one that leads it has its place.
func decided(g *ground.Ground, u discover.Unit, c evaluate.Candidate) int {
	for _, i := range u.Clusters {
		if to, chosen := c.Of[g.Fleet.Clusters[i].Shard.ID]; chosen && !g.Fleet.Clusters[i].Follows {
			return to
		}
	}
	return g.Standing(u.Clusters[0])
}

// Changes reports whether it is another plan than the one in force.
func (d *Division) Changes(g *ground.Ground) bool {
	return len(g.Moves(d.Of)) > 0 || d.Answer.Replicas != g.Next.Replicas
}

// High is the line above which a replica is overloaded; 0: the partition knows none.
func (d Division) High() plan.Load {
	if d.Low == 0 {
		return 0
	}
	return d.line
}

// Because is why a division is taken.
func (d Division) Because(savings evaluate.Savings) string {
	switch {
	case d.anew:
		return "made anew, for no few moves relieve " + ReplicaList(slices.Collect(maps.Keys(d.Offers))) + ": " +
			savings.Weigh(d.Offers).String()
	case len(d.Offers) > 0:
		return savings.Weigh(d.Offers).String()
	case d.Starved > 0:
		return fmt.Sprintf("%s for replicas that have not enough memory", plural.Of(d.Starved, "move"))
	case d.Musts > 0:
		return "a rule asks for " + plural.Of(d.Musts, "move")
	case d.Drain.Fits:
		text := fmt.Sprintf("replica %d has not been needed for as long as partition.sticky.downWindow",
			d.Drain.Replica)
		if d.spared > 0 {
			text += fmt.Sprintf(": the others take what it has by %s in all", plural.Of(d.spared, "move"))
		}
		return text
	}
	return "as many replicas as are asked for"
}

// ReplicaList names replicas for people.
func ReplicaList(replicas []int) string {
	slices.Sort(replicas)
	names := make([]string, 0, len(replicas))
	for _, r := range slices.Compact(replicas) {
		names = append(names, strconv.Itoa(r))
	}
	return "replica " + strings.Join(names, ", ")
}

func above(load, line plan.Load) plan.Load { return max(load-line, 0) }

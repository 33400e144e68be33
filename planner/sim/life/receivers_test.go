package life

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/change"
	"ballast/planner/plan"
)

// receivers is what the replicas carried when the failover began that began last, by the loads that ballast goes by.
type receivers struct {
	from    int
	at      time.Time // by the leader's clock
	carried map[int]plan.Load
	dead    map[int]bool // then, and by what the leader knew
}

// clone shares nothing that changes.
func (r receivers) clone() receivers {
	r.carried, r.dead = maps.Clone(r.carried), maps.Clone(r.dead)
	return r
}

// arrival is what a failover gives a replica: the clusters of one server, or of a group that stays together.
type arrival struct {
	to    int
	load  plan.Load
	again bool // one of them was failed over twice within the day
}

// receives: of one replica's failover the others take on freely what fits the capacity, or a quarter more than they carried
// when its hour began. What is beyond that waits for each rate's share of an hour; one goes all the same. What failovers moved twice
// within the day waits for the whole budget of failovers (failedOver).
func (j *judge) receives() {
	if !j.begins() || j.memory.Changes.Cause != change.Failover {
		return
	}
	loads := j.loads()
	from, arrivals := j.arrivals(loads)
	if len(arrivals) == 0 {
		return
	}
	now, carried := j.leaders(), j.carried(loads)
	r := &j.receivers
	r.at = earlier(r.at, now)
	another := r.from != from && !r.dead[from]
	if r.carried == nil || another || now.Sub(r.at) >= time.Hour {
		*r = receivers{from: from, at: now, carried: carried, dead: map[int]bool{}}
		for _, ordinal := range j.memory.Changes.Failover.Dead {
			r.dead[ordinal] = !j.serves(ordinal)
		}
	}
	waits := r.beyond(arrivals, carried, j.capacity(loads))
	for _, rate := range j.Config.Change.Moves.Rate {
		since, most := now.Add(-min(time.Duration(rate.Period), time.Hour)), j.share(rate.Percent)
		before := within(j.budget.moved[change.Failover], since) - within(j.budget.moved[change.Failover], now.Add(-1))
		if waits > max(1, most-before) {
			j.fail("of replica %d's failover %d servers go beyond what the others take on freely, beside %d within %s, and %d may; they carried %v",
				from, waits, before, time.Duration(rate.Period), most, r.carried)
		}
	}
}

// beyond is how many arrivals wait for the budget at least: where the others take on the lightest freely.
func (r receivers) beyond(arrivals []arrival, carried map[int]plan.Load, capacity plan.Load) (waits int) {
	slices.SortFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.load, b.load) })
	carried = maps.Clone(carried)
	for _, a := range arrivals {
		freely := max(capacity, r.carried[a.to]+r.carried[a.to]/4)
		if a.again || carried[a.to]+a.load > freely {
			waits++
			continue
		}
		carried[a.to] += a.load
	}
	return waits
}

// targets are where the rollout that begins moves clusters to: of a live one the plan has the present wave only.
func (j *judge) targets() map[string]int {
	if r := j.Plan.Rollout; r.Mode != plan.ModeLive {
		return r.Moves
	}
	return j.memory.Changes.Target
}

// arrivals are what leaves the replica that is failed over. A drain goes along, and is none.
func (j *judge) arrivals(loads map[string]plan.Load) (from int, arrivals []arrival) {
	cordoned, of, targets := j.cordoned(), map[string]*arrival{}, j.targets()
	var servers []string
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		left := j.before.Clusters[name].Replica
		if left == targets[name] || slices.Contains(cordoned, left) {
			continue
		}
		from = left
		server := cmp.Or(j.found(name).Bound, j.First(name)) // a group goes whole
		if of[server] == nil {
			of[server], servers = &arrival{to: targets[name]}, append(servers, server)
		}
		of[server].load += loads[name]
		of[server].again = of[server].again || j.again(name)
	}
	for _, server := range servers {
		arrivals = append(arrivals, *of[server])
	}
	return from, arrivals
}

// loads are the clusters' as the last cycle had them, and the rows' where it had none.
func (j *judge) loads() map[string]plan.Load {
	loads := map[string]plan.Load{}
	for name, row := range j.before.Clusters {
		loads[name] = plan.LoadOf(row.Load)
	}
	for i, cl := range j.Last.Fleet.Clusters {
		if j.Last.Loads != nil {
			loads[cl.Shard.ID] = j.Last.Loads[i]
		}
	}
	return loads
}

// carried is what each replica carries before the rollout, and what those have that have no row yet.
func (j *judge) carried(loads map[string]plan.Load) map[int]plan.Load {
	carried := map[int]plan.Load{}
	for name, load := range loads {
		if row, planned := j.before.Clusters[name]; planned {
			carried[row.Replica] += load
		} else if owners := j.Owners(name); len(owners) > 0 {
			carried[owners[0]] += load
		}
	}
	return carried
}

// groupOf is the group that is to have a cluster on one replica, whether it is there yet or not; empty: none.
func (j *judge) groupOf(name string) string {
	for _, g := range j.Config.Partition.Groups {
		if g.Together == nil {
			continue
		}
		of, err := metav1.LabelSelectorAsSelector(g.Together)
		if err != nil {
			j.fail("reading the group %s: %v", g.Name, err)
		}
		if of.Matches(labels.Set(j.Labels[name])) {
			return "group " + g.Name
		}
	}
	return ""
}

// capacity is what a replica may carry: as configured, and else at most what the heaviest server makes, or a group that is to be together.
func (j *judge) capacity(loads map[string]plan.Load) plan.Load {
	if configured := j.Config.Partition.Capacity; configured != nil {
		capacity, err := plan.NewLoad(configured.Float())
		if err != nil {
			j.fail("reading the capacity: %v", err)
		}
		return capacity
	}
	servers := map[string]plan.Load{}
	for name, load := range loads {
		servers[cmp.Or(j.groupOf(name), j.found(name).Bound, j.First(name))] += load
	}
	heaviest := plan.Load(0)
	for _, load := range servers {
		heaviest = max(heaviest, load)
	}
	return heaviest
}

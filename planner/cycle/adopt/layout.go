package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plural"
)

// layout brings the plan's rows up to date.
type layout struct{ *Adoption }

// observe follows the fleet: while nothing is enforced, the plan is what stands.
func (l layout) observe() {
	before, unknown := l.Next.Clusters, []int(nil)
	l.Next.Clusters = make(map[string]plan.Row, len(l.Fleet.Clusters))
	for i, c := range l.Fleet.Clusters {
		row, known := before[c.Shard.ID]
		switch {
		case !standing.Managed(c):
		case known && l.Owners[i] != plan.NoReplica:
			row.Replica = l.Owners[i]
			l.Next.Clusters[c.Shard.ID] = row
		default:
			unknown = append(unknown, i)
		}
	}
	var homeless []int
	for _, i := range l.thatFit(unknown) {
		if l.Owners[i] == plan.NoReplica {
			homeless = append(homeless, i)
			continue
		}
		l.Next.Clusters[l.Fleet.Clusters[i].Shard.ID] = plan.Row{Replica: l.Owners[i]}
	}
	l.place(homeless)
}

// add gives every cluster without one a row, as the webhook answers for it, so that taking it over moves nothing.
func (l layout) add() {
	var unknown []int
	for i, c := range l.Fleet.Clusters {
		if _, known := l.Next.Clusters[c.Shard.ID]; standing.Managed(c) && !known {
			unknown = append(unknown, i)
		}
	}
	if unknown = l.thatFit(unknown); len(unknown) == 0 {
		return
	}
	if l.In.InForce == nil {
		for _, i := range unknown {
			if l.Owners[i] != plan.NoReplica {
				l.Next.Clusters[l.Fleet.Clusters[i].Shard.ID] = plan.Row{Replica: l.Owners[i]}
			}
		}
		unknown = slices.DeleteFunc(unknown, func(i int) bool { return l.Owners[i] != plan.NoReplica })
	} else {
		l.Notes = append(l.Notes, fmt.Sprintf("%d new: %s", len(unknown), ground.NamesOf(l.Fleet, unknown)))
	}
	l.place(unknown)
}

// roomForMoves is what new rows leave of the plan: a rollout's moves stand beside the rows.
const roomForMoves = 64 << 10

// thatFit are the clusters that the plan has room for. A plan that cannot be written ends all planning, and holds a
// rollout where it is: whoever makes Secrets must not bring that about.
func (l layout) thatFit(clusters []int) []int {
	if len(clusters) == 0 {
		return nil
	}
	slim := l.Next
	slim.Rollout = nil // what it takes was left for it
	var fit, left []int
	room, servers := codec.Room(slim), l.bytes()
	most := roomForMoves
	for _, n := range servers {
		most = max(most, 2*n)
	}
	for _, i := range clusters {
		c := l.Fleet.Clusters[i]
		row := codec.RowBytes(c.Shard.ID)
		moves := max(most, 2*(servers[c.Together()]+row))
		if room-row < moves {
			left = append(left, i)
			continue
		}
		fit, most, room = append(fit, i), moves, room-row
		if server := c.Together(); server != "" {
			servers[server] += row
		}
	}
	if len(left) > 0 {
		l.Found = append(l.Found, problem.Problem{Phase: problem.PhaseDiscover,
			Subject: l.Fleet.Clusters[left[0]].Shard.ID, Kind: "PlanFull", Message: fmt.Sprintf(
				"the plan has no room for %s, the first is %q: they stay where the webhook put them, and nothing moves them; delete Secrets that are none of a cluster's, or give them shorter names",
				plural.Of(len(left), "cluster"), l.Fleet.Clusters[left[0]].Shard.ID)})
	}
	return fit
}

// bytes is what the rows of each server take. All of one move at once, and stand in the plan twice meanwhile.
func (l layout) bytes() map[string]int {
	bytes := make(map[string]int, len(l.Next.Clusters))
	for name, row := range l.Next.Clusters {
		if server := l.Beside.Of(name, row.Server); server != "" {
			bytes[server] += codec.RowBytes(name)
		}
	}
	return bytes
}

// place gives rows to clusters that nobody owns yet: a row with the same server, a valid shard, else rendezvous. The
// Secret that leads its server comes first, and the others join it.
func (l layout) place(clusters []int) {
	if len(clusters) == 0 {
		return
	}
	arrivals := placement.NewArrivals(plan.NewView(l.Next.Clone(), l.Pins))
	if load := loadOf(l.Ground, bounds.Capacity(l.Ground), nil); load != nil {
		arrivals.FillTo(plan.Load(load.high))
	}
	for _, i := range l.leadersFirst(clusters) {
		c, current := l.Fleet.Clusters[i], plan.NoReplica
		if c.Explicit.State == discover.ShardValid {
			current = c.Explicit.N
		}
		to := arrivals.Place(c.Shard.Server, current, arrivals.Groups(labels.Set(c.Labels.Set())))
		arrivals.Add(c.Shard.Server, to)
		l.Next.Clusters[c.Shard.ID] = plan.Row{Replica: to}
	}
}

// leadersFirst keeps the order of those that lead a server, and of those that follow.
func (l layout) leadersFirst(clusters []int) (order []int) {
	for _, follows := range []bool{false, true} {
		for _, i := range clusters {
			if l.Fleet.Clusters[i].Follows == follows {
				order = append(order, i)
			}
		}
	}
	return order
}

// forgetAfter is how long a row outlives its Secret: long enough for a Secret that is deleted and created again, by a
// person or a restore, to come back to its replica.
const forgetAfter = time.Hour

// forget drops rows whose Secret has been gone for an hour, and those of clusters that a person took out.
func (l layout) forget() {
	for _, c := range l.Fleet.Clusters {
		if !standing.Managed(c) {
			delete(l.Next.Clusters, c.Shard.ID)
		}
	}
	var forgotten []string
	for _, name := range standing.RowsWithoutSecret(l.Next.Clusters, l.Fleet) {
		since, seen := l.In.Memory.Gone[name]
		if !seen || l.In.Now.Before(since) {
			since = l.In.Now
		}
		l.Gone[name] = since // until the plan without it is written
		if l.In.Now.Sub(since) >= forgetAfter {
			delete(l.Next.Clusters, name)
			forgotten = append(forgotten, name)
		}
	}
	if len(forgotten) > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("%d gone for an hour: %s", len(forgotten), problem.ClipList(forgotten)))
	}
}

// pin makes each pin that holds now its cluster's row, so that a pin that is taken away later moves nothing, and
// gives the Secrets of one server one replica.
func (l layout) pin() {
	slim := l.Next // which rows there are says nothing of pins, and a view indexes all it is given
	slim.Clusters = nil
	v := plan.NewView(slim, l.Pins)
	for name := range l.Pins {
		row, known := l.Next.Clusters[name]
		if replica, why, _ := v.Effective(name); known && why == plan.Pinned {
			row.Replica = replica
			l.Next.Clusters[name] = row
		}
	}
	for _, u := range l.Fleet.Groups() {
		if len(u.Clusters) > 1 {
			l.unite(u, v)
		} else if l.Fixed().Follows(u) {
			l.stayHome(u.Clusters[0])
		}
	}
	l.leaveAlone(v)
}

// stayHome has the row of a Secret without a shard that nobody can write at its cluster's owner, where that pod says so
// itself and no other one is silent: its first shard, once it can be written, moves nothing. In the modes that restart
// replicas the algorithm has another owner with each number of them, and the row follows that.
func (l layout) stayHome(i int) {
	seen := l.In.Observed.Reported
	said := seen.Clusters[l.Fleet.Clusters[i].Shard.ID].Owners
	told := seen.Asked && len(said) == 1 && !seen.Quoted(said[0])
	if !told || said[0] != l.Owners[i] {
		return // by the algorithm alone, or beside a pod that keeps silent, it would be a guess
	}
	name, owner := l.Fleet.Clusters[i].Shard.ID, said[0]
	row, known := l.Next.Clusters[name]
	if !known || l.Next.Rollout != nil || ground.Rolling(l.In, l.Next) {
		return
	}
	if row.Replica != owner && owner >= 0 && owner < l.Next.Replicas {
		row.Replica = owner
		l.Next.Clusters[name] = row
		l.followed = append(l.followed, name)
	}
}

// leaveAlone gives what stands alone the replica that its Secret carries, since nobody may write another.
func (l layout) leaveAlone(v *plan.View) {
	for _, c := range l.Fleet.Clusters {
		carries := c.Explicit.State == discover.ShardValid && v.Stays(c.Explicit.N)
		if row, known := l.Next.Clusters[c.Shard.ID]; known && c.Alone && carries {
			row.Replica = c.Explicit.N
			l.Next.Clusters[c.Shard.ID] = row
		}
	}
}

// retarget keeps a shrinking rollout from ending below a pin that holds meanwhile, or a Secret that nobody may write
// any more: the replica that a person chose stays, unless people took it away themselves.
func (l layout) retarget() {
	under := l.Next.Rollout
	if under == nil || l.Next.FreeReplicas || under.Replicas >= l.Next.Replicas {
		return
	}
	if !slices.Contains([]plan.Stage{plan.Assigning, plan.Moving, plan.Verifying}, under.Stage) {
		return
	}
	least := max(l.ReplicasHeld(), l.ReplicasOwned())
	for name, replica := range l.Pins {
		if _, known := l.Next.Clusters[name]; known && replica < l.Next.Replicas {
			least = max(least, replica+1)
		}
	}
	if least > under.Replicas {
		under.Replicas = least
		under.ControllerReplicas = max(under.ControllerReplicas, least)
	}
}

// unite gives a unit the replica of its pinned Secret, else of one that ballast may not write, else of its first: Argo
// CD takes whichever it saw last, so that only one answer for all is an answer.
func (l layout) unite(u discover.Unit, v *plan.View) {
	members, lead := make([]placement.Cluster, len(u.Clusters)), ""
	for k, i := range u.Clusters {
		m := l.Cluster(i)
		asked, wants := l.Pins[m.Name]
		there := asked < l.Next.Replicas || v.Stays(asked) // amid x0y's stop there are none
		standsAt := wants && there && asked == l.Next.Clusters[m.Name].Replica
		switch pin, why, _ := v.Effective(m.Name); {
		case standsAt && standing.Managed(l.Fleet.Clusters[i]):
			m.At, m.Claim, lead = asked, placement.Pinned, cmp.Or(lead, m.Name)
		case why == plan.Pinned && standing.Managed(l.Fleet.Clusters[i]):
			m.At, m.Claim, lead = pin, placement.Pinned, cmp.Or(lead, m.Name)
		case m.Claim == placement.Fixed && l.takenAway(l.Fleet.Clusters[i].Explicit):
			m.At, m.Claim = plan.NoReplica, placement.Follows
		case m.Claim == placement.Fixed && v.Stays(l.Fleet.Clusters[i].Explicit.N):
			m.At = l.Fleet.Clusters[i].Explicit.N
		case m.Claim == placement.Fixed:
			m.Claim = placement.Follows
		case l.nameless(i): // no wave moves it, and what is written of its server counts: its row leads nobody
			m.At = plan.NoReplica
		}
		if _, row := l.Next.Clusters[m.Name]; !row && !v.Stays(m.At) {
			m.At = plan.NoReplica // its shard may be any number
		}
		members[k] = m
	}
	home := placement.Home(members, func(replica int) bool { return replica >= 0 })
	if home == plan.NoReplica {
		return
	}
	for _, m := range members {
		row, known := l.Next.Clusters[m.Name]
		switch {
		case !known:
			continue
		case m.Claim == placement.Pinned && m.At != home:
			l.Found = append(l.Found, problem.Problem{Phase: problem.PhasePartition, Subject: m.Name,
				Kind: "PinConflict",
				Message: fmt.Sprintf("%q is pinned to replica %d and %q, which has the same server, to %d: pin both alike",
					m.Name, m.At, lead, home)})
			continue
		case m.Claim == placement.Fixed:
			row.Replica = m.At
		default:
			row.Replica = home
		}
		l.Next.Clusters[m.Name] = row
	}
}

// takenAway reports whether a Secret names a replica that people took away, where their number is theirs: its server's
// other Secrets leave it by the rollout that follows, and would go back for its sake.
func (l layout) takenAway(names discover.ShardValue) bool {
	valid := names.State == discover.ShardValid
	return valid && l.Next.FreeReplicas && names.N >= standing.Replicas(l.In.Workload)
}

// nameless reports whether Argo CD alone says where a cluster is, whatever its row and the number of replicas, as in mode
// live.
func (l layout) nameless(i int) bool {
	return standing.LeftToAlgorithm(l.Fleet.Clusters[i]) && l.In.Config.Rollout.Live != nil
}

// describe fills in what a row says beside its replica.
func (l layout) describe() {
	for _, c := range l.Fleet.Clusters {
		row, ok := l.Next.Clusters[c.Shard.ID]
		if !ok {
			continue
		}
		pin, pinned := l.Pins[c.Shard.ID]
		described := row
		described.Server, described.Pinned = plan.ServerHash(c.Shard.Server), pinned && pin == row.Replica
		if described != row {
			l.Next.Clusters[c.Shard.ID] = described
		}
	}
}

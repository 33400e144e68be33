package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/sharding"
)

// forgetAfter is how long a row outlives its Secret: long enough for a Secret that is deleted and created again, by a
// person or a restore, to come back to its replica.
const forgetAfter = time.Hour

// defaultMaxReplicas is how far a fleet may grow where nobody said: room without surprise.
const defaultMaxReplicas = 16

// adoption is the plan in force brought up to date with the world, without deciding anything: new clusters have rows,
// gone ones lose theirs in time, pins and the configuration are taken over.
type adoption struct {
	in     input.Inputs
	fleet  discover.Fleet
	owners []int
	pins   plan.Pins
	next   plan.Plan
	gone   map[string]time.Time
	beside *placement.Servers // what stays together
	groups []group
	moved  []Move   // clusters that have another replica than in the plan before
	notes  []string // what changed, in words
	found  []problem.Problem

	partial bool // the discovery is refused, since too many are gone at once: all stays, but for a rescue

	inUse    *InUse                // of memory; nil: nothing is bounded by it
	byName   map[string]plan.Bytes // of what is not seen, too
	capacity plan.Load             // that a replica may carry, where the configuration says nothing of it; 0: nothing is measured
}

func adopt(in input.Inputs, fleet discover.Fleet, base plan.Plan, pins plan.Pins) *adoption {
	a := &adoption{in: in, fleet: fleet, owners: standing.Owners(in, fleet), pins: pins, next: base.Clone(), gone: map[string]time.Time{}, beside: standing.Servers(fleet),
		groups: groupsOf(in.Config.Partition, fleet)}
	if a.next.Clusters == nil { // a plan that says nothing of any
		a.next.Clusters = map[string]plan.Row{}
	}
	a.frame()
	a.sayArrivals()
	a.reportOrphans()
	a.reportStopped()
	a.reportBeyond()
	if a.next.Mode.Enforced() {
		a.addRows()
		a.forgetRows()
		a.retarget() // a pin that it makes room for holds at once
		a.pinRows()
	} else {
		a.observeRows()
	}
	a.describeRows()
	a.regroup()
	for _, m := range rollout.Moves(base, a.next) {
		a.moved = append(a.moved, Move{m.Cluster, m.From, m.To})
	}
	return a
}

// servers is how many moves those clusters' are: one for each server.
func (a *adoption) servers(moves []rollout.Move) int {
	names := func(yield func(string) bool) {
		for _, m := range moves {
			if !yield(m.Cluster) {
				return
			}
		}
	}
	return a.beside.Count(names, func(name string) string { return a.next.Clusters[name].Server })
}

// reportOrphans names the clusters that nobody reconciles, which Argo CD itself never says.
func (a *adoption) reportOrphans() {
	for i, c := range a.fleet.Clusters {
		if a.owners[i] != sharding.Nobody || c.Skip {
			continue
		}
		mend := "ballast gives it an owner in Hold and Enforce"
		if c.Immutable || c.Unmanaged {
			mend = "ballast may not write its Secret: make it anew, or take the annotation " + plan.AnnotationUnmanaged + " away"
		}
		a.found = append(a.found, problem.Problem{Phase: problem.PhaseDiscover, Subject: c.Shard.ID, Kind: "Orphaned", Message: fmt.Sprintf(
			"no replica reconciles %q: there are %d, and Argo CD counts %d (%s); %s",
			c.Shard.ID, a.in.Workload.Replicas, standing.ControllerReplicas(a.in.Workload), plan.EnvReplicas, mend)})
	}
}

// reportStopped says that no replica runs where nobody but people will bring one back: pods that are not there name no
// orphan.
func (a *adoption) reportStopped() {
	enforced := a.next.Mode.Enforced() && !a.in.BreakGlass
	broughtBack := enforced && !a.next.FreeReplicas && !a.next.Unmanaged
	clusters := len(a.fleet.Clusters)
	if a.partial { // what is not seen may be there all the same
		clusters = max(clusters, len(a.next.Clusters))
	}
	if a.in.Workload.Replicas > 0 || clusters == 0 {
		return
	}
	if broughtBack || noReplicaRuns(a.next.Rollout) {
		return
	}
	a.found = append(a.found, problem.Problem{Phase: problem.PhaseDiscover, Kind: "NoReplicas", Message: fmt.Sprintf(
		"%s %q has 0 replicas, so that nobody reconciles any of %s: scale it up, or see who scaled it down with `ballast audit`",
		a.in.Workload.Kind, a.in.Workload.Name, problem.Plural(clusters, "cluster"))})
}

// reportBeyond names replicas of people's beyond those that a plan may have.
func (a *adoption) reportBeyond() {
	w, most := a.in.Workload, a.next.MaxReplicas
	if !a.next.FreeReplicas || !a.next.Mode.Enforced() || w.Replicas <= most {
		return
	}
	message := fmt.Sprintf("%s %q has %d replicas, and partition.maxReplicas is %d: the others receive no cluster", w.Kind, w.Name, w.Replicas, most)
	if env := standing.ControllerReplicas(w); w.Kind == plan.StatefulSet && env < w.Replicas {
		message += fmt.Sprintf(", and to Argo CD those from %d on are replica 0 once more, so that its clusters have several (%s is %d)", env, plan.EnvReplicas, env)
	}
	a.found = append(a.found, problem.Problem{Phase: problem.PhaseRollout, Kind: "BeyondMaxReplicas", Message: message + "; raise partition.maxReplicas, or lower the autoscaler's maximum"})
}

// selectorOf is what tells the webhook which Secrets are clusters; empty where Argo CD's label does.
func selectorOf(c config.PlannerConfig) string {
	configured, err := discover.Selector(c.Discover.Selector)
	if err != nil || configured.String() == plan.SecretTypeLabel+"="+plan.SecretTypeCluster {
		return ""
	}
	return configured.String()
}

// frame takes over what the configuration and the workload say outside the rows.
func (a *adoption) frame() {
	before := a.next.Mode
	a.next.Mode, a.next.Target, a.next.PlannerUser = a.in.Config.Mode, standing.TargetOf(a.in.Workload), a.in.PlannerUser
	a.next.Selector = selectorOf(a.in.Config)
	if a.next.Rollout != nil && a.next.Replicas < 1 && a.next.Mode != plan.Enforce {
		// No other mode goes on with a rollout, and this one has stopped every replica.
		a.next.Mode = plan.Enforce
		a.found = append(a.found, problem.Problem{Phase: problem.PhaseRollout, Kind: "ModeWaits", Message: fmt.Sprintf(
			"mode %s waits until the replicas that rollout.x0y stopped are back", a.in.Config.Mode)})
	}
	a.next.FreeReplicas = byWorkload(a.in.Config.Partition)
	a.next.MaxReplicas = a.mostHeld(maxReplicas(a.in.Config.Partition, a.next))
	a.dropSizes()
	a.reportCap()
	a.optOut()
	if before != a.next.Mode && a.in.InForce != nil {
		a.notes = append(a.notes, fmt.Sprintf("mode %s instead of %s", a.next.Mode, before))
	}
	if !a.next.Mode.Enforced() {
		a.next.Rollout = nil
		a.next.Replicas, a.next.ControllerReplicas = standing.Replicas(a.in.Workload), standing.Env(a.in.Workload)
	}
}

// dropSizes leaves out the sizes of replicas that a plan may not have any more.
func (a *adoption) dropSizes() {
	s := a.next.Sizes
	if s == nil {
		return
	}
	maps.DeleteFunc(s.Replicas, func(replica int, _ plan.Resources) bool {
		return replica >= a.next.MaxReplicas || a.next.Target.Kind == plan.Deployment
	})
	if len(s.Default.Requests)+len(s.Default.Limits)+len(s.Replicas) == 0 {
		a.next.Sizes = nil
	}
}

// optOut takes over whether the workload opted out: from then on people alone decide its replicas.
func (a *adoption) optOut() {
	before := a.next.Unmanaged
	a.next.Unmanaged = a.in.Workload.Unmanaged
	switch {
	case a.in.InForce == nil || before == a.next.Unmanaged:
	case a.next.Unmanaged:
		a.notes = append(a.notes, "the workload opted out: its replicas, env and resources are not held")
	default:
		a.notes = append(a.notes, "the workload is managed again")
	}
}

// mostHeld is the most replicas, but for those that stand and that a pin or a Secret that nobody may write asks for: they stay until
// a person takes that away. To the webhook they hold as long as the replica does, so that a lower number would only turn their
// clusters to and fro, and be asked for again at each election.
func (a *adoption) mostHeld(most int) int {
	if a.next.FreeReplicas {
		return most
	}
	held, by, why := most, "", ""
	for _, name := range slices.Sorted(maps.Keys(a.pins)) {
		if pin := a.pins[name]; pin >= held && pin < a.next.Replicas && standing.Has(a.fleet, name) {
			held, by, why = pin+1, name, fmt.Sprintf("is pinned to replica %d: pin it lower, or take the pin away", pin)
		}
	}
	for i, c := range a.fleet.Clusters {
		if at := a.carries(i); at >= held {
			held, by, why = at+1, c.Shard.ID, fmt.Sprintf("is on replica %d; %s", at, a.lowered(i))
		}
	}
	if by == "" {
		return most
	}
	a.found = append(a.found, problem.Problem{Phase: problem.PhasePartition, Subject: by, Kind: "ReplicasHeld", Message: fmt.Sprintf(
		"partition.maxReplicas is %d, and %d are needed, since %q %s", most, held, by, why)})
	return held
}

// mostClusters is how many clusters a replica may have: no fewer than that many replicas at most need for all of them.
func (a *adoption) mostClusters() int {
	most := a.in.Config.Partition.MaxClustersPerReplica
	if most == 0 {
		return 0
	}
	replicas := max(a.next.MaxReplicas, 1)
	return max(most, (len(a.fleet.Clusters)+replicas-1)/replicas)
}

// reportCap says that the cap is too small for the fleet: a replica has more, and who wrote the number hears of it nowhere else.
func (a *adoption) reportCap() {
	configured, most := a.in.Config.Partition.MaxClustersPerReplica, a.mostClusters()
	if most <= configured {
		return
	}
	a.found = append(a.found, problem.Problem{Phase: problem.PhasePartition, Kind: "CapTooSmall", Message: fmt.Sprintf(
		"partition.maxClustersPerReplica is %d, and %s on %s at most are %d on one: raise it, or partition.maxReplicas",
		configured, problem.Plural(len(a.fleet.Clusters), "cluster"), problem.Plural(a.next.MaxReplicas, "replica"), most)})
}

func byWorkload(p config.Partition) bool { return p.Replicas != nil && p.Replicas.Workload }

// maxReplicas is configured, else what the plan has, else room to grow; never below what stands.
func maxReplicas(p config.Partition, now plan.Plan) int {
	most := now.MaxReplicas
	if p.MaxReplicas != nil {
		most = *p.MaxReplicas
	} else if most == 0 {
		most = max(defaultMaxReplicas, now.Replicas)
	}
	return max(most, 1)
}

// observeRows follows the fleet: while nothing is enforced, the plan is what stands.
func (a *adoption) observeRows() {
	before, unknown := a.next.Clusters, []int(nil)
	a.next.Clusters = make(map[string]plan.Row, len(a.fleet.Clusters))
	for i, c := range a.fleet.Clusters {
		row, known := before[c.Shard.ID]
		switch {
		case !standing.Managed(c):
		case known && a.owners[i] != sharding.Nobody:
			row.Replica = a.owners[i]
			a.next.Clusters[c.Shard.ID] = row
		default:
			unknown = append(unknown, i)
		}
	}
	var homeless []int
	for _, i := range a.thatFit(unknown) {
		if a.owners[i] == sharding.Nobody {
			homeless = append(homeless, i)
			continue
		}
		a.next.Clusters[a.fleet.Clusters[i].Shard.ID] = plan.Row{Replica: a.owners[i]}
	}
	a.place(homeless)
}

// addRows gives every cluster without one a row, as the webhook answers for it, so that taking it over moves nothing.
func (a *adoption) addRows() {
	var unknown []int
	for i, c := range a.fleet.Clusters {
		if _, known := a.next.Clusters[c.Shard.ID]; standing.Managed(c) && !known {
			unknown = append(unknown, i)
		}
	}
	if unknown = a.thatFit(unknown); len(unknown) == 0 {
		return
	}
	if a.in.InForce == nil {
		for _, i := range unknown {
			if a.owners[i] != sharding.Nobody {
				a.next.Clusters[a.fleet.Clusters[i].Shard.ID] = plan.Row{Replica: a.owners[i]}
			}
		}
		unknown = slices.DeleteFunc(unknown, func(i int) bool { return a.owners[i] != sharding.Nobody })
	} else {
		a.notes = append(a.notes, fmt.Sprintf("%d new: %s", len(unknown), a.names(unknown)))
	}
	a.place(unknown)
}

// roomForMoves is what new rows leave of the plan: a rollout's moves stand beside the rows.
const roomForMoves = 64 << 10

// thatFit are the clusters that the plan has room for. A plan that cannot be written ends all planning, and holds a
// rollout where it is: whoever makes Secrets must not bring that about.
func (a *adoption) thatFit(clusters []int) []int {
	if len(clusters) == 0 {
		return nil
	}
	slim := a.next
	slim.Rollout = nil // what it takes was left for it
	var fit, left []int
	room, servers := plan.Room(slim), a.rowBytes()
	most := roomForMoves
	for _, n := range servers {
		most = max(most, 2*n)
	}
	for _, i := range clusters {
		c := a.fleet.Clusters[i]
		row := plan.RowBytes(c.Shard.ID)
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
		a.found = append(a.found, problem.Problem{Phase: problem.PhaseDiscover, Subject: a.fleet.Clusters[left[0]].Shard.ID, Kind: "PlanFull", Message: fmt.Sprintf(
			"the plan has no room for %s, the first is %q: they stay where the webhook put them, and nothing moves them; delete Secrets that are none of a cluster's, or give them shorter names",
			problem.Plural(len(left), "cluster"), a.fleet.Clusters[left[0]].Shard.ID)})
	}
	return fit
}

// rowBytes is what the rows of each server take. All of one move at once, and stand in the plan twice meanwhile.
func (a *adoption) rowBytes() map[string]int {
	bytes := make(map[string]int, len(a.next.Clusters))
	for name, row := range a.next.Clusters {
		if server := a.beside.Of(name, row.Server); server != "" {
			bytes[server] += plan.RowBytes(name)
		}
	}
	return bytes
}

// place gives rows to clusters that nobody owns yet: a row with the same server, a valid shard, else rendezvous.
func (a *adoption) place(clusters []int) {
	if len(clusters) == 0 {
		return
	}
	arrivals := placement.NewArrivals(plan.NewView(a.next.Clone(), a.pins))
	for _, i := range clusters {
		c, current := a.fleet.Clusters[i], placement.NoReplica
		if c.Explicit.State == discover.ShardValid {
			current = c.Explicit.N
		}
		groups := arrivals.Groups(labels.Set(c.Labels.Set()))
		a.next.Clusters[c.Shard.ID] = plan.Row{Replica: arrivals.Place(c.Shard.Server, current, groups)}
	}
}

// forgetRows drops rows whose Secret has been gone for an hour, and those of clusters that a person took out.
func (a *adoption) forgetRows() {
	for _, c := range a.fleet.Clusters {
		if !standing.Managed(c) {
			delete(a.next.Clusters, c.Shard.ID)
		}
	}
	var forgotten []string
	for _, name := range standing.RowsWithoutSecret(a.next.Clusters, a.fleet) {
		since, seen := a.in.Memory.Gone[name]
		if !seen || a.in.Now.Before(since) {
			since = a.in.Now
		}
		a.gone[name] = since // until the plan without it is written
		if a.in.Now.Sub(since) >= forgetAfter {
			delete(a.next.Clusters, name)
			forgotten = append(forgotten, name)
		}
	}
	if len(forgotten) > 0 {
		a.notes = append(a.notes, fmt.Sprintf("%d gone for an hour: %s", len(forgotten), problem.ClipList(forgotten)))
	}
}

// pinRows makes each pin that holds now its cluster's row, so that a pin that is taken away later moves nothing, and
// gives the Secrets of one server one replica.
func (a *adoption) pinRows() {
	slim := a.next // which rows there are says nothing of pins, and a view indexes all it is given
	slim.Clusters = nil
	v := plan.NewView(slim, a.pins)
	for name := range a.pins {
		row, known := a.next.Clusters[name]
		if replica, why, _ := v.Effective(name); known && why == plan.Pinned {
			row.Replica = replica
			a.next.Clusters[name] = row
		}
	}
	for _, u := range a.fleet.Groups() {
		if len(u.Clusters) > 1 {
			a.unite(u, v)
		}
	}
	a.leaveAlone(v)
}

// leaveAlone gives what stands alone the replica that its Secret carries, since nobody may write another.
func (a *adoption) leaveAlone(v *plan.View) {
	for _, c := range a.fleet.Clusters {
		carries := c.Explicit.State == discover.ShardValid && v.Stays(c.Explicit.N)
		if row, known := a.next.Clusters[c.Shard.ID]; known && c.Alone && carries {
			row.Replica = c.Explicit.N
			a.next.Clusters[c.Shard.ID] = row
		}
	}
}

// retarget keeps a shrinking rollout from ending below a pin that holds meanwhile, or a Secret that nobody may write any
// more: the replica that a person chose stays, unless people took it away themselves.
func (a *adoption) retarget() {
	r := a.next.Rollout
	if r == nil || a.next.FreeReplicas || r.Replicas >= a.next.Replicas {
		return
	}
	if !slices.Contains([]plan.Stage{plan.Assigning, plan.Moving, plan.Verifying}, r.Stage) {
		return
	}
	least := a.held()
	for name, replica := range a.pins {
		if _, known := a.next.Clusters[name]; known && replica < a.next.Replicas {
			least = max(least, replica+1)
		}
	}
	if least > r.Replicas {
		r.Replicas = least
		r.ControllerReplicas = max(r.ControllerReplicas, least)
	}
}

// cluster is where one of the fleet's stands: a row, or without one what it carries or who owns it. What the plan has
// no room for stays there; the one that leads its server does not stay for it.
func (a *adoption) cluster(i int) placement.Cluster {
	cl := a.fleet.Clusters[i]
	_, known := a.next.Clusters[cl.Shard.ID]
	c := placement.Cluster{Name: cl.Shard.ID, Server: cl.Together(), At: a.standing(i), Claim: placement.Stands, Apart: cl.Apart, Memory: a.takes(i)}
	switch carries := cl.Explicit.State == discover.ShardValid; {
	case known && cl.Immutable && carries:
		c.Claim = placement.Fixed
	case !known && carries && !cl.Follows:
		c.At, c.Claim = cl.Explicit.N, placement.Fixed
	case !known || cl.Follows:
		c.Claim = placement.Follows
	}
	return c
}

// unite gives a unit the replica of its pinned Secret, else of one that ballast may not write, else of its first: Argo
// CD takes whichever it saw last, so that only one answer for all is an answer.
func (a *adoption) unite(u discover.Unit, v *plan.View) {
	members, lead := make([]placement.Cluster, len(u.Clusters)), ""
	for k, i := range u.Clusters {
		m := a.cluster(i)
		asked, wants := a.pins[m.Name]
		standsAt := wants && asked == a.next.Clusters[m.Name].Replica && asked < a.next.Replicas
		switch pin, why, _ := v.Effective(m.Name); {
		case standsAt && standing.Managed(a.fleet.Clusters[i]):
			m.At, m.Claim, lead = asked, placement.Pinned, cmp.Or(lead, m.Name)
		case why == plan.Pinned && standing.Managed(a.fleet.Clusters[i]):
			m.At, m.Claim, lead = pin, placement.Pinned, cmp.Or(lead, m.Name)
		case m.Claim == placement.Fixed && v.Stays(a.fleet.Clusters[i].Explicit.N):
			m.At = a.fleet.Clusters[i].Explicit.N
		case m.Claim == placement.Fixed:
			m.Claim = placement.Follows
		}
		if _, row := a.next.Clusters[m.Name]; !row && !v.Stays(m.At) {
			m.At = placement.NoReplica // its shard may be any number
		}
		members[k] = m
	}
	home := placement.Home(members, func(replica int) bool { return replica >= 0 })
	for _, m := range members {
		row, known := a.next.Clusters[m.Name]
		switch {
		case !known:
			continue
		case m.Claim == placement.Pinned && m.At != home:
			a.found = append(a.found, problem.Problem{Phase: problem.PhasePartition, Subject: m.Name, Kind: "PinConflict",
				Message: fmt.Sprintf("%q is pinned to replica %d and %q, which has the same server, to %d: pin both alike",
					m.Name, m.At, lead, home)})
			continue
		case m.Claim == placement.Fixed:
			row.Replica = m.At
		default:
			row.Replica = home
		}
		a.next.Clusters[m.Name] = row
	}
}

// describeRows fills in what a row says beside its replica.
func (a *adoption) describeRows() {
	for _, c := range a.fleet.Clusters {
		row, ok := a.next.Clusters[c.Shard.ID]
		if !ok {
			continue
		}
		pin, pinned := a.pins[c.Shard.ID]
		described := row
		described.Server, described.Pinned = plan.ServerHash(c.Shard.Server), pinned && pin == row.Replica
		if described != row {
			a.next.Clusters[c.Shard.ID] = described
		}
	}
}

func (a *adoption) names(clusters []int) string {
	names := make([]string, len(clusters))
	for k, i := range clusters {
		names[k] = a.fleet.Clusters[i].Shard.ID
	}
	return problem.ClipList(names)
}

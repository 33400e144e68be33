// Package safety takes in what the pods say, and stops everything after a wave that did harm.
package safety

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/failover/health"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
	"ballast/planner/sharding"
)

// Breaker takes in what the pods say, and whether the last waves did harm.
type Breaker struct {
	*outcome.Draft
	expectedOrphans []string // clusters without an owner, or soon to be, by no wave's doing
}

// Look takes in what the pods say: who has each cluster, which replicas are unwell, whether a wave did harm.
func (w *Breaker) Look(g *ground.Ground) {
	ledger.Ledger{Draft: w.Draft}.Count(g.Beside)
	empty := w.byName()
	w.judgeOwners(g, empty >= ownership.ManyByName)
	w.judgeReplicas(g)
	w.judgeWaves(g)
	for _, f := range slices.Concat(w.In.Conflicts, w.In.Installation) {
		w.Tell(problem.Problem{Phase: problem.PhaseRollout, Subject: f.Subject, Kind: f.Kind, Message: f.Message})
	}
	if empty >= ownership.ManyByName {
		w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Kind: "DestServerEmpty",
			Message: fmt.Sprintf("%d Applications have an empty dest_server in the metrics of their owners, as Argo CD 3.0.0 to 3.0.5 shows those "+
				"that name their cluster: clusters without others are planned by the load that they had last by it, or by the middle of all others', and are owned by the one "+
				"pod that keeps their cache; upgrade Argo CD to 3.0.6 or later", empty)})
	}
	if it := w.In.Workload; it.NoText {
		w.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: it.Name, Kind: "NoText", Message: fmt.Sprintf(
			"some string of %s %q (an annotation, a label of the template, what a container runs) is no UTF-8, which nobody's tools write: whether webhook controllers.%s holds its env cannot be asked; "+
				"`ballast audit` says who wrote it; to mend it, take the string out with kubectl edit", it.Kind,
			it.Name, plan.Group)})
	}
	if it := w.In.Workload; it.ContainerGone {
		w.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: it.Name, Kind: "ContainerGone",
			Message: fmt.Sprintf(
				"the pod template of %s %q has no container %q, and none that runs the application-controller: its env and size are left as they are, all else goes on; "+
					"put the container back, or name the one that is meant by target.container; `ballast audit` says who wrote it", it.Kind, it.Name, it.Container)})
	}
	switch why := w.In.Workload.Renumbered(g.Next.Widest()); {
	case why == "":
	case standing.OwnShards(w.In, w.Out.Fleet) != nil:
		w.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: w.In.Workload.Name, Kind: "Renumbered",
			Message: "nothing levels, drains, grows or restarts, and failovers go to replicas whose pods show that they are theirs: " + why})
	default:
		w.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: w.In.Workload.Name, Kind: "Renumbered",
			Message: "nothing levels, fails over, drains or grows: " + why})
	}
	if why := w.In.Workload.OnlyReplica0(g.Next.Widest()); why != "" {
		w.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: w.In.Workload.Name, Kind: "Renumbered",
			Message: "nothing grows, and no earlier plan comes back: " + why})
	}
	for _, trouble := range w.In.Observed.Trouble {
		w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Kind: "PodsUnseen", Message: trouble})
	}
	w.tellUnlisted()
}

// tellUnlisted says why nobody can tell a cluster without Applications from one without an owner.
func (w *Breaker) tellUnlisted() {
	const unknown = "; a cluster of which none is listed counts as one that may have some"
	for _, why := range w.In.Observed.Unlisted {
		w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Kind: "ApplicationsUnseen", Message: why + unknown})
	}
	since := w.In.Memory.Changes.Ownership.Unsettled(w.In.Observed.Reported, w.In.Now)
	if !since.IsZero() {
		w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Kind: "ApplicationsUnseen", Message: fmt.Sprintf(
			"Argo CD's setting application.namespaces is another one since %s, and a controller that started before goes by the one of then%s; "+
				"put it back, or restart the controllers if it is meant", since.UTC().Format(time.RFC3339), unknown)})
	}
}

// byName is how many Applications seem to have an empty dest_server for their cluster's name by two looks in a row, the
// lower number: a wave, or a pod that has just started, may show as many at one of them.
func (w *Breaker) byName() int {
	before := w.In.Memory.Changes.ByName
	if len(w.In.Observed.Reported.Pods) == 0 {
		return 0
	}
	now := w.In.Observed.Reported.ByNameAfter(before)
	w.Out.Memory.Changes.ByName = now
	return min(before, now)
}

// judgeOwners says who has each cluster. Where many Applications have an empty dest_server, a cluster that has no
// others is none without an owner: nobody can say who its owner is.
func (w *Breaker) judgeOwners(g *ground.Ground, manyEmpty bool) {
	if len(w.In.Observed.Reported.Pods) == 0 {
		return // nothing was seen, and nothing is forgotten
	}
	v := plan.NewView(g.Next, g.Pins) // which is asked before anything changes
	intended := func(name string) (int, bool) {
		replica, _, ok := v.Effective(name)
		return replica, ok
	}
	before := w.In.Memory.Changes.Ownership
	now, verdict := ownership.Judge(before, w.In.Observed.Reported, intended, w.In.Now, ownership.Grace{})
	if g.Partial {
		keepUnseen(g, now, before)
	}
	if ground.Rolling(w.In, g.Next) { // its pods count by several templates
		now.Astray = nil
	} else {
		now, verdict.Astray = now.Stray(w.In.Observed.Reported, verdict.Owned, agreed(g, intended), w.In.Now)
	}
	if manyEmpty {
		verdict.Orphans = slices.DeleteFunc(verdict.Orphans, func(o ownership.Orphan) bool {
			return w.In.Observed.Reported.Clusters[o.Cluster].Unshown()
		})
	}
	w.Out.Memory.Changes.Ownership, w.Out.Verdict = now, verdict
	misled := misled(w.Out.Fleet)
	for _, o := range w.Out.Verdict.Orphans {
		message := o.Message()
		if misled[o.Cluster] {
			message += "; Argo CD may go by another Secret of its server, there or deleted within the hour: delete that one, then restart all controllers, replica 0 too"
		}
		w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Subject: o.Cluster, Kind: "Orphaned", Message: message})
	}
	for _, d := range w.Out.Verdict.Doubled {
		w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Subject: d.Cluster, Kind: "Doubled",
			Message: d.Message()})
	}
	w.tellAstray()
}

// mostAstray are told by name: one restart of all controllers mends any number.
const mostAstray = 10

func (w *Breaker) tellAstray() {
	for i, a := range w.Out.Verdict.Astray {
		if w.isImplicit(a.Cluster) {
			w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Subject: a.Cluster, Kind: "OwnerAstray",
				Message: fmt.Sprintf(
					"cluster %q is reconciled by replica %d since %s, and without a Secret it is replica %d's, as after one with a slash behind its server was deleted; "+
						"restart all controllers, replica 0 too", a.Cluster, a.Owners[0],
					a.Since.UTC().Format(time.RFC3339), a.Intended)})
			continue
		}
		mend := fmt.Sprintf("; pin it to replica %d in data.pins of the plan ConfigMap, which makes all controllers agree, and take the pin away again; or restart all of them, replica 0 too",
			a.Owners[0])
		if more := len(w.Out.Verdict.Astray) - mostAstray; i == mostAstray-1 && more > 0 {
			mend += fmt.Sprintf("; so are %d more", more)
		}
		if i < mostAstray {
			w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Subject: a.Cluster, Kind: "OwnerAstray",
				Message: a.Message() + mend})
		}
	}
}

func (w *Breaker) isImplicit(cluster string) bool {
	return slices.ContainsFunc(w.Out.Fleet.Clusters, func(cl discover.Cluster) bool { return cl.Implicit && cl.Shard.ID == cluster })
}

// agreed is the replica that the plan gives a cluster, where every Secret of its server names it, too. The cluster that
// Argo CD runs in has one without a Secret.
func agreed(g *ground.Ground, intended func(name string) (int, bool)) func(name string) (int, bool) {
	said := map[string]int{} // by server: the shard of all its Secrets, or none
	for _, cl := range g.Fleet.Clusters {
		shard, known := said[cl.Shard.Server]
		switch {
		case cl.Explicit.State != discover.ShardValid, known && shard != cl.Explicit.N:
			said[cl.Shard.Server] = plan.NoReplica
		case !known:
			said[cl.Shard.Server] = cl.Explicit.N
		}
	}
	servers := map[string]string{}
	own, fixed := "", 0
	for _, cl := range g.Fleet.Clusters {
		servers[cl.Shard.ID] = cl.Shard.Server
		if cl.Implicit && standing.Algorithm(g.In) != sharding.ConsistentHashing {
			own, fixed = cl.Shard.ID, *cl.FixedAt
		}
	}
	return func(name string) (int, bool) {
		if name == own && own != "" {
			return fixed, true
		}
		replica, planned := intended(name)
		shard, known := said[servers[name]]
		return replica, planned && known && shard == replica
	}
}

func (w *Breaker) judgeReplicas(g *ground.Ground) {
	cordons, err := people.ParseCordons(w.In.Cordon)
	if err != nil {
		w.Tell(problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationCordon, Kind: "CordonRefused",
			Message: err.Error()})
	}
	w.Out.Cordoned = people.Cordoned(cordons, w.In.Now)
	f := w.In.Config.Failover
	if f == nil || g.Next.FreeReplicas && w.In.Workload.Replicas == 0 {
		return
	}
	seen := health.Fleet{Known: w.In.Observed.Known, Replicas: standingReplicas(g.Next), Dynamic: w.In.Observed.Dynamic,
		Pods: w.In.Observed.Pods, Rolling: ground.Rolling(w.In, g.Next)}
	m, before := &w.Out.Memory.Changes, w.In.Memory.Changes.Replicas
	o := health.Options{After: time.Duration(f.After), Settle: time.Duration(f.Settle),
		Interval: time.Duration(w.In.Config.Interval)}
	w.Out.Replicas, m.Replicas = health.Judge(seen, o, w.In.Now, before)
	m.Failover = m.Failover.Still(before, m.Replicas, o, w.In.Now)
	if w.Out.Replicas.Held != health.WholeFleet { // what all fell ill of was no cluster's doing
		ledger.Ledger{Draft: w.Draft}.Suspect(w.Out.Replicas.Sick, g.Next)
	}
	for _, s := range w.Out.Replicas.Sick {
		w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Subject: s.Pod, Kind: "Unwell", Message: s.String()})
	}
	if v := w.Out.Replicas; len(v.Stuck) > 0 {
		w.Tell(problem.Problem{Phase: problem.PhaseOwnership, Kind: "WorkloadRollsOut", Message: fmt.Sprintf(
			"%s %q rolls out since %s, and of its replicas %v do not work: none is judged meanwhile, and nothing fails over; "+
				"mend the rollout (kubectl rollout status, kubectl rollout undo), or empty them with `ballast evacuate %d`",
			w.In.Workload.Kind, w.In.Workload.Name, v.Rolling.UTC().Format(time.RFC3339), v.Stuck, v.Stuck[0])})
	}
}

// standingReplicas are those that a failover looks at: not the pods that come.
func standingReplicas(p plan.Plan) int {
	if ground.OnlyGrows(p.Rollout) {
		return p.Rollout.From.Replicas
	}
	return p.Replicas
}

// judgeWaves stops everything after a wave that did harm, until a person takes the annotation away.
func (w *Breaker) judgeWaves(g *ground.Ground) {
	m := &w.Out.Memory.Changes
	w.expect(g)
	if m.Trip != nil {
		if m.TripTold = m.TripTold || w.In.Tripped == m.Trip.Why; m.TripTold && w.In.Tripped == "" {
			m.Trip, m.TripTold, m.TripMoved, m.Watch, m.Failures = nil, false, nil, harm.Watch{}, nil
		}
	}
	var signs harm.Signs
	if !m.Watch.Ended.IsZero() { // adding up the fleet's work is for what is watched
		signs = w.signs(m.Watch.Apart)
	}
	moved := m.Watch.Clusters
	trip, watch := harm.Judge(m.Watch, w.In.Now, signs)
	m.Watch = watch
	w.trips(trip, moved)
	if why := cmp.Or(tripWhy(m.Trip), w.In.Tripped); why != "" {
		stopped := "nothing moves and nothing scales any more: "
		if !StopsFor(change.Failover, w.In, *m) {
			stopped = "nothing moves and nothing scales any more, but off replicas that are unwell" +
				m.Stay().String() + ": "
		}
		w.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "Tripped", Message: stopped + why +
			"; see what happened, then run `ballast resume` (or take the annotation " + plan.AnnotationTripped +
			" from the plan ConfigMap)"})
	}
}

// trips takes in a trip behind waves that moved those clusters, and what else is killed for its memory while one for
// memory stands: a failover off that would hand on what killed it. Another kill behind a wave, such as a failover's
// during the trip, is told anew.
func (w *Breaker) trips(trip *harm.Trip, moved []string) {
	m := &w.Out.Memory.Changes
	switch stands := m.Trip; {
	case Worse(trip, stands):
		if m.Trip, m.TripTold, m.TripMoved = trip, false, nil; trip.Reason == harm.OOMKilled {
			m.TripMoved = moved
		}
	case trip != nil && trip.Reason == harm.OOMKilled && stands.Bounds(m.TripMoved):
		joined, all := stands.Joined(m.TripMoved, *trip, moved)
		m.Trip, m.TripTold, m.TripMoved = &joined, false, all
	}
	if v := w.Out.Replicas; len(m.Stay().Replicas) == 0 || v.Held == health.WholeFleet { // as for what is suspect
		return
	}
	for _, s := range w.Out.Replicas.Sick {
		if s.Reason == health.OOMKilled {
			more := m.Trip.With(w.In.Now, s.Replica)
			m.Trip = &more
		}
	}
}

// Worse reports whether a trip takes the place of the one that stands: one for memory stops failovers, too.
func Worse(trip, stands *harm.Trip) bool {
	if trip == nil || stands == nil {
		return trip != nil
	}
	return trip.Reason == harm.OOMKilled && stands.Reason != harm.OOMKilled
}

// expect finds orphans that no wave made: the clusters on replicas that people took away, and those on one that died
// without having received any, whose failover must go on.
func (w *Breaker) expect(g *ground.Ground) {
	m := &w.Out.Memory.Changes
	received := map[int]bool{}
	for _, replica := range m.Watch.Standing().Receivers {
		received[replica] = true
	}
	if r := g.Next.Rollout; r != nil {
		for _, replica := range r.Moves {
			received[replica] = true
		}
	}
	over := map[int]bool{} // received in a watch that goes on where the clock was ahead
	for _, replica := range m.Watch.Receivers {
		over[replica] = !received[replica]
	}
	var late []string
	for _, o := range w.Out.Verdict.Orphans {
		dead := w.In.Observed.Known && o.Intended != plan.NoReplica && !standing.Works(w.In.Observed.Pods, o.Intended)
		switch {
		case !dead || received[o.Intended]:
		case over[o.Intended]:
			late = append(late, o.Cluster)
		default:
			w.expectedOrphans = append(w.expectedOrphans, o.Cluster)
		}
	}
	for name, row := range g.Next.Clusters {
		if g.Next.FreeReplicas && row.Replica >= w.In.Workload.Replicas {
			w.expectedOrphans = append(w.expectedOrphans, name)
		}
	}
	if len(w.expectedOrphans) > 0 {
		m.Watch.Orphans = joined(m.Watch.Orphans, w.expectedOrphans)
	}
	if w.expectedOrphans = append(w.expectedOrphans, late...); len(w.expectedOrphans) > 0 {
		m.Began.Orphans = joined(m.Began.Orphans, w.expectedOrphans)
	}
}

// joined is all names of both lists, in order.
func joined(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

func tripWhy(t *harm.Trip) string {
	if t == nil {
		return ""
	}
	return t.Why
}

// signs are what is seen of the fleet. Clusters that move are apart: one that takes long by nature makes neither the
// replica slower that it comes to, nor the one faster that it left.
func (w *Breaker) signs(apart []string) harm.Signs {
	s := harm.Signs{Work: harm.Believable(w.work(apart)), Apart: apart}
	s.Orphans = WaveOrphans(w.Out.Fleet, w.Out.Verdict,
		Excused(w.Out.Fleet, w.Out.Verdict, w.Out.Memory.Known, w.In.Now))
	for _, p := range w.Out.Memory.Changes.Replicas.Dated(w.In.Observed.Pods, w.In.Now) {
		if p.OOMKilled && !p.KilledAt.IsZero() {
			s.Kills = append(s.Kills, harm.Kill{Pod: p.Name, Replica: p.Replica, At: p.KilledAt})
		}
	}
	return s
}

func (w *Breaker) work(without []string) map[harm.Portion]harm.Work {
	moving, apart := map[string]bool{}, map[string]bool{}
	for _, name := range without {
		moving[name] = true
	}
	for _, cl := range w.Out.Fleet.Clusters {
		if moving[cl.Shard.ID] {
			apart[cl.Shard.Server] = true
		}
	}
	unseen := w.unseenServers(without)
	all := make(map[harm.Portion]harm.Work, len(w.In.Observed.Work))
	for replica, servers := range w.In.Observed.Work {
		for _, server := range slices.Sorted(maps.Keys(servers)) { // in order: sums of fractions depend on it
			if !apart[server] && !unseen(server) {
				portion := harm.PortionOf(replica, server)
				all[portion] = all[portion].Plus(servers[server])
			}
		}
	}
	return all
}

// unseenServers tells which servers are those of clusters whose Secret is not seen, by their rows.
func (w *Breaker) unseenServers(names []string) func(server string) bool {
	hashes := map[string]bool{}
	for _, name := range names {
		if w.In.InForce != nil && !standing.Has(w.Out.Fleet, name) {
			hashes[w.In.InForce.Clusters[name].Server] = true
		}
	}
	return func(server string) bool { return len(hashes) > 0 && hashes[plan.ServerHash(server)] }
}

// underWay reports whether a rollout has a wave of clusters on its way.
func underWay(r *plan.Rollout) bool { return r != nil && r.Stage == plan.Moving && len(r.Was) > 0 }

// goesOn reports whether a wave that was under way still is: a later wave, a way back and a stage without moves are its
// end.
func goesOn(wave plan.Rollout, after *plan.Rollout) bool {
	if after == nil || after.Wave != wave.Wave {
		return false
	}
	return after.Stage == plan.Moving && len(after.Moves) > 0
}

// Follow notes the waves that began and ended between two plans. One that has the plan say who has a cluster already
// brought nobody anything, so that nothing is watched for behind it.
func (w *Breaker) Follow(before, after *plan.Rollout) {
	m := &w.Out.Memory.Changes
	if m.FollowsOwner() {
		return
	}
	if underWay(before) && !goesOn(*before, after) {
		m.Watch = m.Watch.After(harm.Wave{Began: before.Since, Ended: w.In.Now,
			Clusters:  slices.Sorted(maps.Keys(before.Was)),
			Receivers: slices.Collect(maps.Values(before.Moves)), Orphans: m.Began.Orphans, Work: m.Began.Work,
			Apart: m.Began.Apart})
	}
	if after != nil && len(after.Was) > 0 && (before == nil || after.Wave != before.Wave) {
		moved := slices.AppendSeq(slices.Clone(m.Watch.Standing().Apart), maps.Keys(after.Was))
		m.Began = w.signs(slices.Compact(slices.Sorted(slices.Values(moved))))
		m.Began.Orphans = joined(m.Began.Orphans, w.expectedOrphans)
	}
}

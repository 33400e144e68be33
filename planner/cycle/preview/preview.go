// Package preview says what people would get before they ask for it: what an evacuation, a rollback or the candidate
// takes.
package preview

import (
	"maps"
	"math"
	"slices"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/member"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/proposal"
	"ballast/planner/cycle/resize"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/failover"
	"ballast/planner/failover/health"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// RowsAsSecrets is what is known of a fleet by its plan alone: Secrets that say what the rows say.
func RowsAsSecrets(p plan.Plan) discover.Input {
	in := discover.Input{Namespace: p.Target.Namespace}
	for _, name := range slices.Sorted(maps.Keys(p.Clusters)) {
		row := p.Clusters[name]
		secret := discover.Secret{Name: name, Namespace: p.Target.Namespace, Server: "https://" + name, HasData: true,
			Shard: discover.ShardValue{State: discover.ShardValid, N: row.Replica}}
		if row.Server != "" { // the hash of what several may have
			secret.Server = "https://" + row.Server
		}
		in.Secrets = append(in.Secrets, secret)
	}
	return in
}

// Preview is what a proposal looks at outside the leader: the plan in force and what stands, without what the pods and
// Prometheus say. Loads are those of the rows' decision.
func Preview(in input.Inputs) *snapshot.Snapshot {
	in.Memory.Changes = in.Memory.Changes.Named(in.Names())
	fleet := standing.Fleet(in)
	g := ground.New(in, fleet, standing.Pins(in.Pins, fleet.Clusters), *in.InForce)
	member.Choose(g)
	g.Regroup()
	s := snapshot.Of(outcome.Outcome{Memory: in.Memory}, g)
	s.Loads = make([]plan.Load, len(fleet.Clusters))
	for i, cl := range fleet.Clusters {
		s.Loads[i] = plan.LoadOf(g.Next.Clusters[cl.Shard.ID].Load)
	}
	if cordons, err := people.ParseCordons(in.Cordon); err == nil {
		s.Cordoned = people.Cordoned(cordons, in.Now)
	}
	return s
}

// PreviewEvacuation is where the clusters of cordoned replicas go, by the leader's own judgement and the loads of the
// last decision, when the budget has room for all of them. The inputs have a plan in force; of the others it takes what
// compare.InForce takes, and the configuration and the cordons. Nothing goes to the replicas that the leader found
// unwell.
func PreviewEvacuation(in input.Inputs, unwell ...int) failover.Evacuation {
	s := Preview(in)
	s.Replicas.Sick = sick(unwell)
	r := proposal.Request(s, nil)
	r.BudgetDrain = math.MaxInt
	return failover.Evacuate(r, in.Now)
}

// sick are the replicas that the leader found unwell, without why.
func sick(unwell []int) (all []health.Sick) {
	for _, replica := range unwell {
		all = append(all, health.Sick{Replica: replica})
	}
	return all
}

// PreviewLoss is where the clusters of replicas go that work no more, all from the same moment on, with so many beyond
// what the others take on freely, by the leader's own judgement and the loads of the last decision. They are half of
// the fleet at most. The inputs are those of PreviewEvacuation, and have failover.
func PreviewLoss(in input.Inputs, lost []int, rescue int) failover.Evacuation {
	r := proposal.Request(Preview(in), lost)
	r.BudgetRescue, r.BudgetSuspect, r.Dead = rescue, rescue, lost
	return failover.Evacuate(r, in.Now)
}

// WayBack is what becomes of the fleet when a rollback is done. Refused says why it is not even begun.
type WayBack struct {
	Refused  string
	Replicas int
	Rows     map[string]plan.Row
	Pins     plan.Pins      // that hold meanwhile: data.pins and the Secrets' annotations together
	Fleet    discover.Fleet // what stands
	Cordoned []int
	Unwell   []int
	Sizes    []resize.SizeBack // that come back, as far as the rules of change let them
}

// PreviewRollback is the way back to the plan of in.Rollback, by the proposal that the leader will consider. Nothing
// goes to the replicas that it found unwell.
func PreviewRollback(in input.Inputs, unwell ...int) WayBack {
	s := Preview(in)
	s.Replicas.Sick = sick(unwell)
	w := WayBack{Replicas: s.Next.Replicas, Rows: s.Next.Clusters, Pins: s.Pins, Fleet: s.Fleet, Cordoned: s.Cordoned,
		Unwell: unwell}
	if why := in.Rollback.Refused(s.Next); why != "" {
		w.Refused = why
		return w
	}
	if p := proposal.Rollback(s); p != nil && p.Want != nil {
		w.Replicas, w.Rows = p.Want.Replicas, p.Want.Rows
	}
	w.Sizes = resize.Differences(s.Next, *in.Rollback.Plan, w.Replicas)
	return w
}

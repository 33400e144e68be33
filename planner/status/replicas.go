package status

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Replica is what the leader knows of a replica beside the plan. Owns is how many clusters it has by its own account,
// nil where its pod said nothing; Sampled is when the oldest value in use of those that the plan gives it was measured,
// zero where nobody dated one. Wanted is the size that the rules ask for, where there are any.
type Replica struct {
	Replica int            `json:"replica"`
	Owns    *int           `json:"owns,omitempty"`
	Sampled time.Time      `json:"sampled,omitzero"`
	Wanted  plan.Resources `json:"wanted,omitzero"`
}

// Elsewhere is a cluster that other replicas have than the one that the plan gives it; without Owners, no replica has
// it. How long it is so makes it a Fault.
type Elsewhere struct {
	Cluster string `json:"cluster"`
	Planned int    `json:"planned"`
	Owners  []int  `json:"owners,omitempty"`
}

// replicasOf says what is known of the plan's replicas, and of others that answered.
func replicasOf(in input.Inputs, out cycle.Outcome, v *plan.View) []Replica {
	all := known{}
	for id := range v.Plan.Replicas {
		all.of(id)
	}
	all.own(in, out)
	all.sample(out, v)
	if out.Sizing != nil {
		all.want(*out.Sizing)
	}
	var list []Replica
	for _, r := range all {
		if !reflect.DeepEqual(*r, Replica{Replica: r.Replica}) { // nothing is known of that one
			list = append(list, *r)
		}
	}
	slices.SortFunc(list, func(a, b Replica) int { return cmp.Compare(a.Replica, b.Replica) })
	return list
}

// known is what is known of replicas, by their numbers.
type known map[int]*Replica

func (k known) of(replica int) *Replica {
	if k[replica] == nil {
		k[replica] = &Replica{Replica: replica}
	}
	return k[replica]
}

// own counts what the pods that answered have.
func (k known) own(in input.Inputs, out cycle.Outcome) {
	for _, p := range in.Observed.Pods {
		if p.Answered && p.Replica >= 0 {
			k.of(p.Replica).Owns = new(int)
		}
	}
	for _, owned := range out.Verdict.Owned {
		for _, replica := range owned.Owners {
			if r := k[replica]; r != nil && r.Owns != nil {
				*r.Owns++
			}
		}
	}
}

// sample dates the oldest value that a replica's load is made of.
func (k known) sample(out cycle.Outcome, v *plan.View) {
	for name, at := range oldest(out) {
		replica, _, planned := v.Effective(name)
		if r := k[replica]; planned && r != nil && (r.Sampled.IsZero() || at.Before(r.Sampled)) {
			r.Sampled = at
		}
	}
}

// want has what the rules of sizes want.
func (k known) want(sizing resize.Sizing) {
	for _, wish := range sizing.Replicas {
		for id, r := range k {
			if wish.Replica == size.All || wish.Replica == id {
				r.Wanted = wish.Wanted
			}
		}
	}
}

// oldest is when the oldest value in use of each cluster was measured, where any is dated.
func oldest(out cycle.Outcome) map[string]time.Time {
	at := map[string]time.Time{}
	for i, shard := range out.Table.Shards {
		for _, c := range out.Table.Columns {
			if c.SampledAt[i] <= 0 {
				continue
			}
			sampled := time.UnixMilli(c.SampledAt[i]).UTC().Truncate(time.Second)
			if known, is := at[shard.ID]; !is || sampled.Before(known) {
				at[shard.ID] = sampled
			}
		}
	}
	return at
}

// elsewhereOf are the clusters that are not where the plan has them, where every pod says what it has. One without an
// Application has no owner, and lacks none.
func elsewhereOf(out cycle.Outcome, v *plan.View) []Elsewhere {
	var list []Elsewhere
	for name, owned := range out.Verdict.Owned {
		planned, _, known := v.Effective(name)
		if !known || owned.Idle || slices.Equal(owned.Owners, []int{planned}) {
			continue
		}
		list = append(list, Elsewhere{Cluster: name, Planned: planned, Owners: owned.Owners})
	}
	slices.SortFunc(list, func(a, b Elsewhere) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return list
}

// sameReplicas leaves out when something was measured, which is another thing with every answer.
func sameReplicas(list []Replica) []Replica {
	list = slices.Clone(list)
	for i := range list {
		list[i].Sampled = time.Time{}
	}
	return list
}

package decision

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"ballast/planner/plan"
	"ballast/planner/plan/people"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
	"ballast/webhook/steering"
)

// Request is what a decision needs of an admission request beside the objects.
type Request struct {
	Create    bool // else an update
	Kind      string
	Namespace string
	Name      string
	User      string
	At        time.Time // of the decision
}

// Cluster answers a write to a cluster Secret: data.shard is what the plan says, and what it does not say yet is
// assigned so that every webhook replica and every retry gives the same answer.
func Cluster(s *inforce.State, r Request, object, old objects.Secret) Verdict {
	v := decideCluster(s, r, object, old)
	v.note(clusterActs(r, object, old, s.MaxReplicas()))
	v.warnMistyped(steering.OnCluster(s.MaxReplicas()), object.Notes, old.Told())
	return v
}

func decideCluster(s *inforce.State, r Request, object, old objects.Secret) Verdict {
	v := Verdict{Revision: s.Revision(), Requested: []Field{{plan.ShardKey, object.Shard}}}
	why, enforcing := s.Enforcing()
	switch {
	case !enforcing:
		v.Reason = why
		return v
	case object.Unmanaged, !object.Cluster, object.LeftOut, r.Namespace != s.View.Plan.Target.Namespace:
		// A Secret that loses its label in this write matched by its old self: it leaves, and its shard is its own.
		v.Reason = plan.Unmanaged
		if object.LeftOut && sightChanges(object, old) {
			v.warn("ballast: discover.selector leaves this Secret out from now on: ballast knows no such cluster, and holds its shard no more")
		}
		v.holdBeside(s, r, object, old)
		return v
	}
	name := r.Name
	if name == "" {
		name = object.Name // both are empty under generateName
	}
	replica, why, ok := replica(s, name, object, old)
	if !ok {
		v.Reason = plan.Unmanaged
		v.warn("ballast: data.server is missing or too long, so no replica can be assigned; the shard is left as written")
		return v
	}
	if why == plan.Assigned && !s.View.Stays(old.Replica()) && s.Arrivals.AllFull() {
		said := fmt.Sprintf("ballast: every replica is full (clusters, memory, load), this one goes to %d", replica)
		v.warn(said+"; raise the limits or partition.maxReplicas", said)
	}
	v.holdShard(s, name, strconv.Itoa(replica), why, object, old)
	return v
}

// holdBeside holds the shard of a Secret that ballast leaves alone where this write makes it no replica's and the plan
// has another Secret of its server: Argo CD keeps one shard a server, so that nobody would reconcile that one's
// cluster, in part for good. What stood so before is left, and so is a valid shard: whoever makes a second Secret of a
// server has nothing written to the first.
func (v *Verdict) holdBeside(s *inforce.State, r Request, object, old objects.Secret) {
	ours := object.Cluster && r.Namespace == s.View.Plan.Target.Namespace
	if !ours || object.Server == "" || old.Immutable || s.View.Stays(object.Replica()) {
		return
	}
	replica, found := s.Arrivals.Beside(object.Server, cmp.Or(r.Name, object.Name))
	if inCluster := plan.NormalizeServer(object.Server) == plan.InClusterServer && object.Server != plan.InClusterServer; !found && !inCluster {
		return // Argo CD forgets the in-cluster's own spelling alone, and has it without a Secret
	}
	if atIt := plan.NormalizeServer(old.Server) == plan.NormalizeServer(object.Server); old.Cluster && atIt {
		switch before := old.Replica(); {
		case s.View.Stays(before):
			replica = before
		case old.Unmanaged || old.LeftOut:
			v.warn(fmt.Sprintf("ballast: this server is another cluster's, too, and shard %s is no replica's: Argo CD goes by either; it is left", orDash(object.Shard)))
			return
		}
	}
	want := strconv.Itoa(replica)
	v.Reason, v.Enforced, v.Patches = s.Enforced(plan.Restored), []Field{{plan.ShardKey, want}},
		shardPatch(object, want)
	v.warn(fmt.Sprintf("ballast: this server is another cluster's, too: shard %s is no replica's, and nobody would have it; %s stays", orDash(object.Shard), want))
}

// replica is the one a cluster belongs to: a pin in data.pins, the Secret's own pin, the row, the rules for new
// clusters.
func replica(s *inforce.State, name string, object, old objects.Secret) (int, plan.Reason, bool) {
	_, pinned := s.View.Pin(name)
	// Of several Secrets of one server the planner knows whose own pin counts; its answer is in the rows.
	if object.Pinned && !pinned && !s.Arrivals.Shared(object.Server, name) {
		if pin, ok := annotatedPin(s, object.Pin); ok {
			return pin, plan.Pinned, true
		}
	}
	if name != "" {
		if replica, why, ok := s.View.Effective(name); ok {
			return replica, why, true
		}
	}
	// old is the zero Secret on CREATE: the shard of a Secret that was not there does not count.
	current := old.Replica()
	if object.Server == "" {
		return current, plan.Assigned, s.View.Stays(current)
	}
	return s.Arrivals.Place(object.Server, current, object.Groups), plan.Assigned, true
}

// annotatedPin judges the pin annotation of a Secret as Effective judges data.pins: one at or above the replicas in
// force, or during an x0y rollout, waits for the planner; one that can never be is told to whoever writes it.
func annotatedPin(s *inforce.State, text string) (int, bool) {
	p := s.View.Plan
	pin, ok := plan.ParsePin(text)
	if !ok || people.BadPin(pin, p.MaxReplicas) != "" {
		return 0, false
	}
	return pin, s.View.PinHolds(pin)
}

// holdShard makes data.shard want, unless the Secret can no longer be changed: one that becomes immutable by this very
// write still can.
func (v *Verdict) holdShard(s *inforce.State, name, want string, why plan.Reason, object, old objects.Secret) {
	v.Enforced = []Field{{plan.ShardKey, want}}
	agrees := object.HasShard && object.Shard == want
	if !agrees && old.Immutable {
		v.Reason, v.Enforced = plan.Immutable, nil
		v.warn(fmt.Sprintf("ballast: the Secret is immutable: shard %s stays, plan %d has %s; re-create it to change that",
			orDash(object.Shard), v.Revision, want))
		return
	}
	if !agrees && why == plan.InPlan {
		why = plan.Restored
	}
	v.Reason = s.Enforced(why)
	if agrees {
		return
	}
	v.Patches = shardPatch(object, want)
	// A shard that was never there is added without a word; one that was asked for, or taken away, is worth a line.
	if object.HasShard || old.HasShard {
		v.warnShard(s, name, want, why, object)
	}
}

func shardPatch(object objects.Secret, want string) []Op {
	encoded := base64.StdEncoding.EncodeToString([]byte(want))
	switch {
	case !object.HasData:
		return []Op{{"add", "/data", map[string]string{plan.ShardKey: encoded}}}
	case !object.HasShard:
		return []Op{{"add", "/data/" + plan.ShardKey, encoded}}
	}
	return []Op{{"replace", "/data/" + plan.ShardKey, encoded}}
}

// warnShard says what stood, what stays, and how to pin.
func (v *Verdict) warnShard(s *inforce.State, name, want string, why plan.Reason, object objects.Secret) {
	asked := "no shard"
	if object.HasShard {
		asked = "shard " + object.Shard
	}
	if why == plan.Pinned {
		v.warn(fmt.Sprintf("ballast: %s was asked, pin %s stays; change the pin: data.pins of ConfigMap %s, or its annotation", asked, want, s.ConfigMap),
			fmt.Sprintf("ballast: %s was asked, pin %s stays", asked, want))
		return
	}
	said := fmt.Sprintf("ballast: %s was asked, %s stays (plan %d); ", asked, want, v.Revision)
	example := want // what was asked is one only where a pin may be it
	if n := object.Replica(); n >= 0 && n < s.View.Plan.MaxReplicas {
		example = strconv.Itoa(n)
	}
	v.warn(said+fmt.Sprintf("to pin, add %q to data.pins of ConfigMap %s", name+": "+example, s.ConfigMap),
		said+"to pin, add it to data.pins of ConfigMap "+s.ConfigMap)
}

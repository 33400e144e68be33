// Package observed is what everybody around a rollout speaks of, as it was last seen: pods, the workload, the cluster
// Secrets, and who reconciles each cluster.
package observed

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"ballast/planner/plan"
)

// State is what stands: the workload (nil: not found), every cluster Secret, the application-controllers' pods, and
// which replicas own each cluster by their own account, by the name of its Secret. Asked says that every ready pod
// answered, so that an owner that is absent is none, and Looked is when they were asked. Orphans and Doubled are the
// clusters that nobody has, or several pods, for longer than a move takes, by name. Repaired are the Secrets that
// repairs wrote lately. Where pods and owners are not known, only mode live misses them: it waits.
type State struct {
	Workload    *Workload         `json:"workload,omitempty"`
	Secrets     []Secret          `json:"secrets,omitempty"`
	InCluster   InCluster         `json:"inCluster,omitzero"`
	Pods        []Pod             `json:"pods,omitempty"`
	Owned       map[string]Owned  `json:"owned,omitempty"`
	OwnersKnown bool              `json:"asked,omitempty"`
	Looked      time.Time         `json:"looked,omitzero"`
	Orphans     []string          `json:"orphans,omitempty"`
	Doubled     []string          `json:"doubled,omitempty"`
	Repaired    map[string]Repair `json:"given,omitempty"`
	Accepted    *int              `json:"accepted,omitempty"` // how many Secrets a person says are right, whatever the plan has
	Passing     []string          `json:"passing,omitempty"`  // rows whose Secret is gone, and is believed to be: that says nothing of what is seen
}

// InCluster is the cluster Argo CD runs in. Implicit says that Argo CD knows it without a Secret; then Algorithm
// (legacy, round-robin, consistent-hashing) gives it a shard.
type InCluster struct {
	Implicit  bool   `json:"implicit,omitempty"`
	Algorithm string `json:"algorithm,omitempty"`
}

// Owned is who reconciles a cluster. Owners are the replicas whose own metrics carry it now, Live those of them that
// have it connected (its cache has an age and its connection status is 1), both ascending. Idle says that no
// Application has this destination: then nobody ever reports it, and nothing is lost.
type Owned struct {
	Owners []int `json:"owners,omitempty"`
	Live   []int `json:"live,omitempty"`
	Idle   bool  `json:"idle,omitempty"`
}

// Workload is the application-controller's StatefulSet or Deployment. Replicas and ControllerReplicas (the env; nil: it
// is absent or no number) are from its spec, RestartedAt is its pod template's annotation. Ready, Updated and Current
// are status.readyReplicas, .updatedReplicas and .replicas: pods that exist, whatever their revision. ObservedCurrent
// says that the status speaks of this spec.
type Workload struct {
	Replicas           int    `json:"replicas"`
	Ready              int    `json:"ready"`
	Updated            int    `json:"updated"`
	Current            int    `json:"current"`
	ObservedCurrent    bool   `json:"observedCurrent"`
	ControllerReplicas *int   `json:"controllerReplicas,omitempty"`
	RestartedAt        string `json:"restartedAt,omitempty"`
	Unmanaged          bool   `json:"unmanaged,omitempty"`

	Resources *plan.Resources `json:"resources,omitempty"` // what its pod template gives the controller's container; nil for nothing
}

// Secret is a cluster Secret, as far as its data.shard goes. Valid says that Argo CD reads it as a number, Shard is
// that number; Absent says that there is no such key. Cluster is the cluster's own name (data.name), by which
// Applications may name it; Skip says that Argo CD is told to leave the cluster alone (skip-reconcile), so that nobody
// owns it; Follows says that its server has another Secret, which leads, and Alone that ballast may not write this one:
// it stands beside that. Disputed says that one of its server's Secrets stands alone: Argo CD goes by whichever was
// written last, and who may write that one decides who has the cluster, so that any owner will do. Ownerless says that
// nobody has had the cluster for so long that no rollout waits for it. Bound is the server that its own stays together
// with, and Apart are the groups of which no two share a replica.
type Secret struct {
	Name      string `json:"name"`
	Cluster   string `json:"cluster,omitempty"`
	Skip      bool   `json:"skip,omitempty"`
	Ownerless bool   `json:"ownerless,omitempty"`
	Shard     int    `json:"shard,omitempty"`
	Valid     bool   `json:"valid,omitempty"`
	Absent    bool   `json:"absent,omitempty"`
	Immutable bool   `json:"immutable,omitempty"`
	Unmanaged bool   `json:"unmanaged,omitempty"`
	Follows   bool   `json:"follows,omitempty"`
	Alone     bool   `json:"alone,omitempty"`
	Disputed  bool   `json:"disputed,omitempty"`
	Server    string `json:"server,omitempty"`

	Bound string   `json:"bound,omitempty"`
	Apart []string `json:"apart,omitempty"`
}

// Together is what the cluster has in common with those that it stays together with; empty: it stays alone.
func (s Secret) Together() string {
	if s.Alone {
		return ""
	}
	return cmp.Or(s.Bound, s.Server)
}

// Carries reports whether the Secret names that replica.
func (s Secret) Carries(replica int) bool { return s.Valid && s.Shard == replica }

// Awaited reports whether some replica is to have the cluster and report it.
func (s Secret) Awaited(owned Owned) bool {
	return !s.Skip && !s.Ownerless && !owned.Idle
}

// Managed reports whether ballast may write the Secret.
func (s Secret) Managed() bool { return !s.Immutable && !s.Unmanaged }

// Display is the shard as people may see it: what is not a number of at most six digits is never shown, since people
// paste tokens into the wrong field.
func (s Secret) Display() string {
	switch {
	case s.Absent:
		return "-"
	case !s.Valid || s.Shard <= -plan.ReplicaLimit || s.Shard >= plan.ReplicaLimit:
		return "invalid"
	}
	return strconv.Itoa(s.Shard)
}

// Count is the workload's spec as a count; an absent env is 0.
func (w *Workload) Count() plan.Count {
	if w == nil {
		return plan.Count{}
	}
	c := plan.Count{Replicas: w.Replicas}
	if w.ControllerReplicas != nil {
		c.ControllerReplicas = *w.ControllerReplicas
	}
	return c
}

// Settled reports whether the workload is as the plan holds it, every pod at the newest template and ready.
func (w *Workload) Settled(p plan.Plan) bool {
	if w == nil || !w.ObservedCurrent || w.Replicas != p.Replicas {
		return false
	}
	if p.HoldsEnv() && (w.ControllerReplicas == nil || *w.ControllerReplicas != p.ControllerReplicas) {
		return false
	}
	return w.Ready == p.Replicas && w.Updated == p.Replicas && w.Current == p.Replicas
}

// Stopped reports whether no pod runs, and none is to.
func (w *Workload) Stopped() bool {
	return w != nil && w.ObservedCurrent && w.Replicas == 0 && w.Current == 0
}

// Stopped reports whether no pod runs, none is to, and none is seen: the status is what anybody who may write it says,
// and a Deployment's leaves out pods that are ending.
func (s State) Stopped() bool { return s.Workload.Stopped() && len(s.Pods) == 0 }

// RestartedSince reports whether the pod template was marked for a restart at or after a time, by whomever. A mark that
// lies ahead of now (zero: nobody knows) is by a clock that was ahead, and says nothing: pods that are older than a
// growth would be taken for new.
func (w *Workload) RestartedSince(since, now time.Time) bool {
	if w == nil {
		return false
	}
	at, err := time.Parse(time.RFC3339, w.RestartedAt)
	ahead := !now.IsZero() && at.After(now)
	return err == nil && !ahead && !at.Before(since.Truncate(time.Second))
}

// Repair is a Secret's shard as a repair wrote it, and when.
type Repair struct {
	Shard int       `json:"shard"`
	At    time.Time `json:"at"`
}

// PodsOf lists a replica's pods: one, or while a Deployment replaces them two.
func (s State) PodsOf(replica int) []Pod {
	var pods []Pod
	for _, p := range s.Pods {
		if p.Replica == replica {
			pods = append(pods, p)
		}
	}
	return pods
}

// Asleep says why a replica would not take a cluster now.
func (s State) Asleep(replica int) string {
	pods := s.PodsOf(replica)
	switch {
	case len(pods) == 0:
		return fmt.Sprintf("replica %d has no pod that is seen", replica)
	case slices.ContainsFunc(pods, func(p Pod) bool { return p.Ready && p.Claimed }):
		return ""
	case slices.ContainsFunc(pods, func(p Pod) bool { return p.Ready }):
		return fmt.Sprintf("no pod has claimed replica %d", replica)
	}
	return fmt.Sprintf("replica %d is not ready", replica)
}

// OwnersUnknown is what is missing where a ready pod does not answer.
const OwnersUnknown = "not every pod says which clusters it owns"

// Mute says that one of those replicas does not tell which clusters it owns.
func (s State) Mute(replicas ...int) string {
	if s.OwnersKnown {
		return ""
	}
	for _, r := range replicas {
		if !slices.ContainsFunc(s.PodsOf(r), func(p Pod) bool { return p.Ready && p.Answered }) {
			return OwnersUnknown
		}
	}
	return ""
}

// Fault names the first of the plan's clusters that several pods have, or nobody; empty: there is none. One whose
// Secret ballast may not write is people's, and so is which of several has one that is disputed.
func (s State) Fault(p plan.Plan) string {
	if len(s.Doubled)+len(s.Orphans) == 0 {
		return ""
	}
	ours, disputed := map[string]bool{}, map[string]bool{}
	for _, secret := range s.Secrets {
		_, planned := p.Clusters[secret.Name]
		ours[secret.Name], disputed[secret.Name] = planned && secret.Managed(), secret.Disputed
	}
	for _, name := range s.Doubled {
		if ours[name] && !disputed[name] {
			return Severally(name)
		}
	}
	for _, name := range s.Orphans {
		if ours[name] {
			return fmt.Sprintf("nobody reconciles cluster %q", name)
		}
	}
	return ""
}

// Severally says that several pods have a cluster.
func Severally(name string) string { return fmt.Sprintf("several pods reconcile cluster %q", name) }

// blindFrom is the smallest plan that is judged by the share of its clusters that are seen, as in discovery.
const blindFrom = 4

// Blind reports whether more than half of the plan's clusters have no Secret: a broken selector looks like a fleet in
// which nobody carries a high shard. It is none where a person says that so many are right.
func (s State) Blind(p plan.Plan) bool {
	if s.Accepted != nil && *s.Accepted == len(s.Secrets) {
		return false
	}
	found := 0
	for _, secret := range s.Secrets {
		if _, ok := p.Clusters[secret.Name]; ok {
			found++
		}
	}
	rows := len(p.Clusters)
	for _, name := range s.Passing {
		if _, ok := p.Clusters[name]; ok {
			rows--
		}
	}
	return rows >= blindFrom && 2*found < rows
}

// BroughtBack reports whether replicas are wanted that a stop should hold at 0, and has held for too long: the webhook
// lets them pass then.
func (s State) BroughtBack(p plan.Plan, now time.Time) bool {
	return p.Rollout.Stops() && s.Workload.Count().Replicas > 0 && plan.StopLapsed(p.Rollout.Since, now)
}

// Sorted lists the Secrets by name and leaves the state as it is.
func (s State) Sorted() []Secret {
	byName := func(a, b Secret) int { return cmp.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(s.Secrets, byName) {
		return s.Secrets
	}
	return slices.SortedFunc(slices.Values(s.Secrets), byName)
}

package discover

import (
	"fmt"
	"strconv"

	"ballast/planner/plan"
)

// Env variables of the application-controller that ballast reads; it writes the first.
const (
	EnvReplicas  = "ARGOCD_CONTROLLER_REPLICAS"
	EnvAlgorithm = "ARGOCD_CONTROLLER_SHARDING_ALGORITHM"
	EnvDynamic   = "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION"
)

// EnvShard is the replica that a pod is, to Argo CD, before the number in its name.
const EnvShard = "ARGOCD_CONTROLLER_SHARD"

// Workload is the application-controller's StatefulSet or Deployment as it stands. EnvReplicas is nil where the env is
// absent or comes from a reference; Algorithm is empty where neither flag nor env is there, else what they say.
// ApplicationNamespaces is nil where they leave it to Argo CD's settings.
type Workload struct {
	UID                 string  `json:"uid,omitempty"`
	Kind                string  `json:"kind"`
	Namespace           string  `json:"namespace"`
	Name                string  `json:"name"`
	Container           string  `json:"container"`
	Replicas            int     `json:"replicas"`
	ReadyReplicas       int     `json:"readyReplicas,omitempty"`
	UpdatedReplicas     int     `json:"updatedReplicas,omitempty"`
	CurrentReplicas     int     `json:"currentReplicas,omitempty"` // status.replicas: pods that exist, whatever their revision
	CurrentRevision     string  `json:"currentRevision,omitempty"`
	UpdateRevision      string  `json:"updateRevision,omitempty"`
	Generation          int64   `json:"generation,omitempty"`
	ObservedGeneration  int64   `json:"observedGeneration,omitempty"`
	EnvReplicas         *string `json:"envReplicas,omitempty"`
	EnvMixed            bool    `json:"envMixed,omitempty"`   // the env has several entries, and they do not say the same
	EnvUnknown          bool    `json:"envUnknown,omitempty"` // the env has a value that does not stand in the template: valueFrom, $(...) or perhaps envFrom
	EnvSaid             *string `json:"envSaid,omitempty"`    // what the reference says now, where that is known; empty: nothing. Pods may have started with another value
	Algorithm           string  `json:"algorithm,omitempty"`
	DynamicDistribution bool    `json:"dynamicDistribution,omitempty"`
	Unmanaged           bool    `json:"unmanaged,omitempty"`
	NoText              bool    `json:"noText,omitempty"`        // some string of it is no UTF-8, which no patch that goes by JSON keeps
	ContainerGone       bool    `json:"containerGone,omitempty"` // the pod template has no container that is the controller's: what is said of one is what the plan holds
	FirstOrdinal        int     `json:"firstOrdinal,omitempty"`  // spec.ordinals.start of a StatefulSet: its pods' numbers begin there
	FixedShard          string  `json:"fixedShard,omitempty"`    // the env that Argo CD takes for a pod's replica before its name's number, where that is a number
	ShardUnknown        bool    `json:"shardUnknown,omitempty"`  // that env may have a value that nobody here can read
	ShardSource         string  `json:"shardSource,omitempty"`   // the key of a ConfigMap of envFrom that has it; pods may have started without
	RestartedAt         string  `json:"restartedAt,omitempty"`   // the pod template's annotation kubectl.kubernetes.io/restartedAt

	ApplicationNamespaces *string `json:"applicationNamespaces,omitempty"`

	Resources *plan.Resources `json:"resources,omitempty"` // what the pod template gives the container; nil for nothing

	Beside string `json:"beside,omitempty"` // other workloads that could be taken for it, by kind and name
}

// Renumbered is why the pods' replicas are not those from 0 that their clusters are divided over, and the mend; empty:
// they are. Planned is how many replicas the plan in force has, 0 without one.
func (w Workload) Renumbered(planned int) string {
	switch {
	case w.onlyReplica0(planned):
		return ""
	case w.ShardSource != "":
		return fmt.Sprintf("each pod of %s %q that starts from now on takes itself for replica %s, and none for another, "+
			"whose clusters nobody reconciles then: "+
			"envFrom of the pod template gives them all the env %s; take the key %s out", w.Kind, w.Name, w.FixedShard,
			EnvShard, w.ShardSource)
	case w.FixedShard != "":
		return fmt.Sprintf("the pod template of %s %q has the env %s %q: each of its pods takes itself for that replica, and none for another, whose clusters nobody reconciles; take it out",
			w.Kind, w.Name, EnvShard, w.FixedShard)
	case w.FirstOrdinal > 0:
		return fmt.Sprintf("spec.ordinals.start of %s %q is %d: its pods' numbers begin there, and nobody reconciles the clusters of the replicas below; set it to 0",
			w.Kind, w.Name, w.FirstOrdinal)
	}
	return ""
}

// OnlyReplica0 is why no replica may be added, and the mend, where the pods' number is right for one replica alone;
// empty: it is right.
func (w Workload) OnlyReplica0(planned int) string {
	if !w.onlyReplica0(planned) {
		return ""
	}
	return fmt.Sprintf("the pod template of %s %q has the env %s %q, which is right for one replica: "+
		"each pod of another one would take itself for that replica, too; take it out", w.Kind, w.Name, EnvShard,
		w.FixedShard)
}

// onlyReplica0 goes by the plan, too: a workload that somebody scaled to 1 gets the plan's replicas back, and one that
// is stopped comes back.
func (w Workload) onlyReplica0(planned int) bool {
	n, err := strconv.Atoi(w.FixedShard)
	return err == nil && n == 0 && max(w.Replicas, planned) == 1
}

// Unnumbered is what cannot be told of the pods' numbers, and the mend; empty: all can.
func (w Workload) Unnumbered() string {
	if !w.ShardUnknown {
		return ""
	}
	return fmt.Sprintf("the pod template of %s %q may have the env %s by a Secret or another variable, which ballast does not read: with one number for all pods, "+
		"each takes itself for that replica, and nobody reconciles the others' clusters; where the pods' names are to number them, write the env with the value \"-1\" into the template",
		w.Kind, w.Name, EnvShard)
}

// MostReplicas is as many replicas as a workload is believed to ask for, twice what maxReplicas may be. Whoever may
// scale it may write two thousand million, for which no planner has the memory.
const MostReplicas = 2000

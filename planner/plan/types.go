// Package plan is the contract between the planner and the webhook: the shapes that phases hand to each other, the plan
// with its bounds and its names, and the one lookup that both sides ask for a cluster's replica. How it is written
// stands in codec, what people write beside it in people. Of ballast it imports printable alone.
package plan

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// InClusterServer is the server URL under which Argo CD knows the cluster it runs in.
const InClusterServer = "https://kubernetes.default.svc"

// NoReplica stands for a replica where there is none: no replica has the cluster, or none was chosen for it.
const NoReplica = -1

// Shard is a destination cluster. ID is the name of its Secret, Name the cluster's own name (data.name).
type Shard struct {
	UID       string `json:"uid,omitempty"`
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Server    string `json:"server"`
}

// CompareShards is the total order in which clusters are listed everywhere: by Secret name, then namespace and UID.
func CompareShards(a, b Shard) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.UID, b.UID))
}

// MetricValue is what one metric said of one cluster.
type MetricValue struct {
	ID           string    `json:"id"`
	Shard        Shard     `json:"shard"`
	Query        string    `json:"query"`
	Value        float64   `json:"-"`
	DisplayValue string    `json:"displayValue"`
	SampledAt    time.Time `json:"sampledAt,omitzero"`
}

// LoadIndex is a cluster with its load.
type LoadIndex struct {
	Shard        Shard  `json:"shard"`
	Value        Load   `json:"value"`
	DisplayValue string `json:"displayValue"`
}

// Replica is an application-controller replica with the clusters that a partition gives it.
type Replica struct {
	ID               int         `json:"id"`
	LoadIndexes      []LoadIndex `json:"loadIndexes"`
	TotalLoad        Load        `json:"totalLoad"`
	TotalLoadDisplay string      `json:"totalLoadDisplay"`
}

// Mode says how far ballast goes.
type Mode string

// The modes. An absent or unknown mode is Observe.
const (
	Observe Mode = "Observe" // plans, and writes the plan only
	Hold    Mode = "Hold"    // stamps and keeps what is; moves and scales nothing
	Enforce Mode = "Enforce" // everything
)

// Enforced reports whether the webhook and the planner make writes agree with the plan.
func (m Mode) Enforced() bool { return m == Hold || m == Enforce }

// Workload kinds that Argo CD's application-controller runs as.
const (
	StatefulSet = "StatefulSet"
	Deployment  = "Deployment"
)

// Target is the application-controller's workload and the container in it.
type Target struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Container string `json:"container"`
}

// SameWorkload reports whether it is the same object, whatever its container is called.
func (t Target) SameWorkload(other Target) bool {
	return t.Kind == other.Kind && t.Namespace == other.Namespace && t.Name == other.Name
}

// Row says which replica owns a cluster. Load is the load at that decision, empty while nothing is known of it; Server
// a short hash of the server URL, by which a re-created or renamed Secret finds its replica again.
type Row struct {
	Replica int    `json:"replica"`
	Load    string `json:"load,omitempty"`
	Server  string `json:"srv,omitempty"`
	Pinned  bool   `json:"pinned,omitempty"`
}

// Stage is a step of a rollout that the webhook enforces as it stands.
type Stage string

// The stages of the rollout modes.
const (
	Assigning  Stage = "Assigning"  // every Secret gets its replica
	Scaling    Stage = "Scaling"    // replicas or env become what the rollout wants
	Restarting Stage = "Restarting" // every pod restarts, where that was asked for
	Reverting  Stage = "Reverting"  // the way back of a stage that passed its deadline: of a wave, or of counts (TakesWaveBack)
	Draining   Stage = "Draining"   // x0y: no replica runs
	Restoring  Stage = "Restoring"  // x0y: the replicas come back
	Moving     Stage = "Moving"     // live: a wave of clusters changes its replica
	Verifying  Stage = "Verifying"  // live: every cluster has its one owner, before replicas go
	Shrinking  Stage = "Shrinking"  // live: the replicas that were left go
)

// The rollout modes.
const (
	ModeLive    = "live"    // replicas come and go without a restart; clusters move in waves
	ModeX0Y     = "x0y"     // every replica stops while clusters change owners; pins wait for its end
	ModeDefault = "default" // scale and assign in the order that is safe, and restart if asked
)

// Count is a number of replicas and the env that goes with it.
type Count struct {
	Replicas           int `json:"replicas"`
	ControllerReplicas int `json:"controllerReplicas"`
}

// Into says in words which change to another count is meant.
func (c Count) Into(to Count) string {
	return fmt.Sprintf("%s, %s %d to %d", FromTo(c.Replicas, to.Replicas), EnvReplicas, c.ControllerReplicas,
		to.ControllerReplicas)
}

// FromTo is what Into begins with.
func FromTo(from, to int) string { return fmt.Sprintf("%d to %d replicas", from, to) }

// Rollout is a change that is under way; what the plan's own fields say is what holds now, Rollout says where it goes.
// Since is written with the stage and is the only clock of its deadline. Moves holds the present wave only: where its
// clusters go, or went; Was where they came from, once their rows are the new ones. Waves is how many waves were
// expected when the present one began.
type Rollout struct {
	Mode               string         `json:"mode"`
	Stage              Stage          `json:"stage"`
	Since              time.Time      `json:"since"`
	From               Count          `json:"from"`
	Replicas           int            `json:"replicas"`
	ControllerReplicas int            `json:"controllerReplicas"`
	Wave               int            `json:"wave,omitempty"`
	Waves              int            `json:"waves,omitempty"`
	Moves              map[string]int `json:"moves,omitempty"`
	Was                map[string]int `json:"was,omitempty"`
}

// ClusterGroup is clusters that stay on one replica, or of which no two share one: those whose Secret the selector
// takes. At are the replicas that have one, ascending. The webhook asks this of a new cluster; a webhook that does not
// know it places the cluster as if there were no groups.
type ClusterGroup struct {
	Together string `json:"together,omitempty"` // the selector of those that stay together
	Apart    string `json:"apart,omitempty"`    // or of those that are kept apart
	At       []int  `json:"at,omitempty"`
}

// Selector is the one that the group has.
func (g ClusterGroup) Selector() string { return cmp.Or(g.Apart, g.Together) }

// Plan is the document under data.plan. Replicas is what spec.replicas is held at, unless FreeReplicas leaves it to
// people or an autoscaler; ControllerReplicas is what the env is held at, 0 = the workload had none and it is not held.
// Unmanaged says that the workload carries the annotation by which it opted out: neither of them is held, nor its
// resources. The plan has to say so since a write to the workload's scale does not show its annotations. Cordoned are
// the replicas that people want empty, ascending, and Groups are partition.groups by name: both decide where a new
// cluster goes. So do MaxClusters, how many clusters a replica may have (0 = any number), and Full, ascending: the
// replicas that have as many, or no memory or capacity for one more. While another replica may have it a new cluster
// goes there; a webhook that does not know the two goes by neither.
// NextControllerReplicas is what the env becomes with the next change of the pod template that anybody makes, and what
// it is held at from then on; 0 = nothing waits for one. A webhook that does not know it leaves the env as it is.
// Resources are what the pod template is held at, Sizes what running pods are; a plan has at most one of them.
type Plan struct {
	Revision           int64
	Mode               Mode
	Target             Target
	PlannerUser        string
	Selector           string // of the Secrets that are clusters, where it is not Argo CD's label alone
	Replicas           int
	FreeReplicas       bool
	Unmanaged          bool
	ControllerReplicas int
	MaxReplicas        int
	MaxClusters        int

	NextControllerReplicas int

	Resources  *Resources
	References map[string]string
	Cordoned   []int
	Full       []int
	Sizes      *Sizes
	Groups     map[string]ClusterGroup
	Clusters   map[string]Row
	Rollout    *Rollout
}

// SizeOf is what that replica's container is held at in its pods; false: nothing is. Its maps are the plan's own.
func (p Plan) SizeOf(replica int) (Resources, bool) {
	if p.Sizes == nil {
		return Resources{}, false
	}
	size, own := p.Sizes.Replicas[replica]
	if !own || p.Target.Kind == Deployment {
		size = p.Sizes.Default
	}
	return size, !size.Empty()
}

// FormatValue prints a metric's value as a decimal string, without an exponent.
func FormatValue(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

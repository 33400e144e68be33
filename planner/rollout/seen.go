package rollout

import (
	"strconv"
	"time"

	"ballast/planner/plan"
)

// Seen is what stands: the workload (nil: not found) and every cluster Secret.
type Seen struct {
	Workload *Workload `json:"workload,omitempty"`
	Secrets  []Stamp   `json:"secrets,omitempty"`
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
}

// Stamp is a cluster Secret's data.shard. Valid says that Argo CD reads it as a number, Shard is that number; Absent says
// that there is no such key.
type Stamp struct {
	Name      string `json:"name"`
	Shard     int    `json:"shard,omitempty"`
	Valid     bool   `json:"valid,omitempty"`
	Absent    bool   `json:"absent,omitempty"`
	Immutable bool   `json:"immutable,omitempty"`
	Unmanaged bool   `json:"unmanaged,omitempty"`
	Server    string `json:"server,omitempty"`
}

// carries reports whether the Secret names that replica.
func (s Stamp) carries(replica int) bool { return s.Valid && s.Shard == replica }

// managed reports whether ballast may write the Secret.
func (s Stamp) managed() bool { return !s.Immutable && !s.Unmanaged }

// display is the shard as people may see it: what is not a number of at most six digits is never shown, since people
// paste tokens into the wrong field.
func (s Stamp) display() string {
	switch {
	case s.Absent:
		return "-"
	case !s.Valid || s.Shard <= -plan.ReplicaLimit || s.Shard >= plan.ReplicaLimit:
		return "invalid"
	}
	return strconv.Itoa(s.Shard)
}

// reach is the number of replicas that own the shard of their own number. Pods whose env is absent or at most 1 own
// every shard, their own included; a Deployment's pods take spec.replicas for the env.
func reach(kind string, c plan.Count) int {
	if kind == plan.Deployment || c.ControllerReplicas <= 1 {
		return c.Replicas
	}
	return min(c.Replicas, c.ControllerReplicas)
}

// count is the workload's spec as a count; an absent env is 0.
func (w *Workload) count() plan.Count {
	if w == nil {
		return plan.Count{}
	}
	c := plan.Count{Replicas: w.Replicas}
	if w.ControllerReplicas != nil {
		c.ControllerReplicas = *w.ControllerReplicas
	}
	return c
}

// settled reports whether the workload is as the plan holds it, every pod at the newest template and ready.
func (w *Workload) settled(p plan.Plan) bool {
	if w == nil || !w.ObservedCurrent || w.Replicas != p.Replicas {
		return false
	}
	if enforcesEnv(p) && (w.ControllerReplicas == nil || *w.ControllerReplicas != p.ControllerReplicas) {
		return false
	}
	return w.Ready == p.Replicas && w.Updated == p.Replicas && w.Current == p.Replicas
}

// restartedSince reports whether the pod template was marked for a restart at or after a time, by whomever.
func (w *Workload) restartedSince(since time.Time) bool {
	if w == nil {
		return false
	}
	at, err := time.Parse(time.RFC3339, w.RestartedAt)
	return err == nil && !at.Before(since.Truncate(time.Second))
}

// enforcesEnv reports whether the plan says anything of the env: 0 stands for the absent env of a fleet as found.
func enforcesEnv(p plan.Plan) bool {
	return p.Target.Kind != plan.Deployment && p.ControllerReplicas > 0
}

// Package instant is an Argo CD that does at once what it is told: steps are done as soon as they are asked for, and
// each replica has what the Secrets give it. The replay runs on it, and tests that ask what is decided, not how it
// comes about.
package instant

import (
	"strconv"
	"time"

	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/plan"
)

// Do does steps: pods that are asked for are ready, and those that are not wanted are gone.
func Do(steps []diff.Step, w *discover.Workload, secrets []discover.Secret) {
	var at map[string]int
	for _, step := range steps {
		switch s := step.(type) {
		case diff.PatchShard:
			if at == nil {
				at = byName(secrets)
			}
			secrets[at[s.Secret]].Shard = discover.ShardValue{State: discover.ShardValid, N: s.Shard}
		case diff.PatchWorkload:
			patch(w, s)
		}
	}
}

func byName(secrets []discover.Secret) map[string]int {
	at := make(map[string]int, len(secrets))
	for i, s := range secrets {
		at[s.Name] = i
	}
	return at
}

func patch(w *discover.Workload, s diff.PatchWorkload) {
	if s.Replicas != nil {
		w.Replicas, w.ReadyReplicas, w.UpdatedReplicas, w.CurrentReplicas = *s.Replicas, *s.Replicas, *s.Replicas,
			*s.Replicas
	}
	if s.ControllerReplicas != nil {
		env := strconv.Itoa(*s.ControllerReplicas)
		w.EnvReplicas = &env
	}
	if s.RestartedAt != "" {
		w.RestartedAt = s.RestartedAt
	}
	if len(s.Resources.Requests)+len(s.Resources.Limits) > 0 {
		sized := s.Resources
		if w.Resources != nil {
			sized = w.Resources.With(sized)
		}
		w.Resources = &sized
	}
}

// Pods are the workload's: all are ready and answer.
func Pods(w discover.Workload) []observed.Pod {
	pods := make([]observed.Pod, w.Replicas)
	for r := range pods {
		pods[r] = observed.Pod{Replica: r, Name: w.Name + "-" + strconv.Itoa(r), Ready: true, Claimed: true,
			Answered: true}
	}
	return pods
}

// Report is what those pods say: owners has the replica of each cluster of the fleet, by its index. Every cluster has
// an Application.
func Report(pods []observed.Pod, fleet discover.Fleet, owners []int, now time.Time) ownership.Observation {
	o := ownership.Observation{Pods: make([]ownership.PodObservation, len(pods)), Asked: true,
		Clusters: make(map[string]ownership.ClusterObservation, len(fleet.Clusters))}
	has := make([][]int, len(pods))
	for r, p := range pods {
		o.Pods[r] = ownership.PodObservation{Name: p.Name, Replica: p.Replica, Ready: true, Running: true,
			Answered: true, SampledAt: now}
		has[r] = []int{r}
	}
	for i, c := range fleet.Clusters {
		seen := ownership.ClusterObservation{Server: c.Shard.Server, Apps: 1}
		if r := owners[i]; r != plan.NoReplica && r < len(pods) {
			seen.Owners, seen.Live, seen.Cached, seen.Holders = has[r], has[r], has[r], has[r]
		}
		o.Clusters[c.Shard.ID] = seen
	}
	return o
}

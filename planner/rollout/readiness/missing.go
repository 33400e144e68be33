// Package readiness says what a fleet lacks for a rollout in mode live, and what that holds the env at.
package readiness

import (
	"fmt"
	"strings"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// consistentHashing is the algorithm under which an in-cluster without a Secret has a shard that changes with the env;
// the others give it shard 0.
const consistentHashing = "consistent-hashing"

// Missing lists what mode live lacks, a sentence each with its mend; empty = a live rollout may begin. It rests on
// shards that mean the same replica to every pod, whatever env that pod read: an algorithm answers otherwise as soon as
// one does. While the env stays, what only people may write has the owner that it has, whatever replicas come and go:
// EnvLacks has that.
func Missing(p plan.Plan, seen observed.State) []string {
	if seen.Workload == nil {
		return []string{fmt.Sprintf("%s %q was not found: set target", p.Target.Kind, p.Target.Name)}
	}
	stays := envStays(p, seen.Workload)
	missing := lacking(p, seen, func(s observed.Secret) bool { return s.Managed() || !stays })
	if !stays {
		missing = append(missing, lacksInCluster(seen)...)
	}
	return missing
}

// lacksInCluster is what is missing of an in-cluster whose shard changes with the env.
func lacksInCluster(seen observed.State) []string {
	if !seen.InCluster.Implicit || seen.InCluster.Algorithm != consistentHashing {
		return nil
	}
	return []string{fmt.Sprintf("the in-cluster %s has no Secret, and under %s its shard changes with %s: "+
		"create a cluster Secret for it, or set the algorithm to legacy or round-robin", plan.InClusterServer,
		consistentHashing, plan.EnvReplicas)}
}

// EnvLacks lists what nothing waits for but another env: the Secrets that people have to mend before one.
func EnvLacks(p plan.Plan, seen observed.State) []string {
	if !envStays(p, seen.Workload) {
		return nil // it is Missing
	}
	return append(lacking(p, seen, func(s observed.Secret) bool { return !s.Managed() }), lacksInCluster(seen)...)
}

// envStays reports whether the env is the one that mode live holds for good, in the plan and in the workload. A
// Deployment's pods read their number of replicas.
func envStays(p plan.Plan, w *observed.Workload) bool {
	held := p.Target.Kind != plan.Deployment && p.ControllerReplicas == LiveEnv(p, p.Replicas)
	return held && w.Count().ControllerReplicas == p.ControllerReplicas
}

// lacking is what is missing of those Secrets.
func lacking(p plan.Plan, seen observed.State, of func(observed.Secret) bool) (missing []string) {
	after := plan.Count{Replicas: p.Replicas, ControllerReplicas: LiveEnv(p, p.Replicas)} // every live rollout begins with that env
	limit := after.Reach(p.Target.Kind)
	for _, s := range seen.Sorted() {
		if why := lacks(s, limit); why != "" && !s.Skip && of(s) {
			missing = append(missing, why)
		}
	}
	return missing
}

// OwnersUnknown says why nobody could tell whether a live rollout does well, with its mend; empty = every pod answers.
// Only what nobody works for may move meanwhile.
func OwnersUnknown(seen observed.State) string {
	if seen.OwnersKnown {
		return ""
	}
	var silent []string
	for _, p := range seen.Pods {
		if p.Ready && !p.Answered {
			silent = append(silent, p.Name)
		}
	}
	if len(silent) == 0 {
		return "no application-controller is ready and says which clusters it owns: look at its pods"
	}
	return fmt.Sprintf("nothing is known of what %s owns: let ballast's planner reach the metrics of the application-controller's pods (port 8082; a NetworkPolicy may be in the way), "+
		"or have Prometheus scrape them", strings.Join(silent, ", "))
}

// lacks is what is missing of one Secret. A negative shard of a Secret that is not ballast's is left: it means nobody
// to every pod.
func lacks(s observed.Secret, limit int) string {
	var what string
	switch { // it is asked of every Secret in every cycle: words are made where one lacks something
	case s.Valid && s.Shard >= 0 && s.Shard < limit, s.Valid && s.Shard < 0 && !s.Managed():
		return ""
	case s.Absent:
		what = "carries no shard"
	case !s.Valid:
		what = "carries a shard that is no number"
	default:
		what = fmt.Sprintf("carries shard %s, and there are %d replicas", s.Display(), limit)
	}
	switch {
	case s.Unmanaged:
		return fmt.Sprintf("unmanaged Secret %q %s: give it one from 0 to %d, or take the annotation %s off", s.Name,
			what, limit-1, plan.AnnotationUnmanaged)
	case s.Immutable:
		return fmt.Sprintf("immutable Secret %q %s: delete it and create it again with one from 0 to %d, or without immutable", s.Name, what, limit-1)
	}
	return fmt.Sprintf("Secret %q %s: ballast writes it in mode Hold or Enforce; look for the writer that takes it away if this stays", s.Name, what)
}

// LiveEnv is what mode live holds the env at: with every Secret explicit, an env at the largest number of replicas that
// may ever be never changes again, and so scaling restarts nothing. A Deployment has none.
func LiveEnv(now plan.Plan, replicas int) int {
	if now.Target.Kind == plan.Deployment {
		return now.ControllerReplicas
	}
	return max(now.MaxReplicas, now.ControllerReplicas, replicas)
}

package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/cycle/problem"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// SecretRef is the cluster Secret that an event is on, in the plan's namespace.
type SecretRef struct{ Name, UID string }

const (
	// mostOnSecrets is how many events cluster Secrets get within secretsSpan: a rollout, or a webhook that comes back, writes thousands.
	mostOnSecrets = 20
	secretsSpan   = 10 * time.Minute
	// toldAgain is after how long the same is news of a Secret once more.
	toldAgain = 6 * time.Hour
	// mostKnown bounds what is remembered of them, whatever Secrets come and go: some 4 MB. What is beyond has it begin anew, so that some
	// is told or counted once more.
	mostKnown = 20_000
)

// SecretNews bounds the events on cluster Secrets: none is told or counted twice, and what is too much for one moment is counted
// on the plan.
type SecretNews struct {
	mu    sync.Mutex
	known map[string]time.Time // told or counted
	told  []time.Time          // within secretsSpan
	rest  map[string]int       // by reason, that were too many
	since time.Time            // when rest was told last
}

// Of are the events that are told now of those.
func (n *SecretNews) Of(all []Event, now time.Time) (events []Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.known, func(_ string, at time.Time) bool { return now.Sub(at) >= toldAgain })
	n.told = slices.DeleteFunc(n.told, func(at time.Time) bool { return now.Sub(at) >= secretsSpan })
	if n.known == nil {
		n.known, n.rest = map[string]time.Time{}, map[string]int{}
	}
	for _, e := range all {
		key := newsOf(e)
		if _, known := n.known[key]; known {
			continue
		}
		if len(n.known) >= mostKnown {
			clear(n.known)
		}
		n.known[key] = now
		if len(n.told) >= mostOnSecrets {
			n.rest[e.Reason]++
			continue
		}
		n.told, events = append(n.told, now), append(events, e)
	}
	if len(n.rest) == 0 || now.Sub(n.since) < secretsSpan {
		return events
	}
	for _, reason := range slices.Sorted(maps.Keys(n.rest)) {
		events = append(events, Event{Type: corev1.EventTypeNormal, Reason: "MoreSecrets", Message: fmt.Sprintf(
			"and %d more of %s, which have no event of their own; the log has each write, `ballast status` what differs", n.rest[reason], reason)})
	}
	n.rest, n.since = map[string]int{}, now
	return events
}

// newsOf tells an event from those that say the same. A message has numbers and texts that change from cycle to cycle, so that
// it counts alone where it names the replica that a cluster goes to.
func newsOf(e Event) string {
	key := e.Secret.Name + "/" + e.Reason
	if e.Reason == "ClusterMoved" || e.Reason == "ClusterPinned" {
		key += "/" + e.Message
	}
	return key
}

// ShardWritten is told on a cluster Secret whose data.shard the planner wrote.
func ShardWritten(s diff.PatchShard, uid string) Event {
	on := SecretRef{s.Secret, uid}
	switch s.Why {
	case diff.Drifted, diff.Broken:
		return Event{Type: corev1.EventTypeWarning, Reason: "ClusterPutBack", Secret: on, Message: fmt.Sprintf("data.shard is %d again: "+
			"it was %s, which the plan does not have; a pin in data.pins or the annotation %s moves the cluster", s.Shard, s.Was, plan.AnnotationPin)}
	case diff.Unstamped:
		return Event{Type: corev1.EventTypeNormal, Reason: "ClusterAssigned", Secret: on,
			Message: fmt.Sprintf("data.shard is %d from now on: the Secret had none", s.Shard)}
	case diff.Pinned:
		return Event{Type: corev1.EventTypeNormal, Reason: "ClusterPinned", Secret: on,
			Message: fmt.Sprintf("data.shard is %d instead of %s: a person pinned the cluster there", s.Shard, s.Was)}
	}
	return Event{Type: corev1.EventTypeNormal, Reason: "ClusterMoved", Secret: on,
		Message: fmt.Sprintf("data.shard is %d instead of %s: the plan moves the cluster", s.Shard, s.Was)}
}

// ShardRefused is told on a cluster Secret whose data.shard the API server does not let the planner write.
func ShardRefused(s diff.PatchShard, uid, why string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "ClusterRefused", Secret: SecretRef{s.Secret, uid},
		Message: fmt.Sprintf("data.shard stays %s instead of %d: the API server refuses the write: %s", s.Was, s.Shard, why)}
}

// OnSecrets are the problems that concern one cluster's owner, told on its Secret, too.
func OnSecrets(problems []problem.Problem, fleet discover.Fleet) (events []Event) {
	var uids map[string]string
	for _, p := range problems {
		if p.Kind != "Orphaned" && p.Kind != "Doubled" {
			continue
		}
		if uids == nil {
			uids = make(map[string]string, len(fleet.Clusters))
			for _, c := range fleet.Clusters {
				uids[c.Shard.ID] = c.Shard.UID
			}
		}
		if uid := uids[p.Subject]; uid != "" { // a cluster without a Secret has none
			events = append(events, Event{Type: corev1.EventTypeWarning, Reason: p.Kind, Message: p.Message, Secret: SecretRef{p.Subject, uid}})
		}
	}
	return events
}

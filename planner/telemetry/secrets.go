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

const (
	// mostOnSecrets is how many events of one reason cluster Secrets get within secretsSpan: a rollout, or a webhook
	// that comes back, writes thousands. Each reason has room of its own, so that nobody who brings one about takes it
	// from what others must hear of.
	mostOnSecrets = 20
	secretsSpan   = 10 * time.Minute
	// mostOnOne is how many of those one Secret gets, and mostByPeople how many there are of a reason which whoever
	// writes Secrets can have told at will.
	mostOnOne, mostByPeople = 4, mostOnSecrets / 2
	// toldAgain is after how long the same is news of a Secret once more while it lasts, and endsAfter after how long
	// without it that is another time of it.
	toldAgain, endsAfter = 6 * time.Hour, 10 * time.Minute
	// mostKnown bounds what is remembered of them, whatever Secrets come and go: some 4 MB. What is beyond has it begin
	// anew, so that some is told or counted once more.
	mostKnown = 20_000
)

// SecretNews bounds the events on cluster Secrets: none is told or counted twice, and what is too much for one moment
// is counted on the plan.
type SecretNews struct {
	mu    sync.Mutex
	known map[string]knownNews // told or counted
	told  []toldNews           // within secretsSpan
	rest  map[string]int       // by reason, that were too many
	since time.Time            // when rest was told last
}

type knownNews struct {
	since, last time.Time
	waits       bool // counted, but there was no room to tell it
}

type toldNews struct {
	at     time.Time
	secret string // its name: one that is made anew has no more room by that
	reason string
}

// Of are the events that are told now of those, the first before the others. What has no room is counted, and told once
// there is room where it lasts.
func (n *SecretNews) Of(all []Event, now time.Time) (events []Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.known, func(_ string, k knownNews) bool { return now.Sub(k.since) >= toldAgain || now.Sub(k.last) >= endsAfter })
	n.told = slices.DeleteFunc(n.told, func(e toldNews) bool { return now.Sub(e.at) >= secretsSpan })
	if n.known == nil {
		n.known, n.rest = map[string]knownNews{}, map[string]int{}
	}
	for _, e := range all {
		key := newsOf(e)
		k, known := n.known[key]
		if !known {
			if len(n.known) >= mostKnown {
				clear(n.known)
			}
			k.since = now
		}
		tells := (k.waits || !known) && n.hasRoom(e)
		n.known[key] = knownNews{k.since, now, !tells && (k.waits || !known)}
		if !tells {
			if !known {
				n.rest[e.Reason]++
			}
			continue
		}
		n.told, events = append(n.told, toldNews{now, e.Secret.Name, e.Reason}), append(events, e)
	}
	if len(n.rest) == 0 || now.Sub(n.since) < secretsSpan {
		return events
	}
	for _, reason := range slices.Sorted(maps.Keys(n.rest)) {
		events = append(events, Event{Type: corev1.EventTypeNormal, Reason: "MoreSecrets", Message: fmt.Sprintf(
			"and %d more of %s, which have no event of their own yet; the log has each write, `ballast status` what differs", n.rest[reason], reason)})
	}
	n.rest, n.since = map[string]int{}, now
	return events
}

// hasRoom reports whether the last secretsSpan has room for one more of that reason, and of that Secret.
func (n *SecretNews) hasRoom(e Event) bool {
	ofReason, onOne := 0, 0
	for _, told := range n.told {
		if told.reason != e.Reason {
			continue
		}
		ofReason++
		if told.secret == e.Secret.Name {
			onOne++
		}
	}
	return ofReason < roomOf(e.Reason) && onOne < mostOnOne
}

// roomOf is how many of a reason are told within secretsSpan.
func roomOf(reason string) int {
	switch reason {
	// Whoever writes a Secret has these told as often as they write it.
	case "ClusterPinned", "ClusterPutBack", "ClusterAssigned", "ClusterRefused":
		return mostByPeople
	}
	return mostOnSecrets
}

// newsOf tells an event from those that say the same. A message has numbers and texts that change from cycle to cycle,
// so that it counts alone where it names the replica that a cluster goes to. A Secret that is made anew has another
// UID.
func newsOf(e Event) string {
	key := e.Secret.Name + "/" + e.Secret.UID + "/" + e.Reason
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
		return Event{Type: corev1.EventTypeWarning, Reason: "ClusterPutBack", Secret: on,
			Message: fmt.Sprintf("data.shard is %d again: "+
				"it was %s, which the plan does not have; a pin in data.pins or the annotation %s moves the cluster",
				s.Shard, s.Was, plan.AnnotationPin)}
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
		Message: fmt.Sprintf("data.shard stays %s instead of %d: the API server refuses the write: %s", s.Was, s.Shard,
			why)}
}

// OldestFirst are the problems by the age of the cluster Secrets that they are about, and before them those about
// anything else: where there is room for some of a kind alone, nobody takes it by Secrets that they make.
func OldestFirst(problems []problem.Problem, fleet discover.Fleet) []problem.Problem {
	if len(problems) < 2 {
		return problems
	}
	made := fleet.Made()
	return slices.SortedStableFunc(slices.Values(problems), func(a, b problem.Problem) int { return made[a.Subject].Compare(made[b.Subject]) })
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
			events = append(events, Event{Type: corev1.EventTypeWarning, Reason: p.Kind, Message: p.Message,
				Secret: SecretRef{p.Subject, uid}})
		}
	}
	return events
}

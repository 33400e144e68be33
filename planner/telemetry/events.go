package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/apply"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/planner/rollout"
)

// Event is something that people should find with kubectl describe: on the plan ConfigMap, and where it concerns the
// workload, there too; or on one cluster's Secret.
type Event struct {
	Type     string // corev1.EventTypeNormal or EventTypeWarning
	Reason   string
	Message  string
	Workload bool
	Secret   SecretRef // on that alone; without a name: on none
}

// SecretRef is the cluster Secret that an event is on, in the plan's namespace.
type SecretRef struct{ Name, UID string }

// PlanWritten says that a plan was written, and why.
func PlanWritten(p plan.Plan, reason string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: "PlanWritten",
		Message: fmt.Sprintf("revision %d: %s", p.Revision, reason), Workload: p.Rollout != nil}
}

// LeaderElected says who plans from here on.
func LeaderElected(identity string, p *plan.Plan) Event {
	if p == nil {
		return Event{Type: corev1.EventTypeNormal, Reason: "LeaderElected", Message: identity +
			" plans from here on; there is no plan yet"}
	}
	return Event{Type: corev1.EventTypeNormal, Reason: "LeaderElected",
		Message: fmt.Sprintf("%s plans from here on, from revision %d", identity, p.Revision)}
}

// RolloutTurned says that a rollout turned or ended; false: there is nothing to say.
func RolloutTurned(p rollout.Progress) (Event, bool) {
	switch p.Outcome {
	case rollout.TurnedBack, rollout.Reverted, rollout.GaveUp:
		return Event{Type: corev1.EventTypeWarning, Reason: "Rollout" + string(p.Outcome), Message: p.Why,
			Workload: true}, true
	case rollout.Finished:
		return Event{Type: corev1.EventTypeNormal, Reason: "RolloutFinished", Message: p.Why, Workload: true}, true
	}
	return Event{}, false
}

// KeyMissing is told of a key that cannot be read; known says that a leader goes on by the one that it has read before.
func KeyMissing(err error) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "KeyMissing",
		Message: "nothing is planned, since no plan can be told from a forged one: " + err.Error()}
}

// KeyReplaced is told of a key that the leader put in place of another.
func KeyReplaced() Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "KeyReplaced",
		Message: "the plan's key became another, or its Secret was made anew: there is a new key of this leader's now, whatever was in it, " +
			"and plan and history are signed anew (PlanForeign is told of the plan before); see who may write Secrets"}
}

// HistoryDropped says what of the history is left out.
func HistoryDropped(problems []string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "HistoryDropped",
		Message: fmt.Sprintf("%d parts of the history are not believed or cannot be read, and begin anew: %s",
			len(problems), problem.ClipList(problems))}
}

// HistoryFull says what the history has no room for.
func HistoryFull(plans []int64, parts []string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "HistoryFull",
		Message: fmt.Sprintf("the history has no room for all of it: %d earlier plans (nobody can go back to them) and %d parts of the memory are left out: %s; "+
			"see whether there are cluster Secrets that nobody needs, or with very long names", len(plans), len(parts),
			problem.ClipList(parts))}
}

// HistoryReplaced says that somebody else wrote the history.
func HistoryReplaced(name string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "HistoryReplaced",
		Message: fmt.Sprintf("somebody deleted ConfigMap %q or wrote to it, which only the planner does; "+
			"it is written anew", name)}
}

// HistoryRefused says that the API server refuses to have the history written, and what waits for that.
func HistoryRefused(name, why string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "HistoryRefused", Message: fmt.Sprintf(
		"ConfigMap %q cannot be written (%s): failovers go on, counted by this leader alone, and nothing else begins that moves clusters; "+
			"leave room for it in a ResourceQuota on ConfigMaps, or take away what else refuses it", name, why)}
}

// BroughtBackUnwritten says that a fleet that rollout.x0y stopped comes back though its plan cannot be written.
func BroughtBackUnwritten(planMap, why string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "BroughtBackUnwritten", Message: fmt.Sprintf(
		"ConfigMap %q cannot be written (%s) while rollout.x0y holds the replicas at 0: they are brought back without it; "+
			"leave room for it in a ResourceQuota on ConfigMaps, or take away what else refuses it", planMap, why)}
}

// WordsPutBack says that a plan ConfigMap that was deleted has people's words again.
func WordsPutBack(planMap string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "WordsPutBack",
		Message: fmt.Sprintf("somebody deleted ConfigMap %q; its pins, and what was frozen, cordoned, switched off or tripped, "+
			"stand in it again as they did: edit it to take them away", planMap)}
}

// HistoryStale says that a part of the history cannot be written.
func HistoryStale(stale error) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "HistoryStale",
		Message: "a part of the history cannot be written and stays as it was, which " +
			"the next leader goes by; please report it: " + stale.Error()}
}

// PanickedEvent says that a cycle panicked.
func PanickedEvent(err error) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "Panicked",
		Message: fmt.Sprintf("ballast met a fault of its own, %v; the plan in force stays enforced, and it is tried again. "+
			"Please report it with the stack, which the planner logs with --verbosity 1", err)}
}

// PlanFull says that the plan cannot be written.
func PlanFull(err error) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "PlanFull",
		Message: "the plan cannot be written, and the last one stays: " + err.Error()}
}

// BreakGlassSeen names the field manager that wrote the annotation, where it is known.
func BreakGlassSeen(manager string, at time.Time) Event {
	who := "somebody whose field manager is unknown"
	if manager != "" {
		who = fmt.Sprintf("field manager %q, at %s,", manager, at.Format(time.RFC3339))
	}
	return Event{Type: corev1.EventTypeWarning, Reason: "EnforcementOff", Workload: true,
		Message: fmt.Sprintf("%s wrote the annotation %s: \"off\": every write passes but one to data.plan, and what the API server's policies refuse, and ballast writes nothing of Argo CD's, once replicas that rollout.x0y stopped are back; "+
			"`ballast audit` names the user; remove it to enforce again", who, plan.AnnotationEnforcement)}
}

// Contested says who writes against the plan.
func Contested(c apply.Contested) Event {
	what, mend, manager := "the workload", "stop it", c.Manager
	if c.Secret != "" {
		what, mend = fmt.Sprintf("data.shard of Secret %q", c.Secret), "stop it, pin the cluster"
	}
	if c.Pod != "" {
		what = fmt.Sprintf("the size of pod %q", c.Pod)
	}
	if manager == "" {
		manager = "somebody whose field manager is unknown"
	}
	return Event{Type: corev1.EventTypeWarning, Reason: "Contested", Workload: c.Secret == "",
		Message: fmt.Sprintf("%s writes %s back again and again (%d times): %s, or annotate the object with %s: \"true\"", manager, what, c.Reverted, mend, plan.AnnotationUnmanaged)}
}

// SizeHeld says that pods are left at their size, and why.
func SizeHeld(words []string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "SizeHeld", Workload: true, Message: strings.Join(words, "; ")}
}

// SizeRefused says that the API server does not let a pod be given its size.
func SizeRefused(pod, why string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "SizeRefused", Workload: true,
		Message: fmt.Sprintf("pod %q cannot be given its size in place: %s; it gets it when it is made anew, unless that is refused as well", pod, why)}
}

// ConfigRefused says why a new configuration is not taken.
func ConfigRefused(err error) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: "ConfigRefused",
		Message: "the new configuration is refused and the last good one stays in force: " + err.Error()}
}

// maxNote is the longest note of an event, in bytes: the API server refuses more than 1,024.
const maxNote = 1000

// PrintableEvents is the gate of every event, the loop's and those beside it: a message has names and texts of
// clusters, Secrets, annotations, Leases and errors in it, and people read it in a terminal.
func PrintableEvents(emit func(discover.Workload, ...Event)) func(discover.Workload, ...Event) {
	return func(w discover.Workload, events ...Event) {
		told := make([]Event, len(events))
		for i, e := range events {
			e.Message = cutNote(printable.Text(strings.ReplaceAll(e.Message, "\n", "; "), maxNote))
			told[i] = e
		}
		emit(w, told...)
	}
}

// cutNote cuts a note between two characters.
func cutNote(s string) string {
	if len(s) <= maxNote {
		return s
	}
	cut := maxNote - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// News is what people were told of: problems become events when they appear, not at every cycle they last. A problem's
// message has numbers that change with every cycle, so that it is known by its kind and subject.
type News struct {
	known map[string]bool
}

// Of are the events of the problems that are new.
func (n *News) Of(problems []problem.Problem) []Event {
	const most = 20 // of one kind in one cycle, so that many of one do not hide another; the rest stands in `ballast status` and the metric
	now := make(map[string]bool, len(problems))
	told := map[string]int{}
	var events []Event
	for _, p := range problems {
		key := string(p.Phase) + "/" + p.Kind + "/" + p.Subject
		if !n.known[key] && !now[key] {
			if told[p.Kind]++; told[p.Kind] <= most {
				events = append(events, Event{Type: corev1.EventTypeWarning, Reason: p.Kind, Message: p.Message})
			}
		}
		now[key] = true
	}
	n.known = now
	for _, kind := range slices.Sorted(maps.Keys(told)) {
		if rest := told[kind] - most; rest > 0 {
			events = append(events, Event{Type: corev1.EventTypeWarning, Reason: "MoreProblems",
				Message: fmt.Sprintf("and %d more of %s; `ballast status` lists them", rest, kind)})
		}
	}
	return events
}

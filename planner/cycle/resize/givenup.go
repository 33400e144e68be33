package resize

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

const (
	// refusedAfter is for how long a size is refused to a pod, or no pod is made with it, before it is given up: quotas
	// have room again once other pods are gone, and a StatefulSet's controller tries again within seconds.
	refusedAfter = 5 * time.Minute
	// refusedFor is for how long a pod that runs is then not asked again.
	refusedFor = time.Hour
)

// refusesNewPods reports whether whoever refuses a size to a pod that runs refuses it to a new one, too, by package
// answer's words.
func refusesNewPods(words string) bool {
	return strings.Contains(words, " by a LimitRange") || strings.Contains(words, " by ResourceQuota ")
}

// refusals are the sizes that are given up, since a new pod would be refused with them. All else is decided as if they
// were in force: what is given up is left out of the plan at the end of a cycle (giveUp), and put back at the beginning
// of the next one (restored).
type refusals struct{ question.Question }

// restored is the question with what was given up in force. Where the plan has something else for the replica
// meanwhile, that holds.
func (q refusals) restored() question.Question {
	if q.InTemplate() { // which gives nothing up, and knows since when pods are missing
		return q.Question
	}
	if len(q.Memory.GivenUp) == 0 {
		q.Memory.GivenUp = nil
		return q.Question
	}
	sizes, all := q.sizes(q.Plan), map[int]memory.GivenUp{}
	for _, ordinal := range q.Ordinals() {
		g, known := q.Memory.GivenUp[ordinal]
		if stands, _ := q.Plan.SizeOf(ordinal); !known || !g.At.IsZero() && !stands.Same(g.Stays) {
			continue
		}
		if all[ordinal] = g; !g.At.IsZero() {
			sizes[ordinal] = quantity.Of(&g.Held)
		}
	}
	q.Plan.Sizes, q.Memory.GivenUp = quantity.Rows(q.Ordinals(), sizes), all
	return q.Question
}

func (q refusals) sizes(p plan.Plan) map[int]size.Resources {
	all := map[int]size.Resources{}
	for _, ordinal := range q.Ordinals() {
		if held, is := p.SizeOf(ordinal); is {
			all[ordinal] = quantity.Of(&held)
		}
	}
	return all
}

// giveUp leaves out of an answer what new pods are refused with, and says so.
func (q refusals) giveUp(a *Answer, found size.Resources) {
	if q.InTemplate() {
		q.tellMissing(a, found)
		return
	}
	decided := with(q.Question, *a)
	sizes, lacking := q.sizes(decided), q.podless()
	a.Memory.GivenUp = nil
	for _, ordinal := range q.Ordinals() {
		held, _ := decided.SizeOf(ordinal)
		g := q.next(ordinal, lacking[ordinal], held)
		g.Held = held
		untold := g.Since.IsZero() && g.Podless.IsZero()
		left := quantity.Over(found, sizes[ordinal])
		if untold || quantity.Same(left, found, size.CPU) && quantity.Same(left, found, size.Memory) { // the template's own size is what is left
			continue
		}
		if a.Memory.GivenUp == nil {
			a.Memory.GivenUp = map[int]memory.GivenUp{}
		}
		a.Memory.GivenUp[ordinal] = g
		if g.At.IsZero() {
			continue
		}
		sizes[ordinal] = quantity.Of(&g.Stays)
		q.tell(a, ordinal, g, quantity.Over(found, sizes[ordinal]))
	}
	if len(a.Memory.GivenUp) > 0 {
		a.Sizes = quantity.Rows(q.Ordinals(), sizes)
	}
}

// next is what is known of the refusals of one ordinal after this look. Lacking says that no pod is made for it, though
// one is due.
func (q refusals) next(ordinal int, lacking bool, held plan.Resources) memory.GivenUp {
	g, pod := q.Memory.GivenUp[ordinal], q.podOf(ordinal)
	switch {
	case q.Due == 0 && g.At.IsZero(): // nobody can tell
		return memory.GivenUp{}
	case q.Due == 0:
		return g
	case pod != nil && g.Bare && !lacking: // asked in place for what it had: who refuses that says so
		g = memory.GivenUp{}
	case !lacking && !g.Bare:
		g.Podless = time.Time{}
	case lacking && g.Podless.IsZero():
		g.Podless = q.Now
	case lacking && !g.Bare && q.Now.Sub(g.Podless) >= refusedAfter:
		g = memory.GivenUp{Podless: g.Podless, At: q.Now, Bare: true}
	}
	if pod == nil || q.One {
		return g
	}
	return q.whileItRuns(g, *pod, held)
}

// whileItRuns is what is known of the refusals of a pod that is there.
func (q refusals) whileItRuns(g memory.GivenUp, pod observed.Pod, held plan.Resources) memory.GivenUp {
	refused := false
	for _, u := range q.Unmet {
		its := u.Pod == pod.Name && u.State == diff.PodRefused
		refused = refused || its && refusesNewPods(u.Words)
	}
	switch {
	case !g.At.IsZero() && q.Now.Sub(g.At) < refusedFor:
		return g
	case !refused:
		return memory.GivenUp{}
	case g.Since.IsZero() || !g.At.IsZero():
		return memory.GivenUp{Since: q.Now}
	case q.Now.Sub(g.Since) >= refusedAfter:
		g.At, g.Stays = q.Now, askedOf(pod, held)
	}
	return g
}

// askedOf is what a pod asks for of the resources that it is held at: its spec says so, which nobody changes but by a
// resize.
func askedOf(pod observed.Pod, held plan.Resources) plan.Resources {
	asks, of := quantity.Of(&pod.Size.Asks.Controller), quantity.Of(&held)
	for _, list := range []struct{ asks, of map[string]resource.Quantity }{{asks.Requests, of.Requests}, {asks.Limits, of.Limits}} {
		maps.DeleteFunc(list.asks, func(name string, _ resource.Quantity) bool {
			_, is := list.of[name]
			return !is
		})
	}
	return quantity.Resources(asks)
}

// podOf is the pod of an ordinal, whatever becomes of it; nil: there is none.
func (q refusals) podOf(ordinal int) *observed.Pod {
	for i := range q.Pods {
		if q.Of(q.Pods[i].Replica) == ordinal {
			return &q.Pods[i]
		}
	}
	return nil
}

// podless are the ordinals that no pod is made for, though one is due and nothing else is known to keep it: of a
// StatefulSet, each lower replica is ready. Those above it are to come with their templates' sizes, too, or each waits
// for itself.
func (q refusals) podless() map[int]bool {
	if q.One {
		return map[int]bool{0: len(q.Pods) < q.Due}
	}
	for replica := range min(q.Due, q.Replicas) {
		pod := q.podOf(replica)
		switch {
		case pod == nil:
			return q.without(replica)
		case !pod.Ready:
			return nil
		}
	}
	return nil
}

// without are the replicas from one on that are due and have no pod.
func (q refusals) without(from int) map[int]bool {
	all := map[int]bool{}
	for replica := from; replica < min(q.Due, q.Replicas); replica++ {
		all[replica] = q.podOf(replica) == nil
	}
	return all
}

// tell says what is given up, and until when.
func (q refusals) tell(a *Answer, ordinal int, g memory.GivenUp, stands size.Resources) {
	until, named := g.At.Add(refusedFor), q.Named(ordinal)
	why := "a LimitRange or a ResourceQuota refuses it, to a pod that is made anew, too"
	said := fmt.Sprintf("a LimitRange or a ResourceQuota refuses %s size, to a pod that is made anew, too: "+
		"it stays as large as its pod asks for until %s; raise that, or write size.nodeCap", named,
		until.UTC().Format(time.RFC3339))
	if g.Bare {
		until, why = time.Time{}, "no pod was made with it"
		said = fmt.Sprintf("no pod was made with %s size for %s, and nothing else is known to keep it away: the next one comes with the pod "+
			"template's; `kubectl describe` of the workload says what refuses it: raise that LimitRange or ResourceQuota, or write size.nodeCap",
			named, refusedAfter)
	}
	told := problem.Problem{Phase: problem.PhaseSize, Subject: q.Subject(ordinal), Kind: "PodRefused", Message: said}
	a.Problems = append(a.Problems, told)
	if g.At.Equal(q.Now) {
		a.given = append(a.given, named)
	}
	held := quantity.Over(stands, quantity.Of(&g.Held))
	for _, name := range question.Sized() {
		from, to := stands.Requests[name], held.Requests[name]
		if from.Cmp(to) == 0 {
			from, to = stands.Limits[name], held.Limits[name]
		}
		if from.Cmp(to) == 0 {
			continue
		}
		direction := change.Up
		if to.Cmp(from) < 0 {
			direction = change.Down
		}
		a.Sizing.Blocked = append(a.Sizing.Blocked,
			Blocked{Replica: q.Shown(ordinal), Resource: name, Direction: direction,
				Reason: change.UpdatePolicy, From: quantity.Text(name, from),
				To: quantity.Text(name, quantity.Rounded(name, to)), Since: g.At, Until: until, Why: why})
	}
}

// tellMissing says where no pod is made with the size that the pod template is held at. Nothing is given up there: each
// other size in the template restarts all pods.
func (q refusals) tellMissing(a *Answer, found size.Resources) {
	replica, missing := q.missing()
	a.Memory.GivenUp = nil
	if a.Resources == nil || !missing {
		return
	}
	if held := quantity.Over(found, quantity.Of(a.Resources)); quantity.Same(held, found, size.CPU) && quantity.Same(held, found, size.Memory) {
		return
	}
	since := q.Memory.GivenUp[replica].Podless
	if since.IsZero() {
		since = q.Now
	}
	a.Memory.GivenUp = map[int]memory.GivenUp{replica: {Podless: since}}
	if q.Now.Sub(since) < refusedAfter {
		return
	}
	a.Problems = append(a.Problems, problem.Problem{Phase: problem.PhaseSize, Subject: q.Subject(0), Kind: "PodRefused",
		Message: fmt.Sprintf(
			"a pod is missing since %s, and nothing else is known to keep it away: the size that size.apply: template holds the pod template at may be refused; "+
				"`kubectl describe` of the workload says what refuses it: raise that LimitRange or ResourceQuota, or write size.nodeCap", since.UTC().Format(time.RFC3339))})
}

// missing is the first replica that is due and has no pod, though each lower one is ready; of a Deployment nobody knows
// which.
func (q refusals) missing() (replica int, is bool) {
	if q.Plan.Target.Kind == plan.Deployment {
		return 0, len(q.Pods) < q.Due
	}
	for replica := range min(q.Due, q.Replicas) {
		at := slices.IndexFunc(q.Pods, func(p observed.Pod) bool { return p.Replica == replica })
		switch {
		case at < 0:
			return replica, true
		case !q.Pods[at].Ready:
			return 0, false
		}
	}
	return 0, false
}

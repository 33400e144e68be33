package overview

import (
	"fmt"
	"io"
	"maps"
	"strings"

	"ballast/cmd/ballast/say"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// owns is how many clusters a replica has by its own account.
func owns(r status.Replica) string {
	if r.Owns == nil {
		return "says nothing"
	}
	return fmt.Sprintf("has %d", *r.Owns)
}

// sampled is how old the oldest value in use of its clusters is.
func (s *Overview) sampled(r status.Replica) string {
	if r.Sampled.IsZero() {
		return "-"
	}
	return "values " + say.Span(max(s.Now.Sub(r.Sampled), 0)) + " old"
}

// writeSizes says how large the replicas are, as they are asked for and as they are: those of which the same can be said together.
func (s *Overview) writeSizes(w io.Writer) {
	pods := map[int]PodStatus{}
	for _, p := range s.Pods {
		if p.Replica != plan.NoReplica && !p.Terminating {
			pods[p.Replica] = p
		}
	}
	wanted := map[int]plan.Resources{}
	for _, r := range s.Known {
		wanted[r.Replica] = r.Wanted
	}
	var said []string
	replicas := map[string][]int{}
	for _, r := range s.Replicas {
		words := s.sizeWords(r.ID, wanted[r.ID], pods)
		if words == "" {
			continue
		}
		if replicas[words] == nil {
			said = append(said, words)
		}
		replicas[words] = append(replicas[words], r.ID)
	}
	for _, words := range said {
		say.To(w, "Size     %s: %s\n", numbers(replicas[words]), say.OneLine(words))
	}
}

// sizeWords is empty where neither the plan nor a rule says how large a replica is.
func (s *Overview) sizeWords(replica int, want plan.Resources, pods map[int]PodStatus) string {
	held, holds := s.Plan.SizeOf(replica)
	if s.Plan.Resources != nil {
		held, holds = *s.Plan.Resources, true
	}
	wants := len(want.Requests)+len(want.Limits) > 0
	if !holds && !wants {
		return ""
	}
	words := []string{"the plan holds " + say.Size(held)}
	if wants && !want.Same(held) {
		words = append(words, "its rules want "+say.Size(want))
	}
	if p, runs := pods[replica]; runs && holds {
		words = append(words, p.describeSize(held))
	}
	return strings.Join(words, "; ")
}

// numbers lists replicas: "0, 3".
func numbers(of []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(of), " ", ", "), "[]")
}

// describeSize is what the pod has, as far as it is not what the plan holds.
func (p PodStatus) describeSize(held plan.Resources) string {
	said := "its pod has it"
	switch {
	case p.Resize != "":
		asks := "it"
		if !covers(p.Asked, held) {
			asks = say.Size(p.Asked)
		}
		said = fmt.Sprintf("its pod has %s, and asks for %s: %s", say.Size(named(p.Has, held)), asks, p.Resize)
		if p.Words != "" {
			said += " (" + p.Words + ")"
		}
	case !covers(p.Asked, held):
		said = "its pod asks for " + say.Size(p.Asked)
	case len(p.Has.Requests)+len(p.Has.Limits) == 0:
		said = "its pod asks for it, and its node has not said what it has"
	case !covers(p.Has, held):
		said = "its pod asks for it, and has " + say.Size(p.Has)
	}
	return said
}

// named is what there is of the resources that are held.
func named(has, held plan.Resources) plan.Resources {
	only := func(has, held map[string]string) map[string]string {
		out := maps.Clone(has)
		maps.DeleteFunc(out, func(name, _ string) bool { _, is := held[name]; return !is })
		return out
	}
	return plan.Resources{Requests: only(has.Requests, held.Requests), Limits: only(has.Limits, held.Limits)}
}

// covers reports whether all that is held is so, in whatever unit it is written.
func covers(has, held plan.Resources) bool {
	same := func(has, held map[string]string) bool {
		for name, want := range held {
			a, errA := plan.ReadQuantity(has[name])
			b, errB := plan.ReadQuantity(want)
			if errA != nil || errB != nil || a.Cmp(b) != 0 {
				return false
			}
		}
		return true
	}
	return same(has.Requests, held.Requests) && same(has.Limits, held.Limits)
}

// shownElsewhere is how many clusters the table names that are not where the plan has them.
const shownElsewhere = 5

func (s *Overview) writeElsewhere(w io.Writer) {
	for i, e := range s.Elsewhere {
		if i == shownElsewhere {
			say.To(w, "         ... and %d more (-o json shows them)\n", len(s.Elsewhere)-i)
			return
		}
		has := "no replica has it"
		switch len(e.Owners) {
		case 0:
		case 1:
			has = fmt.Sprintf("replica %d has it", e.Owners[0])
		default:
			has = fmt.Sprintf("replicas %s have it", numbers(e.Owners))
		}
		say.To(w, "Owner    %s: %s, the plan gives it to %d\n", e.Cluster, has, e.Planned)
	}
}

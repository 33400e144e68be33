package overview

import (
	"fmt"
	"io"
	"maps"
	"strings"
	"text/tabwriter"

	"ballast/cmd/ballast/say"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// replicas is how what is known of replicas is printed: their loads and pods, a Deployment's slots, their sizes.
type replicas struct{ *Overview }

// writeLoads draws each replica's load against the heaviest, with how its pod is.
func (s replicas) writeLoads(w io.Writer) error {
	rows, pods := s.Replicas, map[int][]string{}
	var most plan.Load
	for _, r := range rows {
		most = max(most, r.TotalLoad)
	}
	for _, p := range s.Pods {
		if pods[p.Replica] = append(pods[p.Replica], s.describePod(p)); p.Replica >= len(rows) {
			rows = append(rows, s.CarriedBy(p.Replica)) // it comes, or it goes
		}
	}
	known := map[int]status.Replica{}
	for _, r := range s.Known {
		known[r.Replica] = r
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, r := range rows {
		if i > 0 && r.ID == rows[i-1].ID {
			continue // one of two pods while a Deployment replaces them
		}
		say.To(t, "  %d\t%s\t%s\t%s", r.ID, say.Bar(r.TotalLoad, most), r.TotalLoadDisplay,
			say.Plural(len(r.LoadIndexes), "cluster"))
		if len(known) > 0 {
			say.To(t, "\t%s\t%s", owns(known[r.ID]), s.sampled(known[r.ID]))
		}
		switch {
		case len(pods[r.ID]) > 0:
			say.To(t, "\t%s", strings.Join(pods[r.ID], "; beside it: "))
		case s.SeesPods:
			say.To(t, "\tno pod")
		}
		say.To(t, "\n")
	}
	return t.Flush()
}

func (s replicas) describePod(p PodStatus) string {
	said := "not ready"
	switch {
	case p.Terminating:
		said = "stops"
	case p.Ready:
		said = "ready"
	}
	if p.Restarts > 0 {
		said += ", " + say.Plural(p.Restarts, "restart")
		if !p.RestartedAt.IsZero() {
			said += fmt.Sprintf(", the last %s ago", say.Span(s.Now.Sub(p.RestartedAt)))
		}
	}
	if p.OOMKilled {
		said += ", killed for its memory"
	}
	if p.MemoryLimit > 0 {
		said += fmt.Sprintf(", limit %d MiB", p.MemoryLimit>>20)
	}
	return said
}

// owns is how many clusters a replica has by its own account.
func owns(r status.Replica) string {
	if r.Owns == nil {
		return "says nothing"
	}
	return fmt.Sprintf("has %d", *r.Owns)
}

// sampled is how old the oldest value in use of its clusters is.
func (s replicas) sampled(r status.Replica) string {
	if r.Sampled.IsZero() {
		return "-"
	}
	return "values " + say.Span(max(s.Now.Sub(r.Sampled), 0)) + " old"
}

// writeSlots shows a Deployment's dynamic distribution.
func (s replicas) writeSlots(w io.Writer) error {
	flag := ""
	if s.Slots.Unhealthy {
		flag = " (unhealthy)"
	}
	say.To(w, "Slots    %d of %d healthy%s\n", s.Slots.Healthy, s.Slots.Of, flag)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, slot := range s.Slots.Slots {
		say.To(t, "  %d\t%s\t%s\n", slot.Shard, slot.State, slot.describe())
	}
	for _, p := range s.Pods {
		if p.Replica == plan.NoReplica {
			say.To(t, "  -\tNo slot\t%s: %s\n", p.Name, s.describePod(p))
		}
	}
	return t.Flush()
}

func (s SlotStatus) describe() string {
	if s.Controller == "" {
		return "-"
	}
	said := s.Controller + ": no heartbeat yet"
	if s.HeartbeatAge != "" {
		said = fmt.Sprintf("%s: heartbeat %s ago", s.Controller, s.HeartbeatAge)
	}
	if s.Unhealthy {
		said += ", unhealthy"
	}
	return said
}

// writeSizes says how large the replicas are, as they are asked for and as they are: those of which the same can be
// said together.
func (s replicas) writeSizes(w io.Writer) {
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
	alike := map[string][]int{}
	for _, r := range s.Replicas {
		words := s.sizeWords(r.ID, wanted[r.ID], pods)
		if words == "" {
			continue
		}
		if alike[words] == nil {
			said = append(said, words)
		}
		alike[words] = append(alike[words], r.ID)
	}
	for _, words := range said {
		say.To(w, "Size     %s: %s\n", numbers(alike[words]), say.OneLine(words))
	}
}

// sizeWords is empty where neither the plan nor a rule says how large a replica is.
func (s replicas) sizeWords(replica int, want plan.Resources, pods map[int]PodStatus) string {
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

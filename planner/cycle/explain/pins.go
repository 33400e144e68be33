package explain

import (
	"fmt"
	"slices"
	"strings"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
	"ballast/planner/printable"
)

// because is why a cluster is where it is. Of a pin that does not count it says why, and by what the replica is chosen
// instead.
func because(g *ground.Ground, out outcome.Outcome, i int) string {
	cl := out.Fleet.Clusters[i]
	pin, pinned := out.Pins[cl.Shard.ID]
	if !pinned {
		if why := unread(g, out, cl.Shard.ID); why != "" {
			return why + "; " + instead(g, out, i)
		}
		return unpinned(out, i)
	}
	row, planned := out.Next.Clusters[cl.Shard.ID]
	why := refused(g, out, i, pin)
	switch {
	case why != "":
		return fmt.Sprintf("its pin to replica %d is refused (%s); %s", pin, why, instead(g, out, i))
	case planned && pin == row.Replica:
		return fmt.Sprintf("it is pinned to replica %d", pin)
	}
	why = waits(g, out, cl.Shard.ID, pin)
	return fmt.Sprintf("its pin to replica %d waits (%s); until then %s", pin, why, instead(g, out, i))
}

// unread is a pin of a cluster that is no replica's number, or whose line cannot be read; empty: there is none.
func unread(g *ground.Ground, out outcome.Outcome, name string) string {
	line := func(subject string) int {
		return slices.IndexFunc(g.In.PinProblems, func(p people.PinProblem) bool { return p.Name == subject })
	}
	if at := line(printable.Short(name)); at >= 0 {
		return fmt.Sprintf("its pin in data.pins is refused (%s)", g.In.PinProblems[at].Error())
	}
	for _, kind := range []discover.ProblemKind{discover.InvalidPin, discover.PinFollows} {
		if why := told(out, string(kind), name); why != "" {
			return fmt.Sprintf("its pin is refused (%s)", why)
		}
	}
	if at := line(""); at >= 0 && len(g.In.Pins) == 0 {
		return fmt.Sprintf("a pin of it in data.pins counts for nothing (%s)", g.In.PinProblems[at].Error())
	}
	return ""
}

// refused is why a pin will not hold whatever is waited for; empty: it holds, or waits.
func refused(g *ground.Ground, out outcome.Outcome, i, pin int) string {
	cl := out.Fleet.Clusters[i]
	switch {
	case cl.FixedAt != nil:
		return "it has no Secret to write a shard to"
	case cl.Unmanaged:
		return "its Secret opted out of ballast by the annotation " + plan.AnnotationUnmanaged
	case pin >= g.Next.MaxReplicas:
		return fmt.Sprintf("maxReplicas is %d: pin it lower, or raise partition.maxReplicas", g.Next.MaxReplicas)
	case cl.Immutable && g.Owners[i] != pin:
		return "its Secret cannot be written: " + unwritable(g, cl)
	}
	return ""
}

// unwritable is why nobody can write a Secret, and the mend.
func unwritable(g *ground.Ground, cl discover.Cluster) string {
	if why, barred := g.In.Barred[cl.Shard.ID]; barred {
		return problem.Text(why)
	}
	return "make it anew, or take the pin away"
}

// waits is what a pin waits for that is not refused.
func waits(g *ground.Ground, out outcome.Outcome, name string, pin int) string {
	if why := told(out, "PinWaits", name); why != "" {
		return why
	}
	if why := g.PinsWait(pin + 1); why != "" && g.BySecret(name) {
		return "it " + why
	}
	return "what is under way brings it about, or the next rollout"
}

// told is what a cycle tells of a cluster, of one kind of problem; empty: nothing.
func told(out outcome.Outcome, kind, name string) string {
	for _, p := range out.Problems {
		if p.Kind == kind && p.Subject == name {
			return strings.TrimRight(p.Message, ".")
		}
	}
	return ""
}

// instead is by what the replica of a cluster is chosen whose pin does not count.
func instead(g *ground.Ground, out outcome.Outcome, i int) string {
	cl := out.Fleet.Clusters[i]
	peoples := cl.Unmanaged || cl.Immutable
	switch names := cl.Explicit.State == discover.ShardValid; {
	case cl.FixedAt != nil:
		return unpinned(out, i)
	case peoples && names:
		return fmt.Sprintf("data.shard of its Secret decides, by which Argo CD has it on replica %d", g.Owners[i])
	case peoples:
		return fmt.Sprintf("Argo CD's algorithm decides, by which it is on replica %d", g.Owners[i])
	}
	if _, planned := out.Next.Clusters[cl.Shard.ID]; !planned {
		return unpinned(out, i)
	}
	return "the partition chooses its replica, and " + unpinned(out, i)
}

// unpinned is why a cluster is where it is, but for a pin.
func unpinned(out outcome.Outcome, i int) string {
	cl := out.Fleet.Clusters[i]
	_, planned := out.Next.Clusters[cl.Shard.ID]
	switch {
	case cl.FixedAt != nil:
		return "it has no Secret, and Argo CD puts it there"
	case cl.Unmanaged:
		return "its Secret opted out of ballast"
	case cl.Immutable:
		return "its Secret cannot be written"
	case planned:
		return "the plan in force has it there"
	}
	return "the plan has no row of it yet"
}

// stays says what keeps a cluster on its replica whatever is measured; empty: nothing does.
func stays(g *ground.Ground, out outcome.Outcome, i int) string {
	cl := out.Fleet.Clusters[i]
	pin, pinned := out.Pins[cl.Shard.ID]
	peoples := cl.Unmanaged || cl.Immutable
	switch {
	case pinned && g.Holds(cl.Shard.ID, pin) && refused(g, out, i, pin) == "":
		return fmt.Sprintf("it is pinned to replica %d", pin)
	case peoples || cl.FixedAt != nil:
		return unpinned(out, i)
	}
	return ""
}

package cycle

import (
	"time"

	"ballast/planner/change"
	"ballast/planner/discover"
	"ballast/planner/failover"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// Saved is what the leader left in the history of moves and of those who carry them, for people who ask how things
// are.
type Saved struct {
	SavedAt   time.Time // up to five minutes ago; zero: nothing was saved yet
	Changes   Changes
	Known     discover.Known
	HeldUntil time.Time // a rollout failed, and nothing new begins before; zero: none did
}

// ReadSaved reads it from the history's parts. What cannot be read is left out and reported.
func ReadSaved(savedAt time.Time, parts map[string][]byte) (Saved, []error) {
	asked := map[string][]byte{}
	for _, name := range []string{partChanges, partLimits, partFleet} {
		if part, ok := parts[name]; ok {
			asked[name] = part
		}
	}
	m, dropped := MemoryOf(asked)
	r := Saved{SavedAt: savedAt, Changes: m.Changes, Known: m.Known}
	if !m.HoldOff.IsZero() {
		r.HeldUntil = m.HoldOff.Add(holdOff)
	}
	return r, dropped
}

// savedBudget is the move budget as the leader has it: what it remembers, and the stage in force if it came after
// that.
func savedBudget(in Inputs, fleet discover.Fleet) change.Budget {
	c := &cycle{in: in, out: Outcome{Memory: in.Memory, Fleet: fleet}}
	c.count(together(fleet))
	return c.out.Budget
}

// savedVerdict is the verdict on the replicas that the leader came to when it looked last. What it saw then stands in
// its memory, so that the same look is judged again. A pod that is not there any more makes the difference between one
// that is not ready and none.
func savedVerdict(in Inputs) failover.Verdict {
	f, m := in.Config.Failover, in.Memory.Changes.Replicas
	if f == nil || m.Looked.IsZero() || in.InForce == nil {
		return failover.Verdict{}
	}
	seen := failover.Fleet{Known: true, Replicas: in.InForce.Replicas, Rolling: m.Rolled.Equal(m.Looked),
		Dynamic: in.Observed.Dynamic || !in.Observed.Known && in.Workload.Kind == plan.Deployment && in.Workload.DynamicDistribution}
	here := map[string]bool{}
	for _, p := range in.Observed.Pods {
		here[p.Name] = true
	}
	for replica, h := range m.Replicas {
		works := h.Down.IsZero()
		p := observed.Pod{Replica: replica, Name: h.Pod, Restarts: h.Count, Ready: works, Claimed: works}
		if gone := in.Observed.Known && !here[h.Pod]; gone && !works {
			p.Name, p.Restarts = "", 0
		}
		seen.Pods = append(seen.Pods, p)
	}
	v, _ := failover.Judge(seen, failover.Options{After: time.Duration(f.After), Settle: time.Duration(f.Settle), Interval: time.Duration(in.Config.Interval)}, m.Looked, m)
	for i, s := range v.Sick {
		if s.Reason == failover.OOMKilled || s.Reason == failover.Restarting {
			v.Sick[i].Pod = m.Replicas[s.Replica].Pod // whose kill or restarts they were, here or not
		}
	}
	return v
}

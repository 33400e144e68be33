package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/conflicts"
	"ballast/planner/cycle"
	"ballast/planner/discover"
	"ballast/planner/failover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// status makes what is shown of what was seen.
func (v *observation) status() status {
	s := status{Plan: v.state.Plan, now: v.now, Workload: v.workload, Reason: v.state.annotations[plan.AnnotationReason],
		DecidedAt: v.state.annotations[plan.AnnotationDecidedAt], DecidedBy: v.state.annotations[plan.AnnotationDecidedBy],
		PinProblems: v.state.PinProblems, Neighbours: v.neighbours, Unseen: v.unseen, Unread: v.unread}
	if v.state.PlanErr != nil {
		s.PlanError = v.state.PlanErr.Error()
	}
	in := v.inputs()
	c := cycle.Compare(in)
	s.Replicas, s.Pins, s.Drift, s.Problems = c.Replicas, c.Pins, c.Agenda.Steps, c.Problems
	for _, h := range c.Agenda.Held {
		s.Held = append(s.Held, h.Message())
	}
	s.leads(v)
	s.asked(v)
	s.showPods(v)
	if v.state.Plan != nil {
		s.follow(v, in)
	}
	return s
}

// leads says who holds the Lease, and whether it is another installation.
func (s *status) leads(v *observation) {
	if v.lease == nil || v.lease.Spec.HolderIdentity == nil {
		return
	}
	s.Leader = *v.lease.Spec.HolderIdentity
	if v.lease.Spec.RenewTime != nil {
		s.Renewed = v.lease.Spec.RenewTime.Time
	}
	if v.state.Plan == nil {
		return
	}
	self := conflicts.Owner{Plan: v.config.Target.Namespace + "/" + v.config.Plan.ConfigMap, PlannerUser: v.state.Plan.PlannerUser}
	if owner, foreign := conflicts.Judge(conflicts.Bounded(v.lease, v.now), self, conflicts.DefaultGrace, v.now); foreign {
		s.Owner = &owner
	}
}

// asked is what people said by annotations, and what ballast says of itself.
func (s *status) asked(v *observation) {
	doc, notes := v.state.Document, v.state.annotations
	s.Paused, s.BreakGlass, s.Tripped, s.RollbackTo = doc.Paused, doc.BreakGlass, oneLine(doc.Tripped), oneLine(doc.Rollback)
	if doc.Paused {
		s.PausedBy, s.PausedWhy = oneLine(notes[plan.AnnotationPausedBy]), oneLine(notes[plan.AnnotationPausedReason])
	}
	cordons, err := plan.ParseCordons(doc.Cordon)
	if err != nil {
		s.Problems = append(s.Problems, cycle.Problem{Phase: cycle.PhaseRollout, Subject: plan.AnnotationCordon, Kind: "CordonRefused", Message: err.Error()})
	}
	for _, c := range cordons {
		if c.Until.After(v.now) {
			s.Cordons = append(s.Cordons, cordoned{Replica: c.Replica, Until: c.Until, Clusters: len(s.carriedBy(c.Replica).LoadIndexes)})
		}
	}
	if v.history.HeldUntil.After(v.now) {
		s.HeldUntil = v.history.HeldUntil
	}
}

// carriedBy is what a replica has under the plan; one that there is not has nothing.
func (s *status) carriedBy(replica int) plan.Replica {
	if replica < 0 || replica >= len(s.Replicas) {
		return plan.Replica{ID: replica, TotalLoadDisplay: plan.Load(0).Display()}
	}
	return s.Replicas[replica]
}

func (s *status) showPods(v *observation) {
	if v.pods == nil {
		return
	}
	s.seesPods = true
	for _, p := range v.pods.Pods {
		r := s.carriedBy(p.Replica)
		s.Pods = append(s.Pods, podStatus{Replica: p.Replica, Name: p.Name, Ready: p.Ready, Terminating: p.Terminating, Claimed: p.Claimed, Restarts: p.Restarts,
			RestartedAt: p.RestartedAt, OOMKilled: p.OOMKilled, MemoryLimit: p.MemoryLimit, Clusters: len(r.LoadIndexes), Load: r.TotalLoadDisplay})
	}
	for _, problem := range v.pods.Problems {
		s.Problems = append(s.Problems, cycle.Problem{Phase: cycle.PhaseOwnership, Kind: "PodsUnseen", Message: problem})
	}
	if !v.pods.Dynamic {
		return
	}
	slots := v.pods.Slots(v.workload.Replicas, v.now)
	s.Slots = &slotsStatus{Healthy: ownership.Healthy(slots), Of: v.workload.Replicas, Slots: []slotStatus{}}
	s.Slots.Unhealthy = s.Slots.Healthy < s.Slots.Of
	for _, slot := range slots {
		shown := slotStatus{Shard: slot.Shard, State: string(slot.State), Controller: slot.Controller,
			Unhealthy: slot.State == ownership.SlotSilent || slot.State == ownership.SlotGone}
		if slot.Silence > 0 {
			shown.HeartbeatAge = short(slot.Silence)
		}
		s.Slots.Slots = append(s.Slots.Slots, shown)
	}
}

// inputs are what is known of a cycle's outside the leader.
func (v *observation) inputs() cycle.Inputs {
	doc := v.state.Document
	in := cycle.Inputs{Now: v.now, Config: v.config, InForce: doc.Plan, Pins: doc.Pins, Paused: doc.Paused, BreakGlass: doc.BreakGlass,
		Tripped: doc.Tripped, Cordon: doc.Cordon,
		Discovered: v.input, Workload: v.workload, Memory: cycle.Memory{Changes: v.history.Changes, Known: v.history.Known}}
	in.Discovered.AcceptDiscovery = doc.AcceptDiscovery
	if v.pods != nil {
		in.Observed = cycle.Observed{Known: true, Dynamic: v.pods.Dynamic}
		for _, p := range v.pods.Pods {
			in.Observed.Pods = append(in.Observed.Pods, p.Pod)
		}
	}
	return in
}

// follow is how far changes are, and what the leader saved of them.
func (s *status) follow(v *observation, in cycle.Inputs) {
	course := cycle.Follow(in)
	s.Rollout = underWayOf(in.InForce.Rollout, course, v.now)
	s.Problems = append(s.Problems, course.Waits...)
	if v.history.SavedAt.IsZero() {
		return
	}
	s.Budget, s.said = budgetOf(course.Budget, v.history.SavedAt), course.Budget.String()
	for _, sick := range course.Replicas.Sick {
		s.Unwell = append(s.Unwell, unwell{sick.Replica, sick.Reason, sick.Since, sick.Pod, sick.String()})
	}
	if course.Replicas.Held != "" && (len(s.Unwell) > 0 || course.Replicas.Held == failover.WholeFleet) {
		s.FailoverOff = course.Replicas.String()
	}
	s.faults(v.history)
}

func underWayOf(r *plan.Rollout, course cycle.Course, now time.Time) *underWay {
	if r == nil {
		return nil
	}
	p := course.Progress
	u := &underWay{Mode: r.Mode, Stage: r.Stage, Since: r.Since, Late: p.Late, From: r.From,
		To:   plan.Count{Replicas: r.Replicas, ControllerReplicas: r.ControllerReplicas},
		Wave: r.Wave, Waves: r.Waves, Moves: course.Moves, After: course.After}
	if p.Left > 0 {
		u.Deadline = now.Add(p.Left)
	}
	switch {
	case course.Hidden:
		u.Waits = "all that shows here is done; which clusters the pods have they tell the leader alone"
	case p.Outcome == rollout.Waiting:
		u.Waits = p.Why
	case p.Outcome == rollout.TurnedBack:
		u.Next = "it turns back: " + p.Why
	case p.Outcome == rollout.GaveUp:
		u.Next = "it ends here: " + p.Why
	default:
		u.Next = "it goes on: " + p.Why
	}
	return u
}

func budgetOf(b change.Budget, savedAt time.Time) *budgetStatus {
	s := &budgetStatus{SavedAt: savedAt, Next: b.Next}
	if b.Left < math.MaxInt {
		s.Left = &b.Left
	}
	for _, w := range b.Windows {
		s.Windows = append(s.Windows, windowStatus{Period: short(w.Rate.Period), Percent: w.Rate.Percent, Allowed: w.Allowed, Used: w.Used})
	}
	for cause, n := range b.Causes {
		if s.Causes == nil {
			s.Causes = map[string]int{}
		}
		s.Causes[string(cause)] = n
	}
	return s
}

// How long the leader bears what it remembers before it calls it a fault: ownership.Grace's defaults. Clusters have no
// owner for a moment whenever they move.
const (
	orphanedAfter = 2 * time.Minute
	doubledAfter  = 30 * time.Second
)

// faults are those clusters that the leader had without an owner, or with several, for longer than that when it saved
// its memory.
func (s *status) faults(h cycle.Saved) {
	m := h.Changes.Ownership
	seen := func(since map[string]time.Time, after time.Duration) []fault {
		var list []fault
		for _, cluster := range slices.SortedFunc(maps.Keys(since), func(a, b string) int { return cmp.Or(since[a].Compare(since[b]), cmp.Compare(a, b)) }) {
			if h.SavedAt.Sub(since[cluster]) >= after {
				list = append(list, fault{Cluster: cluster, Since: since[cluster]})
			}
		}
		return list
	}
	s.Orphaned, s.Doubled = seen(m.Lost, orphanedAfter), seen(m.Doubled, doubledAfter)
	for i := range s.Orphaned {
		if last, known := m.Last[s.Orphaned[i].Cluster]; known && last >= 0 {
			s.Orphaned[i].Last = &last
		}
	}
}

// describe words a move; where a cluster came from nobody may know any more.
func describe(m cycle.Move) string {
	if m.From == discover.Nobody {
		return fmt.Sprintf("%s: to %d", m.Cluster, m.To)
	}
	return fmt.Sprintf("%s: %d -> %d", m.Cluster, m.From, m.To)
}

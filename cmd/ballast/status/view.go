package status

import (
	"fmt"
	"slices"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/conflicts"
	"ballast/planner/cycle"
	"ballast/planner/cycle/compare"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/ownership/podlist"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// overview makes what is shown of what was seen.
func (v *observation) overview() Overview {
	s := Overview{Plan: v.state.Plan, now: v.now, Workload: v.workload, Reason: v.state.Annotations[plan.AnnotationReason],
		DecidedAt: v.state.Annotations[plan.AnnotationDecidedAt], DecidedBy: v.state.Annotations[plan.AnnotationDecidedBy],
		PinProblems: v.state.PinProblems, Neighbours: v.neighbours, Unseen: v.unseen, Unread: v.unread}
	if v.state.PlanErr != nil {
		s.PlanError = v.state.PlanErr.Error()
	}
	in := v.inputs()
	c := compare.InForce(in)
	s.Replicas, s.Pins, s.Drift, s.Problems = c.Replicas, c.Pins, c.Agenda.Steps, c.Problems
	for _, h := range c.Agenda.Held {
		s.Held = append(s.Held, h.Message())
	}
	s.leads(v)
	s.readAnnotations(v)
	s.showPods(v)
	if v.state.Plan != nil {
		s.Rollout = underWayOf(plan.NewView(*v.state.Plan, c.Pins), v.said, v.now)
	}
	if v.said != nil {
		s.takeOver(*v.said)
	}
	s.Decisions = decidedOf(v.state, v.records)
	s.Needs = s.needs()
	return s
}

// leads says who holds the Lease, and whether it is another installation.
func (s *Overview) leads(v *observation) {
	if v.lease == nil || v.lease.Spec.HolderIdentity == nil {
		return
	}
	s.Leader = *v.lease.Spec.HolderIdentity
	if v.lease.Spec.RenewTime != nil {
		s.Renewed = plan.WithinJSON(v.lease.Spec.RenewTime.Time)
	}
	if v.state.Plan == nil {
		return
	}
	self := conflicts.Owner{Plan: v.config.Target.Namespace + "/" + v.config.Plan.ConfigMap, PlannerUser: v.state.Plan.PlannerUser}
	if owner, foreign := conflicts.Judge(conflicts.Bounded(v.lease, v.now), self, conflicts.DefaultGrace, v.now); foreign {
		s.Owner = &owner
	}
}

// readAnnotations reads what people said by annotations, and what ballast says of itself.
func (s *Overview) readAnnotations(v *observation) {
	doc, notes := v.state.Document, v.state.Annotations
	s.Paused, s.BreakGlass, s.Tripped, s.RollbackTo = doc.Paused, doc.BreakGlass, say.OneLine(doc.Tripped), say.OneLine(doc.Rollback)
	if doc.Paused {
		s.PausedBy, s.PausedWhy = say.OneLine(notes[plan.AnnotationPausedBy]), say.OneLine(notes[plan.AnnotationPausedReason])
	}
	cordons, err := plan.ParseCordons(doc.Cordon)
	if err != nil {
		s.Problems = append(s.Problems, problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationCordon, Kind: "CordonRefused", Message: err.Error()})
	}
	for _, c := range cordons {
		if c.Until.After(v.now) {
			s.Cordons = append(s.Cordons, steer.Cordoned{Replica: c.Replica, Until: c.Until, Clusters: len(s.carriedBy(c.Replica).LoadIndexes)})
		}
	}
}

// carriedBy is what a replica has under the plan; one that there is not has nothing.
func (s *Overview) carriedBy(replica int) plan.Replica {
	if replica < 0 || replica >= len(s.Replicas) {
		return plan.Replica{ID: replica, TotalLoadDisplay: plan.Load(0).Display()}
	}
	return s.Replicas[replica]
}

func (s *Overview) showPods(v *observation) {
	if v.pods == nil {
		return
	}
	s.seesPods = true
	for _, p := range v.pods.Pods {
		r := s.carriedBy(p.Replica)
		shown := podStatus{Replica: p.Replica, Name: p.Name, Ready: p.Ready, Terminating: p.Terminating, Claimed: p.Claimed, Restarts: p.Restarts,
			RestartedAt: p.RestartedAt, OOMKilled: p.OOMKilled, MemoryLimit: p.MemoryLimit, Clusters: len(r.LoadIndexes), Load: r.TotalLoadDisplay}
		if p.Size != nil {
			shown.Asked, shown.Has = p.Size.Asks.Controller, p.Size.Has
			shown.Resize, shown.Words = p.Size.Resize, p.Size.Message
		}
		s.Pods = append(s.Pods, shown)
	}
	for _, unseen := range v.pods.Problems {
		s.Problems = append(s.Problems, problem.Problem{Phase: problem.PhaseOwnership, Kind: "PodsUnseen", Message: unseen})
	}
	if !v.pods.Dynamic {
		return
	}
	slots := v.pods.Slots(v.workload.Replicas, v.now)
	s.Slots = &slotsStatus{Healthy: podlist.Healthy(slots), Of: v.workload.Replicas, Slots: []slotStatus{}}
	s.Slots.Unhealthy = s.Slots.Healthy < s.Slots.Of
	for _, slot := range slots {
		shown := slotStatus{Shard: slot.Shard, State: string(slot.State), Controller: slot.Controller,
			Unhealthy: slot.State == podlist.SlotSilent || slot.State == podlist.SlotGone}
		if slot.Silence > 0 {
			shown.HeartbeatAge = say.Span(slot.Silence)
		}
		s.Slots.Slots = append(s.Slots.Slots, shown)
	}
}

// inputs are what is known of a cycle's outside the leader.
func (v *observation) inputs() input.Inputs {
	doc := v.state.Document
	in := input.Inputs{Now: v.now, Config: v.config, InForce: doc.Plan, Pins: doc.Pins, Paused: doc.Paused, BreakGlass: doc.BreakGlass,
		Tripped: doc.Tripped, Cordon: doc.Cordon,
		Discovered: v.input, Workload: v.workload, Memory: memory.Memory{Known: v.known}}
	in.Discovered.AcceptDiscovery = doc.AcceptDiscovery
	if v.pods != nil {
		in.Observed = input.Observed{Known: true, Dynamic: v.pods.Dynamic}
		for _, p := range v.pods.Pods {
			in.Observed.Pods = append(in.Observed.Pods, p.Pod)
		}
	}
	return in
}

// takeOver shows what the leader said. What it could not do or will not believe it says of all that is shown here, too.
func (s *Overview) takeOver(said status.Status) {
	s.LookedAt, s.Conditions, s.Budget, s.Candidate = said.LookedAt, said.Conditions, said.Budget, said.Candidate
	s.Unwell, s.FailoverOff, s.Orphaned, s.Doubled, s.Omitted = said.Unwell, said.FailoverHeld, said.Orphaned, said.Doubled, said.Omitted
	s.PutBack = said.PutBack
	s.Blocked, s.Known, s.Elsewhere = said.Blocked, said.Replicas, said.Elsewhere
	if said.HeldUntil.After(s.now) {
		s.HeldUntil = said.HeldUntil
	}
	known := func(p problem.Problem) bool {
		return slices.ContainsFunc(said.Problems, func(q problem.Problem) bool { return p.Kind == q.Kind && p.Subject == q.Subject })
	}
	s.Problems = append(slices.DeleteFunc(s.Problems, known), said.Problems...)
}

// underWayOf is the rollout of the plan in force. What it waits for the leader says, if it has looked at this revision.
func underWayOf(v *plan.View, said *status.Status, now time.Time) *underWay {
	r := v.Plan.Rollout
	if r == nil {
		return nil
	}
	u := &underWay{Mode: r.Mode, Stage: r.Stage, Since: r.Since, From: r.From, To: plan.Count{Replicas: r.Replicas, ControllerReplicas: r.ControllerReplicas},
		Wave: r.Wave, Waves: r.Waves, Moves: compare.MovesUnderWay(v)}
	if said != nil && said.Revision == v.Plan.Revision && said.Rollout != nil {
		u.Waits, u.Deadline, u.After = said.Rollout.Waits, said.Rollout.Deadline, said.Rollout.After
		u.Late = said.Rollout.Late || !u.Deadline.IsZero() && now.After(u.Deadline)
	}
	return u
}

// describe words a move; where a cluster came from nobody may know any more.
func describe(m cycle.Move) string {
	if m.From == plan.NoReplica {
		return fmt.Sprintf("%s: to %d", m.Cluster, m.To)
	}
	return fmt.Sprintf("%s: %d -> %d", m.Cluster, m.From, m.To)
}

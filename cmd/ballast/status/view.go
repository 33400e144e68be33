package status

import (
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/status/overview"
	"ballast/cmd/ballast/steer"
	"ballast/planner/conflicts"
	"ballast/planner/cycle/compare"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/observed"
	"ballast/planner/ownership/podlist"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// overview makes what is shown of what was seen.
func (v *observation) overview() overview.Overview {
	s := overview.Overview{Plan: v.state.Plan, Now: v.now, Workload: v.workload,
		Reason:      v.state.Annotations[plan.AnnotationReason],
		DecidedAt:   v.state.Annotations[plan.AnnotationDecidedAt],
		DecidedBy:   v.state.Annotations[plan.AnnotationDecidedBy],
		PinProblems: v.state.PinProblems, Conflicts: v.neighbours, Unseen: v.unseen, Unread: v.unread}
	if v.state.PlanErr != nil {
		s.PlanError = v.state.PlanErr.Error()
	}
	in := v.inputs()
	c := compare.InForce(in)
	s.Replicas, s.Pins, s.Drift, s.Problems = c.Replicas, c.Pins, c.Diff.Steps, c.Problems
	for _, h := range c.Diff.Held {
		s.Held = append(s.Held, h.Message())
	}
	v.leads(&s)
	v.readAnnotations(&s)
	v.showPods(&s)
	if v.state.Plan != nil {
		s.Rollout = overview.UnderWayOf(plan.NewView(*v.state.Plan, c.Pins), v.said, v.now)
	}
	if v.said != nil {
		s.TakeOver(*v.said)
	}
	s.Decisions = overview.DecidedOf(v.state, v.records)
	s.Needs = s.CollectNeeds()
	return s
}

// leads says who holds the Lease, and whether it is another installation.
func (v *observation) leads(s *overview.Overview) {
	if v.lease == nil || v.lease.Spec.HolderIdentity == nil {
		return
	}
	s.Leader = *v.lease.Spec.HolderIdentity
	if v.lease.Spec.RenewTime != nil {
		s.Renewed = patchable.WithinJSON(v.lease.Spec.RenewTime.Time)
	}
	if v.state.Plan == nil {
		return
	}
	self := conflicts.Owner{Plan: v.config.Target.Namespace + "/" + v.config.Plan.ConfigMap,
		PlannerUser: v.state.Plan.PlannerUser}
	if owner, foreign := conflicts.Judge(conflicts.Bounded(v.lease, v.now), self, conflicts.DefaultGrace, v.now); foreign {
		s.Owner = &owner
	}
}

// readAnnotations reads what people said by annotations, and what ballast says of itself.
func (v *observation) readAnnotations(s *overview.Overview) {
	doc, notes := v.state.Document, v.state.Annotations
	s.Paused, s.BreakGlass, s.Tripped, s.RollbackTo = doc.Paused, doc.BreakGlass, say.OneLine(doc.Tripped),
		say.OneLine(doc.Rollback)
	if doc.Paused {
		s.PausedBy, s.PausedWhy = say.OneLine(notes[plan.AnnotationPausedBy]),
			say.OneLine(notes[plan.AnnotationPausedReason])
	}
	cordons, err := people.ParseCordons(doc.Cordon)
	if err != nil {
		s.Problems = append(s.Problems, problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationCordon,
			Kind: "CordonRefused", Message: err.Error()})
	}
	for _, c := range cordons {
		if c.Until.After(v.now) {
			s.Cordons = append(s.Cordons, steer.Cordoned{Replica: c.Replica, Until: c.Until,
				Clusters: len(s.CarriedBy(c.Replica).LoadIndexes)})
		}
	}
}

func (v *observation) showPods(s *overview.Overview) {
	if v.pods == nil {
		return
	}
	s.SeesPods = true
	for _, p := range v.pods.Pods {
		r := s.CarriedBy(p.Replica)
		shown := overview.PodStatus{Replica: p.Replica, Name: p.Name, Ready: p.Ready, Terminating: p.Terminating,
			Claimed: p.Claimed, Restarts: p.Restarts,
			RestartedAt: p.RestartedAt, OOMKilled: p.OOMKilled, MemoryLimit: p.MemoryLimit,
			Clusters: len(r.LoadIndexes), Load: r.TotalLoadDisplay}
		if p.Size != nil {
			shown.Asked, shown.Has = p.Size.Asks.Controller, p.Size.Has
			shown.Resize, shown.Words = p.Size.Resize, p.Size.Message
		}
		s.Pods = append(s.Pods, shown)
	}
	for _, unseen := range v.pods.Problems {
		s.Problems = append(s.Problems, problem.Problem{Phase: problem.PhaseOwnership, Kind: "PodsUnseen",
			Message: unseen})
	}
	if !v.pods.Dynamic {
		return
	}
	slots := v.pods.Slots(v.workload.Replicas, v.now)
	s.Slots = &overview.SlotsStatus{Healthy: podlist.Healthy(slots), Of: v.workload.Replicas,
		Slots: []overview.SlotStatus{}}
	s.Slots.Unhealthy = s.Slots.Healthy < s.Slots.Of
	for _, slot := range slots {
		shown := overview.SlotStatus{Shard: slot.Shard, State: string(slot.State), Controller: slot.Controller,
			Unhealthy: slot.State == observed.SlotSilent || slot.State == observed.SlotGone}
		if slot.Silence > 0 {
			shown.HeartbeatAge = say.Span(slot.Silence)
		}
		s.Slots.Slots = append(s.Slots.Slots, shown)
	}
}

// inputs are what is known of a cycle's outside the leader.
func (v *observation) inputs() input.Inputs {
	doc := v.state.Document
	in := input.Inputs{Now: v.now, Config: v.config, InForce: doc.Plan, Pins: doc.Pins, Paused: doc.Paused,
		BreakGlass: doc.BreakGlass,
		Tripped:    doc.Tripped, Cordon: doc.Cordon,
		Discovered: v.input, Workload: v.workload, Memory: memory.Memory{Known: v.known}}
	in.Discovered.AcceptDiscovery = doc.AcceptDiscovery
	if v.said != nil && !v.said.Old(v.now) {
		in.Resizes, in.KeepsLimits = v.said.Resizes, v.said.KeepsLimits
	}
	if v.pods != nil {
		in.Observed = input.Observed{Known: true, Dynamic: v.pods.Dynamic}
		for _, p := range v.pods.Pods {
			in.Observed.Pods = append(in.Observed.Pods, p.Pod)
		}
	}
	return in
}

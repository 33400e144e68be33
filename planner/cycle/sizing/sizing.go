// Package sizing has the sizes of replicas follow their rules, and levels nothing to those that may not grow for it.
package sizing

import (
	"fmt"
	"slices"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/counting"
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/reading"
	"ballast/planner/cycle/resize"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/plan"
)

// sizing has the sizes of replicas follow their rules.
type sizing struct {
	*outcome.Draft
	verdicts gate.Verdicts // of the gates, before anything began
}

// Size says how large each replica is to be, by the policies. Without any, sizes are people's.
func Size(d *outcome.Draft, verdicts gate.Verdicts, g *ground.Ground) {
	s := sizing{d, verdicts}
	conf := s.In.Config.Size
	if len(conf.All()) == 0 && s.frozenSizes(g) {
		return
	}
	if len(conf.All()) == 0 {
		switch {
		case g.Next.Resources != nil:
			s.Note("size.policies are gone, so the pod template is held at no size any more: it stays as it is until somebody writes another one, " +
				"as a GitOps tool does at once, and every pod restarts for that")
		case g.Next.Sizes != nil:
			s.Note("size.policies are gone, so no size is held any more: running pods stay as large as they are, " +
				"and each gets the pod template's size when it is made anew")
		}
		g.Next.Sizes, g.Next.Resources, s.Out.Memory.Sizes = nil, nil, question.Released(s.In.Memory.Sizes, s.In.Now)
		return
	}
	if s.In.Workload.ContainerGone { // nobody knows what the template gives it; that is told
		return
	}
	if strangers := s.otherContainers(); len(strangers) > 0 {
		s.Tell(problem.Problem{Phase: problem.PhaseSize, Kind: "SizePolicyRefused", Message: fmt.Sprintf(
			"size.policies name the containers %s, and the application-controller's is %q: take container out of those rules; "+
				"sizes stay as they are",
			problem.ClipList(strangers), s.In.Workload.Container)})
		return
	}
	replicas := reading.Sized(g)
	if replicas == 0 {
		return
	}
	if g.Next.Resources != nil && conf.Apply != config.Template && s.frozenSizes(g) {
		return
	}
	s.nodeCapUnknown()
	s.noResize()
	target := s.Out.Memory.Changes.Target
	answer := resize.Decide(question.Question{Now: s.In.Now, Interval: time.Duration(s.In.Config.Interval), Size: conf,
		Change: s.In.Config.Change, Plan: g.Next, Replicas: replicas, Template: s.In.Workload.Resources,
		Pods:     s.In.Observed.Pods,
		Readings: reading.Of(s.Draft, g, replicas), Clusters: s.clustersBy(g, replicas),
		Receivers: ReceiversOf(g.Next, target), Givers: GiversOf(g.Next, target), Leavers: leaversOf(g.Next),
		Seen: reading.SeenInputs(s.In.Config), NodeCap: reading.NodeCap(s.In), Over: s.overCapacity(g),
		Unmet: Unmet(s.In, g.Next), Due: s.due(g),
		Shut: s.shutSizes(g), Back: s.wentBack(g), Memory: reading.RememberNodes(s.In)})
	g.Next.Sizes, g.Next.Resources = answer.Sizes, answer.Resources
	s.Out.Memory.Sizes, s.Out.Sizing = answer.Memory, answer.Sizing
	for _, p := range answer.Problems {
		s.Tell(p)
	}
	if answer.Restarts() {
		s.Out.Decided, s.Out.Memory.Changes.Restarted = true, s.In.Now
	}
	if answer.Note != "" {
		s.Note(answer.Note)
	}
}

// due is how many pods are to be there; 0: nobody can tell, or sizes are people's or stay as they are.
func (s sizing) due(g *ground.Ground) int {
	w := s.In.Workload
	peoples, deciding := s.In.Paused || s.In.BreakGlass || g.Next.Unmanaged, g.Next.Mode == plan.Enforce
	seen := s.In.Observed.Known && w.ObservedGeneration >= w.Generation
	if peoples || !deciding || !seen {
		return 0
	}
	return w.Replicas
}

// frozenSizes reports whether what holds sizes stays as it is since a person froze ballast, and tells that it waits.
func (s sizing) frozenSizes(g *ground.Ground) bool {
	if !s.In.Paused || g.Next.Sizes == nil && g.Next.Resources == nil {
		return false
	}
	s.Tell(problem.Problem{Phase: problem.PhaseSize, Subject: s.In.Workload.Name, Kind: "SizeApplyWaits",
		Message: "size.apply and size.policies are others than the plan's sizes were made by, which are held while ballast is frozen: they change once it is not"})
	return true
}

// clustersBy is how many clusters each replica has, or is to have.
func (s sizing) clustersBy(g *ground.Ground, replicas int) map[int]int {
	_, of := reading.Clusters(s.Draft, g, replicas)
	by := map[int]int{}
	for replica, clusters := range of {
		if len(clusters) > 0 {
			by[replica] = len(clusters)
		}
	}
	return by
}

// noResize tells that pods cannot be resized in place. That they are restarted instead is for a person to say.
func (s sizing) noResize() {
	if s.In.Config.Size.Apply == config.Template || s.In.Resizes == nil || *s.In.Resizes {
		return
	}
	s.Tell(problem.Problem{Phase: problem.PhaseSize, Subject: s.In.Workload.Name, Kind: "NoResize",
		Message: "size.apply is inPlace, and the API server has no pods/resize, which Kubernetes 1.33 and newer have: no running pod is resized, " +
			"nor after an OOM kill, and each gets its size when it is made anew; set size.apply: template to have the fleet restarted for its size"})
}

// otherContainers are those that rules name and that are not the controller's: a configuration that leaves
// target.container out cannot tell.
func (s sizing) otherContainers() (names []string) {
	for _, p := range s.In.Config.Size.Policies {
		for _, r := range p.Rules {
			if r.Container != "" && r.Container != s.In.Workload.Container {
				names = append(names, r.Container)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// shutSizes is what of sizes the gates leave shut, with the rollout that this cycle began.
func (s sizing) shutSizes(g *ground.Ground) question.Shut {
	v := s.verdicts.ForSizes(g.Next.Rollout != nil, g.Next.Unmanaged)
	return question.Shut{Up: v[gate.SizeUp], Down: v[gate.SizeDown], Restart: v[gate.SizeRestart],
		RestartAgain: RestartAgain(s.In, s.Out.Memory.Changes)}
}

// overCapacity are the replicas that carry more than a person said that they may.
func (s sizing) overCapacity(g *ground.Ground) map[int]bool {
	most := counting.MostLoad(s.Out.Counts, bounds.Capacity(g))
	over := map[int]bool{}
	for _, r := range s.Out.Now {
		if most > 0 && r.TotalLoad.Float() > most {
			over[r.ID] = true
		}
	}
	return over
}

// wentBack is the plan that a person goes back to where that is done now. Its sizes hold for as long as the balance is
// left alone.
func (s sizing) wentBack(g *ground.Ground) question.Back {
	back := question.Back{For: memory.HoldOffFor}
	if pays := s.In.Config.Evaluate.CostBenefit; pays != nil {
		back.For = time.Duration(pays.Horizon)
	}
	if r := s.In.Rollback; r != nil && s.Out.Done && r.Refused(g.Next) == "" {
		back.To = r.Plan
	}
	return back
}

// nodeCapUnknown says why the nodes bound no replica, where they are to.
func (s sizing) nodeCapUnknown() {
	conf := s.In.Config.Size
	from := conf.NodeCap.FromNodes
	if from == nil || len(conf.Cap()) == 2 || len(s.In.Surroundings.Nodes.Cap(int(from.Reserve), s.In.Now)) > 0 {
		return
	}
	why := "none of them has room for a pod of the workload"
	if _, unseen := s.In.Surroundings.Of(config.InputNodes, s.In.Now); unseen != "" {
		why = unseen
	}
	if len(reading.NodesGive(s.In)) > 0 {
		s.Tell(problem.Problem{Phase: problem.PhaseSize, Kind: "NodeCapUnknown",
			Message: "size.nodeCap.fromNodes bounds replicas by the nodes as they were seen last: " + why})
		return
	}
	s.Tell(problem.Problem{Phase: problem.PhaseSize, Kind: "NodeCapUnknown",
		Message: "size.nodeCap.fromNodes bounds no replica: " + why +
			"; write size.nodeCap.cpu and memory to be bounded meanwhile"})
}

// RestartAgain is when ballast may restart the fleet again by itself; zero: now. What nobody saw for a while may have
// restarted just now.
func RestartAgain(in input.Inputs, m memory.Changes) time.Time {
	every, last := time.Duration(in.Config.Change.Restarts.Every), m.Restarted
	if Blind(in, m) && !m.Looked.IsZero() && in.Now.Sub(m.Looked) < every {
		last = in.Now
	}
	if since := in.Now.Sub(last); last.IsZero() || since < 0 || since >= every { // a clock that went back counts as long ago
		return time.Time{}
	}
	return last.Add(every)
}

// Blind reports whether the fleet may have restarted since its pods were seen last: they are not seen, or a leader
// begins with an older memory, or none.
func Blind(in input.Inputs, m memory.Changes) bool {
	return m.Looked.IsZero() || in.Now.Sub(m.Looked) > 2*time.Duration(in.Config.Interval)
}

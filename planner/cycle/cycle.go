// Package cycle is the decision that keeps an Argo CD fleet level. Run is all of it, a function of values: what was
// seen goes in, the next plan and its reasons come out. Package controller gathers the one and writes the other.
package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ballast/planner/cycle/adopt"
	"ballast/planner/cycle/belief"
	"ballast/planner/cycle/discovery"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/inuse"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/proposal"
	"ballast/planner/cycle/safety"
	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// Run runs every phase once. It has no error: what a phase cannot do is a Problem, and the plan in force stays.
func Run(in input.Inputs) outcome.Outcome { return run(in).Printable() }

func run(in input.Inputs) outcome.Outcome {
	read := in.InForce
	in = untilNow(in)
	if seen := &in.Observed; seen.Reported.Hides(in.Memory.Changes.ByName) {
		seen.Reported = seen.Reported.WithReaders()
	}
	in.Observed.Reported = in.Observed.Reported.Doubted(in.Memory.Changes.Ownership, in.Now)
	return sizing.WithGrowth(in, func(held sizing.Ungrown) outcome.Outcome {
		return newCycle(in, read, held).run()
	})
}

func (c *cycle) run() outcome.Outcome {
	in := c.In
	if in.PlanFault != "" {
		c.Tell(belief.PlanFaultProblem(in.PlanFault))
	}
	if in.Keyless != "" {
		c.Tell(problem.Problem{Phase: problem.PhaseStore, Kind: "KeyMissing",
			Message: "this leader goes on by the key that it knows, the next one plans nothing, " +
				"and rollout.x0y stops nothing meanwhile: " + in.Keyless})
	}
	fleet := discovery.Phase{Draft: c.Draft}
	switch believed := fleet.Discover(); {
	case believed && fleet.FirstPlanWaits():
		c.keep()
	case believed:
		c.plan()
	case c.rescues():
		c.rescue()
	default:
		c.keep()
	}
	return c.Out
}

// untilNow takes what lies in the future as now: the clock was ahead, once. A stage under way began now, then, which
// differs from the plan that was read and is to be written: its deadline would pass for nobody else.
func untilNow(in input.Inputs) input.Inputs {
	in.Memory = in.Memory.Until(in.Now)
	in.Memory.Changes = in.Memory.Changes.Named(in.Names())
	if p := in.InForce; p != nil && p.Rollout != nil && p.Rollout.Since.After(in.Now) {
		now := p.Clone()
		if in.Memory.Changes.Counted.Equal(in.Now) { // its moves were counted
			in.Memory.Changes.Counted = in.Now.UTC().Truncate(time.Second)
		}
		now.Rollout.Since = in.Now.UTC().Truncate(time.Second)
		in.InForce = &now
	}
	return in
}

// plan is the cycle of a fleet that is believed.
func (c *cycle) plan() {
	in, base := c.In, c.base()
	c.Out.Pins = standing.Pins(in.Pins, c.Out.Fleet.Clusters)
	a := adopt.Plan(in, c.Out.Fleet, base, c.Out.Pins)
	belief.RestoreLastRestart(c.Draft, a.Ground)
	loads.Make(c.Draft, a.Ground)
	inuse.Learn(c.Draft)
	inuse.Limit(c.Draft, a.Ground)
	c.breaker.Look(a.Ground)
	pinning{c.Draft}.pinProblems(a.Ground)
	c.Out.Problems = append(c.Out.Problems, a.Found...)
	c.Out.Memory.Gone = a.Gone
	c.Indexes = outcome.IndexesOf(c.Out.Fleet, c.Out.Loads)
	c.Out.Now = outcome.ReplicasOf(c.Indexes, a.Next.Replicas, a.Standing)
	c.decide(a.Ground)
	sizing.Size(c.Draft, c.verdicts, a.Ground)
	c.finish(a)
}

// keep ends a cycle that could not see the fleet: the plan in force, or the one to mend it from, as it is. Only a
// rollout that may have stopped every replica goes on: its deadlines bring them back, whatever Secrets come and go
// meanwhile.
func (c *cycle) keep() {
	c.Out.Pins = standing.Pins(c.In.Pins, nil)
	base := cmp.Or(c.In.InForce, c.In.Last)
	if base == nil {
		return
	}
	a := c.unchanged(*base)
	c.Notes = append(c.Notes, a.Notes...)
	if c.In.InForce == nil {
		c.Note(belief.PutBack(c.In.PlanFault))
	} else if a.Next.StopsAll() {
		c.turnsBack = gate.GoneAtOnce
		advancing{c}.advance(a.Ground)
	}
	c.Out.Next = a.Next
	if c.Out.Changed = c.changes(a.Next); c.Out.Changed {
		c.Out.Reason = strings.Join(c.Notes, "; ")
	}
}

// base is what this cycle starts from: the plan in force, else the newest of the history, else the fleet as it is.
func (c *cycle) base() plan.Plan {
	switch {
	case c.In.InForce != nil:
		return belief.WithinBounds(*c.In.InForce, c.In, c.Out.Fleet)
	case c.In.Last != nil:
		c.Note(belief.PutBack(c.In.PlanFault))
		return belief.WithinBounds(*c.In.Last, c.In, c.Out.Fleet)
	}
	return belief.FirstPlan(c.In)
}

// How many mistakes in data.pins people are told of, and for how many of them a name is looked for that they may have
// meant; the webhook lets none in while it answers.
const (
	mostPinProblems = 20
	mostPinHints    = 5
)

// pinning says what becomes of pins.
type pinning struct{ *outcome.Draft }

// pinProblems says which pins do not hold, and why: a pin is a person's word, and is never dropped in silence.
func (w pinning) pinProblems(g *ground.Ground) {
	for _, p := range w.In.PinProblems[:min(len(w.In.PinProblems), mostPinProblems)] {
		w.Tell(problem.Problem{Phase: problem.PhasePartition, Subject: p.Name, Kind: "PinRefused",
			Message: "data.pins: " + p.Error()})
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(w.Out.Pins)) {
		if !standing.Has(w.Out.Fleet, name) {
			unknown = append(unknown, name)
			continue
		}
		if kind, why := w.pinWaits(g, w.Out.Pins[name]); why != "" {
			w.Tell(problem.Problem{Phase: problem.PhasePartition, Subject: name, Kind: kind,
				Message: fmt.Sprintf("%q is pinned to replica %d, and %s", name, w.Out.Pins[name], why)})
		}
	}
	for i, name := range unknown[:min(len(unknown), mostPinProblems)] {
		w.Tell(w.pinUnknown(name, i < mostPinHints))
	}
	if more := len(unknown) - mostPinProblems; more > 0 {
		w.Tell(problem.Problem{Phase: problem.PhasePartition, Kind: "PinUnknown",
			Message: fmt.Sprintf("%d more pins name no cluster Secret", more)})
	}
}

func (w pinning) pinUnknown(name string, hint bool) problem.Problem {
	p := problem.Problem{Phase: problem.PhasePartition, Subject: name, Kind: "PinUnknown",
		Message: fmt.Sprintf("%q is pinned to replica %d, and no cluster Secret has that name", name, w.Out.Pins[name])}
	if !hint {
		return p
	}
	if near := people.Nearest(name, standing.Names(w.Out.Fleet)); near != "" {
		p.Message += fmt.Sprintf("; %q has", near)
	}
	return p
}

const untilResume = "while nothing scales (frozen, or stopped after a wave that did harm): \"ballast resume\" ends that"

// pinWaits says why a pin of a cluster that is there does not hold; empty: it does, or comes about.
func (w pinning) pinWaits(g *ground.Ground, replica int) (kind, why string) {
	there := fmt.Sprintf("there are %d: it waits ", g.Next.Replicas)
	switch {
	case replica >= g.Next.MaxReplicas:
		return "PinRefused", fmt.Sprintf("maxReplicas is %d: pin it lower, or raise partition.maxReplicas",
			g.Next.MaxReplicas)
	case replica < g.Next.Replicas:
		return "", ""
	case g.Next.Mode != plan.Enforce:
		return "PinWaits", there + fmt.Sprintf("for mode Enforce, since %s scales nothing", g.Next.Mode)
	case g.Next.Unmanaged:
		return "PinWaits", there + "while the workload is annotated as unmanaged, which keeps ballast from scaling it"
	case safety.Stops(w.In, w.Out.Memory.Changes):
		return "PinWaits", there + untilResume
	case proposal.DownWithClusters(g.Next, w.Out.Replicas):
		until := there + "until what is on a replica that does not work has left it"
		if held := proposal.HeldOnDown(g, w.Out.Replicas); held != "" {
			until += "; " + held
		}
		return "PinWaits", until
	case g.Next.FreeReplicas:
		return "PinWaits", there + "until whoever scales the workload has as many as it needs (partition.replicas: workload)"
	}
	return "", ""
}

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
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/inuse"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/safety"
	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// Run runs every phase once. It has no error: what a phase cannot do is a Problem, and the plan in force stays.
func Run(in input.Inputs) outcome.Outcome { return run(in).Printable() }

func run(in input.Inputs) outcome.Outcome {
	in, redated := untilNow(in)
	return sizing.WithGrowth(in, func(held sizing.Ungrown) outcome.Outcome {
		return newCycle(in, redated, held).run()
	})
}

func (c *cycle) run() outcome.Outcome {
	in := c.In
	if in.PlanFault != "" {
		c.Tell(planFaultProblem(in.PlanFault))
	}
	if in.Keyless != "" {
		c.Tell(problem.Problem{Phase: problem.PhaseStore, Kind: "KeyMissing",
			Message: "this leader goes on by the key that it knows, the next one plans nothing, " +
				"and rollout.x0y stops nothing meanwhile: " + in.Keyless})
	}
	fleet := discovery{c.Draft}
	switch believed := fleet.discover(); {
	case believed && fleet.unsaid():
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

// untilNow takes what lies in the future as now: the clock was ahead, once. redated says that the stage under way began
// now, which is to be written: its deadline would pass for nobody else.
func untilNow(in input.Inputs) (_ input.Inputs, redated bool) {
	in.Memory = in.Memory.Until(in.Now)
	if p := in.InForce; p != nil && p.Rollout != nil && p.Rollout.Since.After(in.Now) {
		now := p.Clone()
		if in.Memory.Changes.Counted.Equal(in.Now) { // its moves were counted
			in.Memory.Changes.Counted = in.Now.UTC().Truncate(time.Second)
		}
		now.Rollout.Since = in.Now.UTC().Truncate(time.Second)
		in.InForce, redated = &now, true
	}
	return in, redated
}

// unsaid reports whether the first plan waits: it is the fleet as it is, or there is none.
func (d discovery) unsaid() bool {
	p := cmp.Or(d.In.InForce, d.In.Last)
	if p != nil && (p.Mode.Enforced() || d.In.InForce == nil) { // one that holds nothing is made anew of what is seen
		return false
	}
	if name := standing.Unsaid(d.In, d.Out.Fleet); name != "" {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: d.In.Workload.Name, Kind: "EnvUnknown", Message: fmt.Sprintf(
			"%s of %s %q comes from a reference (valueFrom or envFrom), the pods do not bear out what a ConfigMap says it holds, "+
				"and none says who has %q: there is no plan until the pods do (their metrics on port 8082 must be reachable, or in Prometheus), "+
				"or until the env has a value of its own, as a number",
			plan.EnvReplicas, d.In.Workload.Kind, d.In.Workload.Name, name), Keeps: true})
		return true
	}
	silent := standing.Unweighed(d.In, d.Out.Fleet)
	if len(silent) == 0 {
		return false
	}
	d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: d.In.Workload.Name, Kind: "OwnersUnknown", Message: fmt.Sprintf(
		"Argo CD's consistent-hashing places clusters without a shard by the number of all Applications, and no pod says that it has %s: "+
			"nothing is planned until the pods do (their metrics on port 8082 must be reachable, or in Prometheus), or until those Secrets have a shard",
		problem.ClipList(silent)), Keeps: true})
	return true
}

// plan is the cycle of a fleet that is believed.
func (c *cycle) plan() {
	in, base := c.In, c.base()
	c.Out.Pins = standing.Pins(in.Pins, c.Out.Fleet.Clusters)
	a := adopt.Plan(in, c.Out.Fleet, base, c.Out.Pins)
	lostPast{c.Draft}.restart(a.Ground)
	loads.Make(c.Draft, a.Ground)
	inuse.Learn(c.Draft)
	inuse.Limit(c.Draft, a.Ground)
	c.watch.Look(a.Ground)
	pinning{c.Draft}.pinProblems(a.Ground)
	c.Out.Problems = append(c.Out.Problems, a.Found...)
	c.Out.Memory.Gone = a.Gone
	c.Indexes = outcome.IndexesOf(c.Out.Fleet, c.Out.Loads)
	c.Out.Now = outcome.ReplicasOf(c.Indexes, a.Next.Replicas, a.Standing)
	c.decide(a.Ground)
	sizing.Size(c.Draft, c.verdicts, a.Ground)
	c.finish(a)
}

// cycle is one of them, in the order of its phases. Each phase is a type or a function that has the draft and what it needs beside it.
type cycle struct {
	*outcome.Draft
	watch     *safety.Watch
	votes     *election
	redated   bool           // the stage under way began in the future, by a clock that was ahead
	turnsBack string         // why a rollout that has stopped every replica brings them back as they were
	verdicts  gate.Verdicts  // of the gates, before anything began
	ungrown   sizing.Ungrown // replicas that nothing is levelled to, since they may not grow for it
}

func newCycle(in input.Inputs, redated bool, held sizing.Ungrown) *cycle {
	d := &outcome.Draft{In: in, Out: outcome.Outcome{Memory: in.Memory}}
	votes := &election{Draft: d, ballots: in.Memory.Votes}
	return &cycle{Draft: d, watch: &safety.Watch{Draft: d}, votes: votes, redated: redated, ungrown: held}
}

// discovery finds the fleet, and whether it can be believed.
type discovery struct{ *outcome.Draft }

// discover lists the fleet; false means that it cannot be believed: too many clusters are gone at once.
func (d discovery) discover() bool {
	in := d.In.Discovered
	in.InClusterOwner = sharding.InClusterOwner(standing.Algorithm(d.In), standing.ControllerReplicas(d.In.Workload))
	in.Secrets = d.withBarred(d.withWorkedOn(in.Secrets))
	var err error
	d.Out.Fleet, d.Out.Memory.Known, err = discover.Discover(in, d.In.KnownFleet(),
		discover.Options{MaxShrink: d.In.Config.Discover.MaxShrink.Share(), Before: d.In.Memory.Servers, Made: d.In.Memory.Made, Had: d.In.Had}, d.In.Now)
	d.In.Workload.EnvSaid = standing.Confirmed(d.In, d.Out.Fleet)
	if beside := d.In.Workload.Beside; beside != "" {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: d.In.Workload.Name, Kind: "TargetAmbiguous", Message: fmt.Sprintf("several workloads may be the application-controller: the plan stays with %s %s; "+
			"set target.kind and target.name, or delete what is none: %s", d.In.Workload.Kind, d.In.Workload.Name, beside)})
	}
	for _, p := range d.Out.Fleet.Problems {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: p.Secret, Kind: string(p.Kind), Message: p.Message})
	}
	if err != nil { // a *discover.ShrinkError
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Kind: "Shrunk", Message: err.Error(), Keeps: true})
	}
	d.remember()
	return err == nil
}

// remember keeps the servers of the clusters, and when their Secrets were made.
func (d discovery) remember() {
	clusters := d.Out.Fleet.Clusters
	servers, made := make(map[string]string, len(clusters)), make(map[string]time.Time, len(clusters))
	for i := range clusters {
		cl := &clusters[i]
		servers[cl.Shard.ID] = cl.Shard.Server
		if !cl.Created.IsZero() {
			made[cl.Shard.ID] = cl.Created
		}
	}
	d.Out.Memory.Servers, d.Out.Memory.Made = servers, made
}

// mostBarred is how many Secrets that cannot be written people are told of, each by name.
const mostBarred = 20

// withWorkedOn counts a cluster that Argo CD is told to leave alone as long as its pods do not: before 3.4 they pass the
// annotation over on a Secret, and what they work on costs its replica as much as any other.
func (d discovery) withWorkedOn(secrets []discover.Secret) []discover.Secret {
	var counted []string
	for i := range secrets {
		s := &secrets[i]
		if !s.SkipReconcile {
			continue
		}
		_, had := d.In.Memory.Changes.Ownership.Last[s.Name]
		if shown, looked := d.In.Observed.Reported.Clusters[s.Name]; looked && d.In.Observed.Reported.Asked {
			had = len(shown.Holders) > 0
		}
		if !had {
			continue
		}
		if counted == nil {
			secrets = slices.Clone(secrets)
		}
		secrets[i].SkipReconcile = false
		counted = append(counted, s.Name)
	}
	if len(counted) > 0 {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Kind: "SkipIgnored", Message: fmt.Sprintf(
			"the pods reconcile Applications of %s though annotated %s, which Argo CD before 3.4 does not heed on a Secret: they count as any other; the first: %q",
			problem.Plural(len(counted), "cluster"), discover.AnnotationSkipReconcile, counted[0])})
	}
	return secrets
}

// withBarred makes a Secret that the API server lets nobody write what it is: as good as immutable. What waited for it
// would wait for good, and with it all others.
func (d discovery) withBarred(secrets []discover.Secret) []discover.Secret {
	cannot := func(s discover.Secret) bool { // one that is being deleted has a problem of its own
		_, barred := d.In.Barred[s.Name]
		return (barred || s.Deleting) && !s.Immutable && !s.Unmanaged
	}
	if !slices.ContainsFunc(secrets, cannot) {
		return secrets
	}
	secrets = slices.Clone(secrets)
	told := 0
	for i, s := range secrets {
		if !cannot(s) {
			continue
		}
		secrets[i].Immutable = true
		why, barred := d.In.Barred[s.Name]
		if !barred {
			continue
		}
		if told++; told <= mostBarred {
			d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: s.Name, Kind: "Unwritable", Message: fmt.Sprintf(
				"ballast cannot write Secret %q, so its cluster stays where it is, and nothing waits for it; it is tried again from time to time: %s", s.Name, why)})
		}
	}
	if more := told - mostBarred; more > 0 {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Kind: "Unwritable", Message: fmt.Sprintf("%d more Secrets cannot be written", more)})
	}
	return secrets
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
		c.Note(putBack(c.In.PlanFault))
	} else if a.Next.StopsAll() {
		c.turnsBack = gate.GoneAtOnce
		advancing{c}.advance(a.Ground)
	}
	c.Out.Next = a.Next
	if c.Out.Changed = c.In.InForce == nil || c.redated || !a.Next.SameEnforced(*c.In.InForce); c.Out.Changed {
		c.Out.Reason = strings.Join(c.Notes, "; ")
	}
}

// base is what this cycle starts from: the plan in force, else the newest of the history, else the fleet as it is.
func (c *cycle) base() plan.Plan {
	switch {
	case c.In.InForce != nil:
		return withinBounds(*c.In.InForce, c.In, c.Out.Fleet)
	case c.In.Last != nil:
		c.Note(putBack(c.In.PlanFault))
		return withinBounds(*c.In.Last, c.In, c.Out.Fleet)
	}
	return firstPlan(c.In)
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
		w.Tell(problem.Problem{Phase: problem.PhasePartition, Subject: p.Name, Kind: "PinRefused", Message: "data.pins: " + p.Error()})
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(w.Out.Pins)) {
		if !standing.Has(w.Out.Fleet, name) {
			unknown = append(unknown, name)
			continue
		}
		if kind, why := w.pinWaits(g, w.Out.Pins[name]); why != "" {
			w.Tell(problem.Problem{Phase: problem.PhasePartition, Subject: name, Kind: kind, Message: fmt.Sprintf("%q is pinned to replica %d, and %s", name, w.Out.Pins[name], why)})
		}
	}
	for i, name := range unknown[:min(len(unknown), mostPinProblems)] {
		w.Tell(w.pinUnknown(name, i < mostPinHints))
	}
	if more := len(unknown) - mostPinProblems; more > 0 {
		w.Tell(problem.Problem{Phase: problem.PhasePartition, Kind: "PinUnknown", Message: fmt.Sprintf("%d more pins name no cluster Secret", more)})
	}
}

func (w pinning) pinUnknown(name string, hint bool) problem.Problem {
	p := problem.Problem{Phase: problem.PhasePartition, Subject: name, Kind: "PinUnknown",
		Message: fmt.Sprintf("%q is pinned to replica %d, and no cluster Secret has that name", name, w.Out.Pins[name])}
	if !hint {
		return p
	}
	if near := plan.Nearest(name, standing.Names(w.Out.Fleet)); near != "" {
		p.Message += fmt.Sprintf("; %q has", near)
	}
	return p
}

// pinWaits says why a pin of a cluster that is there does not hold; empty: it does, or comes about.
func (w pinning) pinWaits(g *ground.Ground, replica int) (kind, why string) {
	there := fmt.Sprintf("there are %d: it waits ", g.Next.Replicas)
	switch {
	case replica >= g.Next.MaxReplicas:
		return "PinRefused", fmt.Sprintf("maxReplicas is %d: pin it lower, or raise partition.maxReplicas", g.Next.MaxReplicas)
	case replica < g.Next.Replicas:
		return "", ""
	case g.Next.Mode != plan.Enforce:
		return "PinWaits", there + fmt.Sprintf("for mode Enforce, since %s scales nothing", g.Next.Mode)
	case g.Next.Unmanaged:
		return "PinWaits", there + "while the workload is annotated as unmanaged, which keeps ballast from scaling it"
	case stranded(g.Next, w.Out.Replicas):
		return "PinWaits", there + "until what is on a replica that does not work has left it"
	case safety.Stops(w.In, w.Out.Memory.Changes):
		return "PinWaits", there + "while nothing scales (frozen, or stopped after a wave that did harm): \"ballast resume\" ends that"
	case g.Next.FreeReplicas:
		return "PinWaits", there + "until whoever scales the workload has as many as it needs (partition.replicas: workload)"
	}
	return "", ""
}

// finish compares with the plan in force and words the reason. A plan that enforces the same is the one in force, loads
// and revision too, since rows keep the load of their decision.
func (c *cycle) finish(a *adopt.Adoption) {
	c.Notes = append(a.Notes, c.Notes...)
	adopt.SayArrivals(a.Ground)
	adopt.SayFull(a.Ground, c.Out.Memory.Changes.Target, division.Capacity(a.Ground), c.Out.Loads)
	c.noteFull(a.Next.Full)
	c.Out.Next = a.Next
	c.Out.Changed = c.In.InForce == nil || c.redated || !a.Next.SameEnforced(*c.In.InForce)
	if !c.Out.Changed {
		return
	}
	c.stampLoads(a.Ground)
	ledger.Ledger{Draft: c.Draft}.CountAdopted(a)
	ledger.Ledger{Draft: c.Draft}.CountStage(c.Out.Next, a.Beside)
	if c.In.InForce == nil && c.In.Last == nil {
		c.Out.Decided = true
		c.Note(fmt.Sprintf("took over the fleet as it is: %d clusters on %d replicas", len(c.Out.Next.Clusters), c.Out.Next.Replicas))
	}
	if c.Provisional != "" {
		c.Note(c.Provisional)
	}
	if len(c.Notes) == 0 {
		c.Note("what is enforced changed with the configuration or the Secrets")
	}
	c.Out.Reason = strings.Join(c.Notes, "; ")
}

// noteFull says that other replicas than before take no new cluster.
func (c *cycle) noteFull(full []int) {
	switch {
	case c.In.InForce == nil || slices.Equal(full, c.In.InForce.Full):
	case len(full) == 0:
		c.Note("no replica is full any more: each takes new clusters")
	default:
		c.Note(division.ReplicaList(slices.Clone(full)) + " takes no new cluster while another one does: it is full")
	}
}

// stampLoads writes the loads of this decision into the rows; the last ones stay while nothing is known. Where they
// leave the plan no room they go: they are for people.
func (c *cycle) stampLoads(g *ground.Ground) {
	defer c.dropLoads()
	if c.Out.Loads == nil || c.Out.Table.Frozen {
		return
	}
	for i, cl := range c.Out.Fleet.Clusters {
		if row, ok := c.Out.Next.Clusters[cl.Shard.ID]; ok {
			if row.Load = c.Indexes[i].DisplayValue; c.Out.Loads[i] == 0 && adopt.Unmeasured(g, i) {
				row.Load = "" // nothing is known of it yet, which is not that it carries nothing
			}
			c.Out.Next.Clusters[cl.Shard.ID] = row
		}
	}
}

func (c *cycle) dropLoads() {
	if plan.Room(c.Out.Next) >= 0 {
		return
	}
	for name, row := range c.Out.Next.Clusters {
		row.Load = ""
		c.Out.Next.Clusters[name] = row
	}
}

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

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/measure"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// Run runs every phase once. It has no error: what a phase cannot do is a Problem, and the plan in force stays.
func Run(in input.Inputs) Outcome { return run(in).printable() }

func run(in input.Inputs) Outcome {
	in, redated := untilNow(in)
	c := &cycle{in: in, redated: redated, ballots: in.Memory.Votes, out: Outcome{Memory: in.Memory}}
	if in.PlanFault != "" {
		c.problem(planFaultProblem(in.PlanFault))
	}
	if in.Keyless != "" {
		c.problem(problem.Problem{Phase: problem.PhaseStore, Kind: "KeyMissing",
			Message: "this leader goes on by the key that it knows, the next one plans nothing, " +
				"and rollout.x0y stops nothing meanwhile: " + in.Keyless})
	}
	switch believed := c.discover(); {
	case believed && c.unsaid():
		c.keep()
	case believed:
		c.plan()
	case c.rescues():
		c.rescue()
	default:
		c.keep()
	}
	return c.out
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
func (c *cycle) unsaid() bool {
	p := cmp.Or(c.in.InForce, c.in.Last)
	if p != nil && (p.Mode.Enforced() || c.in.InForce == nil) { // one that holds nothing is made anew of what is seen
		return false
	}
	name := standing.Unsaid(c.in, c.out.Fleet)
	if name == "" {
		return false
	}
	c.problem(problem.Problem{Phase: problem.PhaseDiscover, Subject: c.in.Workload.Name, Kind: "EnvUnknown", Message: fmt.Sprintf(
		"%s of %s %q comes from a reference (valueFrom or envFrom), the pods do not bear out what a ConfigMap says it holds, "+
			"and none says who has %q: there is no plan until the pods do (their metrics on port 8082 must be reachable, or in Prometheus), or until the env has a value of its own, as a number",
		plan.EnvReplicas, c.in.Workload.Kind, c.in.Workload.Name, name), Keeps: true})
	return true
}

// plan is the cycle of a fleet that is believed.
func (c *cycle) plan() {
	in, base := c.in, c.base()
	c.out.Pins = standing.Pins(in.Pins, c.out.Fleet.Clusters)
	a := adopt(in, c.out.Fleet, base, c.out.Pins)
	c.poll(a)
	c.indexLoads(a)
	c.limit(a)
	c.learnMemory()
	c.limitMemory(a)
	c.look(a)
	c.pinProblems(a)
	c.out.Problems = append(c.out.Problems, a.found...)
	c.out.Memory.Gone = a.gone
	c.indexes = loadIndexes(c.out.Fleet, c.out.Loads)
	c.out.Now = replicasOf(c.indexes, a.next.Replicas, a.standing)
	c.decide(a)
	c.size(a)
	c.finish(a)
}

type cycle struct {
	redated         bool             // the stage under way began in the future, by a clock that was ahead
	turnsBack       string           // why a rollout that has stopped every replica brings them back as they were
	expectedOrphans []string         // clusters without an owner, or soon to be, by no wave's doing
	indexes         []plan.LoadIndex // of Fleet.Clusters
	in              input.Inputs
	out             Outcome
	notes           []string
	ballots         evaluate.History // the vote as it goes on where what it elects does not begin
	provisional     string           // what of the references is not certain yet
	verdicts        verdicts         // of the gates, before anything began
}

// discover lists the fleet; false means that it cannot be believed: too many clusters are gone at once.
func (c *cycle) discover() bool {
	in := c.in.Discovered
	in.InClusterOwner = sharding.InClusterOwner(standing.Algorithm(c.in), standing.ControllerReplicas(c.in.Workload))
	in.Secrets = c.withBarred(c.withWorkedOn(in.Secrets))
	var err error
	c.out.Fleet, c.out.Memory.Known, err = discover.Discover(in, c.in.KnownFleet(),
		discover.Options{MaxShrink: c.in.Config.Discover.MaxShrink.Share(), Before: c.in.Memory.Servers, Made: c.in.Memory.Made, Had: c.in.Had}, c.in.Now)
	c.in.Workload.EnvSaid = standing.Confirmed(c.in, c.out.Fleet)
	if beside := c.in.Workload.Beside; beside != "" {
		c.problem(problem.Problem{Phase: problem.PhaseDiscover, Subject: c.in.Workload.Name, Kind: "TargetAmbiguous", Message: fmt.Sprintf("several workloads may be the application-controller: the plan stays with %s %s; "+
			"set target.kind and target.name, or delete what is none: %s", c.in.Workload.Kind, c.in.Workload.Name, beside)})
	}
	for _, p := range c.out.Fleet.Problems {
		c.problem(problem.Problem{Phase: problem.PhaseDiscover, Subject: p.Secret, Kind: string(p.Kind), Message: p.Message})
	}
	if err != nil { // a *discover.ShrinkError
		c.problem(problem.Problem{Phase: problem.PhaseDiscover, Kind: "Shrunk", Message: err.Error(), Keeps: true})
	}
	clusters := len(c.out.Fleet.Clusters)
	c.out.Memory.Servers, c.out.Memory.Made = make(map[string]string, clusters), make(map[string]time.Time, clusters)
	for _, cl := range c.out.Fleet.Clusters {
		c.out.Memory.Servers[cl.Shard.ID] = cl.Shard.Server
		if !cl.Created.IsZero() {
			c.out.Memory.Made[cl.Shard.ID] = cl.Created
		}
	}
	return err == nil
}

// mostBarred is how many Secrets that cannot be written people are told of, each by name.
const mostBarred = 20

// withWorkedOn counts a cluster that Argo CD is told to leave alone as long as its pods do not: before 3.4 they pass the
// annotation over on a Secret, and what they work on costs its replica as much as any other.
func (c *cycle) withWorkedOn(secrets []discover.Secret) []discover.Secret {
	var counted []string
	for i, s := range secrets {
		_, had := c.in.Memory.Changes.Ownership.Last[s.Name]
		if shown, looked := c.in.Observed.Reported.Clusters[s.Name]; looked && c.in.Observed.Reported.Asked {
			had = len(shown.Holders) > 0
		}
		if !s.SkipReconcile || !had {
			continue
		}
		if counted == nil {
			secrets = slices.Clone(secrets)
		}
		secrets[i].SkipReconcile = false
		counted = append(counted, s.Name)
	}
	if len(counted) > 0 {
		c.problem(problem.Problem{Phase: problem.PhaseDiscover, Kind: "SkipIgnored", Message: fmt.Sprintf(
			"the pods reconcile Applications of %s though annotated %s, which Argo CD before 3.4 does not heed on a Secret: they count as any other; the first: %q",
			problem.Plural(len(counted), "cluster"), discover.AnnotationSkipReconcile, counted[0])})
	}
	return secrets
}

// withBarred makes a Secret that the API server lets nobody write what it is: as good as immutable. What waited for it
// would wait for good, and with it all others.
func (c *cycle) withBarred(secrets []discover.Secret) []discover.Secret {
	cannot := func(s discover.Secret) bool { // one that is being deleted has a problem of its own
		_, barred := c.in.Barred[s.Name]
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
		why, barred := c.in.Barred[s.Name]
		if !barred {
			continue
		}
		if told++; told <= mostBarred {
			c.problem(problem.Problem{Phase: problem.PhaseDiscover, Subject: s.Name, Kind: "Unwritable", Message: fmt.Sprintf(
				"ballast cannot write Secret %q, so its cluster stays where it is, and nothing waits for it; it is tried again from time to time: %s", s.Name, why)})
		}
	}
	if more := told - mostBarred; more > 0 {
		c.problem(problem.Problem{Phase: problem.PhaseDiscover, Kind: "Unwritable", Message: fmt.Sprintf("%d more Secrets cannot be written", more)})
	}
	return secrets
}

// keep ends a cycle that could not see the fleet: the plan in force, or the one to mend it from, as it is. Only a
// rollout that may have stopped every replica goes on: its deadlines bring them back, whatever Secrets come and go
// meanwhile.
func (c *cycle) keep() {
	c.out.Pins = standing.Pins(c.in.Pins, nil)
	base := cmp.Or(c.in.InForce, c.in.Last)
	if base == nil {
		return
	}
	a := c.unchanged(*base)
	if c.in.InForce == nil {
		c.note(putBack(c.in.PlanFault))
	} else if a.next.StopsAll() {
		c.turnsBack = goneAtOnce
		c.advance(a)
	}
	c.out.Next = a.next
	if c.out.Changed = c.in.InForce == nil || c.redated || !a.next.SameEnforced(*c.in.InForce); c.out.Changed {
		c.out.Reason = strings.Join(c.notes, "; ")
	}
}

// base is what this cycle starts from: the plan in force, else the newest of the history, else the fleet as it is.
func (c *cycle) base() plan.Plan {
	switch {
	case c.in.InForce != nil:
		return withinBounds(*c.in.InForce, c.in, c.out.Fleet)
	case c.in.Last != nil:
		c.note(putBack(c.in.PlanFault))
		return withinBounds(*c.in.Last, c.in, c.out.Fleet)
	}
	return firstPlan(c.in)
}

// poll joins what Prometheus answered to the fleet.
func (c *cycle) poll(a *adoption) {
	p := c.in.Config.Poll
	table, err := measure.Join(MetricsOf(c.in.Config), c.out.Fleet, c.in.Fetched, c.in.Memory.LastGood,
		measure.Options{MinCoverage: p.MinCoverage.Float(), MaxDrop: p.MaxDrop.Share(),
			MaxAge: p.MaxAge(), Standings: c.standings(a)}, c.in.Now)
	if err != nil {
		c.problem(problem.Problem{Phase: problem.PhasePoll, Kind: "Refused", Message: err.Error(), Keeps: true})
		c.out.Table = measure.Table{Frozen: true}
		return
	}
	c.out.Table = table
	c.out.Memory.LastGood = measure.NewLastGood(table, c.in.Memory.LastGood)
	for _, p := range table.Problems {
		c.problem(problem.Problem{Phase: problem.PhasePoll, Subject: p.Metric, Kind: string(p.Kind), Message: p.Message, Keeps: table.Frozen})
	}
}

// indexLoads makes loads of the table and takes over references for metrics that had none.
func (c *cycle) indexLoads(a *adoption) {
	if c.out.Table.Columns == nil {
		return
	}
	c.undoRebase(a)
	anew, why := c.outdated(a)
	loads, references, problem := loadsOf(c.in.Config, c.out.Table, without(a.next.References, anew))
	if problem != nil {
		c.problem(*problem)
		return
	}
	c.out.Loads = loads
	if !c.out.Table.Frozen {
		c.takeReferences(a, references, anew, why)
	}
	unit := unitOf(c.in.Config, a.next.References)
	c.in.Memory, c.out.Memory = c.in.Memory.In(unit), c.out.Memory.In(unit)
}

// How many mistakes in data.pins people are told of, and for how many of them a name is looked for that they may have
// meant; the webhook lets none in while it answers.
const (
	mostPinProblems = 20
	mostPinHints    = 5
)

// pinProblems says which pins do not hold, and why: a pin is a person's word, and is never dropped in silence.
func (c *cycle) pinProblems(a *adoption) {
	for _, p := range c.in.PinProblems[:min(len(c.in.PinProblems), mostPinProblems)] {
		c.problem(problem.Problem{Phase: problem.PhasePartition, Subject: p.Name, Kind: "PinRefused", Message: "data.pins: " + p.Error()})
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(c.out.Pins)) {
		if !standing.Has(c.out.Fleet, name) {
			unknown = append(unknown, name)
			continue
		}
		if kind, why := c.pinWaits(a, c.out.Pins[name]); why != "" {
			c.problem(problem.Problem{Phase: problem.PhasePartition, Subject: name, Kind: kind, Message: fmt.Sprintf("%q is pinned to replica %d, and %s", name, c.out.Pins[name], why)})
		}
	}
	for i, name := range unknown[:min(len(unknown), mostPinProblems)] {
		c.problem(c.pinUnknown(name, i < mostPinHints))
	}
	if more := len(unknown) - mostPinProblems; more > 0 {
		c.problem(problem.Problem{Phase: problem.PhasePartition, Kind: "PinUnknown", Message: fmt.Sprintf("%d more pins name no cluster Secret", more)})
	}
}

func (c *cycle) pinUnknown(name string, hint bool) problem.Problem {
	p := problem.Problem{Phase: problem.PhasePartition, Subject: name, Kind: "PinUnknown",
		Message: fmt.Sprintf("%q is pinned to replica %d, and no cluster Secret has that name", name, c.out.Pins[name])}
	if !hint {
		return p
	}
	if near := plan.Nearest(name, standing.Names(c.out.Fleet)); near != "" {
		p.Message += fmt.Sprintf("; %q has", near)
	}
	return p
}

// pinWaits says why a pin of a cluster that is there does not hold; empty: it does, or comes about.
func (c *cycle) pinWaits(a *adoption, replica int) (kind, why string) {
	there := fmt.Sprintf("there are %d: it waits ", a.next.Replicas)
	switch {
	case replica >= a.next.MaxReplicas:
		return "PinRefused", fmt.Sprintf("maxReplicas is %d: pin it lower, or raise partition.maxReplicas", a.next.MaxReplicas)
	case replica < a.next.Replicas:
		return "", ""
	case a.next.Mode != plan.Enforce:
		return "PinWaits", there + fmt.Sprintf("for mode Enforce, since %s scales nothing", a.next.Mode)
	case a.next.Unmanaged:
		return "PinWaits", there + "while the workload is annotated as unmanaged, which keeps ballast from scaling it"
	case stranded(a.next, c.out.Replicas):
		return "PinWaits", there + "until what is on a replica that does not work has left it"
	case stops(c.in, c.out.Memory.Changes):
		return "PinWaits", there + "while nothing scales (frozen, or stopped after a wave that did harm): \"ballast resume\" ends that"
	}
	return "", ""
}

// finish compares with the plan in force and words the reason. A plan that enforces the same is the one in force, loads
// and revision too, since rows keep the load of their decision.
func (c *cycle) finish(a *adoption) {
	c.notes = append(a.notes, c.notes...)
	a.sayArrivals()
	c.out.Next = a.next
	c.out.Changed = c.in.InForce == nil || c.redated || !a.next.SameEnforced(*c.in.InForce)
	if !c.out.Changed {
		return
	}
	c.stampLoads()
	c.countAdopted(a)
	c.countStage(c.out.Next, a.beside)
	if c.in.InForce == nil && c.in.Last == nil {
		c.out.Decided = true
		c.note(fmt.Sprintf("took over the fleet as it is: %d clusters on %d replicas", len(c.out.Next.Clusters), c.out.Next.Replicas))
	}
	if c.provisional != "" {
		c.note(c.provisional)
	}
	if len(c.notes) == 0 {
		c.note("what is enforced changed with the configuration or the Secrets")
	}
	c.out.Reason = strings.Join(c.notes, "; ")
}

// stampLoads writes the loads of this decision into the rows; the last ones stay while nothing is known. Where they
// leave the plan no room they go: they are for people.
func (c *cycle) stampLoads() {
	defer c.dropLoads()
	if c.out.Loads == nil || c.out.Table.Frozen {
		return
	}
	for i, cl := range c.out.Fleet.Clusters {
		if row, ok := c.out.Next.Clusters[cl.Shard.ID]; ok {
			row.Load = c.indexes[i].DisplayValue
			c.out.Next.Clusters[cl.Shard.ID] = row
		}
	}
}

func (c *cycle) dropLoads() {
	if plan.Room(c.out.Next) >= 0 {
		return
	}
	for name, row := range c.out.Next.Clusters {
		row.Load = ""
		c.out.Next.Clusters[name] = row
	}
}

func (c *cycle) problem(p problem.Problem) { c.out.Problems = append(c.out.Problems, p) }

func (c *cycle) note(s string) { c.notes = append(c.notes, s) }

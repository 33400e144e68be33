package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/preview"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/failover"
	"ballast/planner/failover/health"
	"ballast/planner/plan"
)

// Answer is what would be.
type Answer struct {
	Supposed []string          `json:"supposed"`
	Now      Stand             `json:"now"`
	Without  Stand             `json:"without"` // where the fleet comes to rest without what is supposed
	With     Stand             `json:"with"`
	Arrived  []Place           `json:"arrived,omitempty"` // clusters that are added, where they come first
	Moves    []cycle.Move      `json:"moves,omitempty"`   // of what is there already, and of what came
	Lost     *Loss             `json:"lost,omitempty"`
	Line     *cycle.Line       `json:"line,omitempty"` // what a replica may carry, or is known to, before a loss
	Cost     Cost              `json:"cost"`
	Ahead    *preview.Forecast `json:"ahead,omitempty"`
	Verdict  string            `json:"verdict"`            // of the evaluation, at rest
	Problems []Problem         `json:"problems,omitempty"` // that the fleet does not have now
	Fit      Fit               `json:"fit"`

	loads map[string]string // of what moves, as people read them
	in    input.Inputs
	all   bool // every move is printed
}

// Problem is one that there would be.
type Problem = problem.Problem

// Place is where a cluster comes.
type Place struct {
	Cluster string `json:"cluster"`
	Replica int    `json:"replica"`
}

// Stand is what each replica carries.
type Stand struct {
	Replicas  []Carried `json:"replicas"`
	Imbalance float64   `json:"imbalance"` // makespan over mean
	Moves     int       `json:"moves"`     // it takes
	Settled   bool      `json:"settled"`   // false: it still moves after as many decisions as were looked at
}

// Carried is what one replica carries.
type Carried struct {
	Replica  int       `json:"replica"`
	Clusters int       `json:"clusters"`
	Load     plan.Load `json:"load"`
	Lost     bool      `json:"lost,omitempty"`
}

// Cost is what the moves cost: clusters that list every object anew.
type Cost struct {
	Clusters  int      `json:"clusters"`
	LoadHours float64  `json:"loadHours"`         // what they make in the time that a cold start counts
	Objects   *float64 `json:"objects,omitempty"` // that are listed anew, where the default metric is measured
}

// Loss is what becomes of what lost replicas had.
type Loss struct {
	AtOnce int             `json:"atOnce"`         // clusters that go as soon as the replicas are unwell, of all of them
	Later  int             `json:"later"`          // those that wait for the move budget
	Stay   int             `json:"stay"`           // those that have no replica until it is back
	Held   string          `json:"held,omitempty"` // why nothing goes: more than half of the fleet is lost
	Notes  []failover.Note `json:"notes,omitempty"`
}

// mostRounds bounds the decisions that are looked at: the partition settles within a few.
const mostRounds = 20

// rest is where a fleet comes to rest: the outcome of a cycle that wants nothing, and the inputs of it.
type rest struct {
	first, last cycle.Outcome
	in          input.Inputs
	settled     bool
}

// settle runs cycles, each with the plan in force that the one before wants, until none wants another.
func settle(in input.Inputs) (rest, error) {
	r := rest{in: in}
	for round := range mostRounds {
		r.last = cycle.Run(r.in)
		if round == 0 {
			r.first = r.last
		}
		if r.last.Candidate == nil {
			return r, noEvidence(r.last)
		}
		if same := r.last.Next.FreeReplicas || len(r.last.Candidate.Replicas) == r.last.Next.Replicas; same && len(r.last.Candidate.Moves) == 0 {
			r.settled = true
			return r, nil
		}
		r.in = taken(r.in, r.last)
	}
	r.last = cycle.Run(r.in)
	return r, nil
}

// noEvidence is why nobody can say what would be.
func noEvidence(out cycle.Outcome) error {
	for _, p := range out.Problems {
		if p.Keeps {
			return fmt.Errorf("nobody can say what would be: %s: %s", p.Phase, p.Message)
		}
	}
	return errors.New("nobody can say what would be: no metric is believed; ballast plan says which and why")
}

// ask answers what would be.
func ask(in input.Inputs, c change) (*Answer, error) {
	in, err := steady(in)
	if err != nil {
		return nil, err
	}
	now := cycle.Run(in)
	if now.Candidate == nil {
		return nil, noEvidence(now)
	}
	base := goesOn(in, now)
	without, err := settle(base)
	if err != nil {
		return nil, err
	}
	base.InForce = clone(base.InForce)
	supposed, err := c.apply(base, now)
	if err != nil {
		return nil, err
	}
	with := rest{first: without.first, last: without.first, in: supposed, settled: true} // a loss waits for no balance
	if !c.onlyLoses() {
		if with, err = settle(supposed); err != nil {
			return nil, err
		}
	}
	return answer(now, without, with, supposed, c)
}

// answer compares the fleet as it is with where it comes to rest without what is supposed, and with it.
func answer(now cycle.Outcome, without, with rest, supposed input.Inputs, c change) (*Answer, error) {
	a := &Answer{Supposed: c.words(), Now: standOf(now, true, 0), Verdict: with.last.Candidate.Verdict,
		Line: with.last.Line, in: supposed}
	a.Without = standOf(without.last, without.settled, len(movesTo(without.first.Next, without.last.Next)))
	a.Moves, a.Arrived = movesTo(with.first.Next, with.last.Next), arrivals(now.Next, with.first.Next)
	a.With = standOf(with.last, with.settled, len(a.Moves))
	a.Problems = fresh(now.Problems, with.last.Problems)
	a.costs(with)
	if !c.onlyLoses() {
		a.foresee(with)
	}
	if err := a.lose(with, c.lose); err != nil {
		return nil, err
	}
	a.fit(cmp.Or(with.last.Line, without.last.Line))
	return a, nil
}

func clone(p *plan.Plan) *plan.Plan {
	next := p.Clone()
	return &next
}

// standOf is what each replica carries under an outcome's plan.
func standOf(out cycle.Outcome, settled bool, moves int) Stand {
	s := Stand{Imbalance: outcome.Imbalance(out.Now), Settled: settled, Moves: moves}
	for _, r := range out.Now {
		s.Replicas = append(s.Replicas, Carried{Replica: r.ID, Clusters: len(r.LoadIndexes), Load: r.TotalLoad})
	}
	return s
}

// movesTo are the clusters of both plans that have another replica in the second one, by name.
func movesTo(from, to plan.Plan) (moves []cycle.Move) {
	for _, name := range slices.Sorted(maps.Keys(from.Clusters)) {
		if row, there := to.Clusters[name]; there && row.Replica != from.Clusters[name].Replica {
			moves = append(moves, cycle.Move{Cluster: name, From: from.Clusters[name].Replica, To: row.Replica})
		}
	}
	return moves
}

// arrivals are the clusters that the first plan does not have.
func arrivals(from, to plan.Plan) (places []Place) {
	for _, name := range slices.Sorted(maps.Keys(to.Clusters)) {
		if _, there := from.Clusters[name]; !there {
			places = append(places, Place{name, to.Clusters[name].Replica})
		}
	}
	return places
}

// fresh are the problems that were not there before.
func fresh(before, after []problem.Problem) (added []Problem) {
	type key struct {
		phase         problem.Phase
		kind, subject string
	}
	had := map[key]bool{}
	for _, p := range before {
		had[key{p.Phase, p.Kind, p.Subject}] = true
	}
	for _, p := range after {
		if !had[key{p.Phase, p.Kind, p.Subject}] {
			added = append(added, p)
		}
	}
	return added
}

// costs adds up what the moves cost.
func (a *Answer) costs(with rest) {
	moves := map[string]bool{}
	for _, m := range a.Moves {
		moves[m.Cluster] = true
	}
	a.Cost, a.loads = Cost{Clusters: len(moves)}, map[string]string{}
	objects := loads.Objects(a.in.Config, with.last.Table)
	if objects != nil {
		a.Cost.Objects = new(float64)
	}
	for i, cl := range with.last.Fleet.Clusters {
		if load := with.last.Loads[i]; moves[cl.Shard.ID] {
			a.loads[cl.Shard.ID] = load.Display()
			a.Cost.LoadHours += load.Float() * evaluate.Cold.Hours()
			if a.Cost.Objects != nil {
				*a.Cost.Objects += objects[i]
			}
		}
	}
}

// foresee says by which way it comes about, from where the clusters come first.
func (a *Answer) foresee(with rest) {
	out := with.first
	out.Fleet.Clusters = slices.Clone(out.Fleet.Clusters)
	for i, cl := range out.Fleet.Clusters { // the webhook writes it into those that come
		came := slices.IndexFunc(a.Arrived, func(p Place) bool { return p.Cluster == cl.Shard.ID })
		if came >= 0 {
			out.Fleet.Clusters[i].Explicit = discover.ShardValue{State: discover.ShardValid, N: a.Arrived[came].Replica}
		}
	}
	can := *out.Candidate
	can.Moves, can.Replicas = a.Moves, with.last.Now
	out.Candidate = &can
	a.Ahead = preview.Foresee(a.in, out)
}

// lose takes replicas away from the fleet at rest, which changes nothing but where their clusters go.
func (a *Answer) lose(with rest, lost []int) error {
	if len(lost) == 0 {
		return nil
	}
	in, count := goesOn(with.in, with.last), len(a.With.Replicas)
	for _, r := range lost {
		if r >= count {
			return fmt.Errorf("--lose: there would be no replica %d of %d: they are counted from 0", r, count)
		}
	}
	if in.Config.Failover == nil {
		return errors.New("--lose: failover is off in the configuration, so that nothing moves the clusters of a replica that is lost: " +
			"ballast evacuate does, and failover: {} turns it on")
	}
	loads := map[string]plan.Load{}
	for i, cl := range with.last.Fleet.Clusters {
		loads[cl.Shard.ID] = with.last.Loads[i]
		if row, there := in.InForce.Clusters[cl.Shard.ID]; there {
			row.Load = loads[cl.Shard.ID].Display()
			in.InForce.Clusters[cl.Shard.ID] = row
		}
	}
	moved := a.failOver(in, lost)
	for _, name := range slices.Sorted(maps.Keys(moved)) {
		m := cycle.Move{Cluster: name, From: in.InForce.Clusters[name].Replica, To: moved[name]}
		a.With.shift(m, loads[name])
		a.loads[name] = loads[name].Display()
		a.move(m)
	}
	a.With.Moves = len(a.Moves)
	for _, r := range lost {
		a.With.Replicas[r].Lost = true
		a.Lost.Stay += a.With.Replicas[r].Clusters
	}
	a.With.Imbalance = imbalance(a.With.Replicas)
	return nil
}

// failOver is where everything goes in the end, as if the move budget had room.
func (a *Answer) failOver(in input.Inputs, lost []int) map[string]int {
	a.Lost = &Loss{}
	if health.OfMost(len(lost), len(a.With.Replicas)) {
		ill := health.Verdict{Held: health.WholeFleet, Sick: make([]health.Sick, len(lost))}
		a.Lost.Held = ill.String()
		return nil
	}
	e := preview.PreviewLoss(in, lost, math.MaxInt)
	a.Lost.AtOnce, a.Lost.Notes = preview.PreviewLoss(in, lost, 0).FailedOver, e.Notes
	a.Lost.Later = len(e.Moves) - a.Lost.AtOnce
	return e.Moves
}

func (s *Stand) shift(m cycle.Move, load plan.Load) {
	from, to := &s.Replicas[m.From], &s.Replicas[m.To]
	from.Load, from.Clusters = from.Load-load, from.Clusters-1
	to.Load, to.Clusters = to.Load+load, to.Clusters+1
}

// move adds a move to those of before: what moves twice goes from its first replica to its last.
func (a *Answer) move(m cycle.Move) {
	at, found := slices.BinarySearchFunc(a.Moves, m, func(x, y cycle.Move) int { return cmp.Compare(x.Cluster, y.Cluster) })
	switch {
	case !found:
		a.Moves = slices.Insert(a.Moves, at, m)
	case a.Moves[at].From == m.To:
		a.Moves = slices.Delete(a.Moves, at, at+1)
	default:
		a.Moves[at].To = m.To
	}
}

// imbalance is the makespan over the mean of those that are not lost.
func imbalance(replicas []Carried) float64 {
	var left []plan.Replica
	for _, r := range replicas {
		if !r.Lost {
			left = append(left, plan.Replica{TotalLoad: r.Load})
		}
	}
	return outcome.Imbalance(left)
}

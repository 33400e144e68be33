// Package sticky divides a fleet from the plan in force: what works stays where it is.
//
// It acts on four things only, in this order:
//
//   - what must: items that are new, whose replica is gone, that are pinned elsewhere, or that a cap, a group or a lack of
//     memory drives out. The heaviest goes first, to the least loaded replica that may have it; another replica opens where none may;
//   - overload: a replica with two or more items above High of the capacity, or of the memory, gives up the fewest items that bring it
//     below, of those the lightest, to replicas that stay at or below Low with them: the least loaded, else the fullest
//     that fits, else by a swap, else by moving a third item out of the way, else one more replica opens;
//   - a replica that has next to nothing, where the load does not say how many there are: one that somebody added gets
//     what the fullest others can spare, up to an even share;
//   - a replica that is not needed: the highest, once all its items fit on the others at or below Drain. The answer says
//     so in Drain; how long that must have been so is the caller's to know, who then asks with DrainDue.
//
// Where the number of replicas is fixed, or is the most there may be and the capacity is used up, the capacity is what
// leaves each replica a little more than its even share: then this levels, in the same way.
//
// Moves of the first kind are not counted against MaxMoves, since the rules ask for them. Everything else follows from
// the loads alone: the same question has the same answer on every machine, and a plan that is in force already is
// answered with no move. It takes O(N), and O(R) for each item that moves.
package sticky

import (
	"cmp"
	"fmt"
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// Options are shares of the capacity in plan.LoadUnit (950_000_000 is 0.95), and limits. 0 stands for the default.
type Options struct {
	High   plan.Load // a replica above it gives items up; 0.95
	Down   plan.Load // ... until it is at or below this, so that it is not above High again at once; High
	Low    plan.Load // a replica that takes some stays at or below it; 0.85
	Drain  plan.Load // the highest replica goes once the others stay at or below it; 0.80
	Useful plan.Load // a replica that gives items up gives up this much at least; 0.02

	Even     plan.Load              // an even share of before: it counts where it is larger, up to half as much more than the present one
	MaxMoves int                    // for overload and drain, of one call; 0: no limit
	DrainDue bool                   // the highest replica may be drained now
	Patient  func(replica int) bool // nothing is done for that replica's sake now; nil: for every one there is
	Budget   int                    // steps; 0: 200 an item and 2 million
}

// The defaults.
const (
	DefaultHigh   = plan.LoadUnit * 95 / 100
	DefaultLow    = plan.LoadUnit * 85 / 100
	DefaultDrain  = plan.LoadUnit * 80 / 100
	DefaultUseful = plan.LoadUnit * 2 / 100
)

// Why an item has another replica than in the plan in force, of a closed set.
type Why string

// The reasons.
const (
	Arrived  Why = "Arrived"  // it had none
	Gone     Why = "Gone"     // its replica is no more
	Pinned   Why = "Pinned"   // it is fixed elsewhere
	Apart    Why = "Apart"    // another one of its group has that replica
	Capped   Why = "Capped"   // its replica has too many clusters
	Starved  Why = "Starved"  // its replica had not enough memory
	Overload Why = "Overload" // its replica was above High
	MadeRoom Why = "MadeRoom" // it made room for another one
	Filled   Why = "Filled"   // the other replica had next to nothing
	Drained  Why = "Drained"  // its replica is not needed
)

// Move is an item's way to another replica. From is partition.Free for one that arrived. Sake is the replica that it
// relieves or fills, partition.Free where a rule wants it.
type Move struct {
	Item     int
	ID       string
	From, To int
	Load     plan.Load
	Why      Why
	Sake     int
}

// Must reports whether a rule wants the move, whatever it costs.
func (m Move) Must() bool { return m.Sake == partition.Free && m.Why != Drained }

// Answer is the partition, and what it takes: Moves by ID, arrivals among them. Cut says that MaxMoves or the budget
// left something for the next call. Over are replicas above High, of two items or more, that nothing relieves.
type Answer struct {
	partition.Partition
	Moves []Move
	Drain Drain
	Over  []int
	Cut   bool
	// High, Low and Full are the loads that were meant by High, Low and the capacity itself.
	High, Low, Full plan.Load
	Even            plan.Load // the present even share
	DrainTo         plan.Load // what replicas carry at most once the highest is drained
	HighMemory      plan.Bytes
	Steps           int // of the budget that it took
}

// Drain is whether the highest replica is needed. Fits: its Items fit on the others; with DrainDue they are moved there,
// up to MaxMoves a call, and Done says that all have been and the replica is gone.
type Drain struct {
	Fits    bool
	Done    bool
	Replica int
	Items   int
}

// Midway is how far a replica above high gives items up as ballast asks for it: not to high alone, since it would be above it again at
// once, nor to low, since each percent more is moves.
func Midway(high, low plan.Load) plan.Load { return low + (high-low)/2 }

func (o Options) complete(items int) (Options, error) {
	for _, d := range []struct {
		share     *plan.Load
		otherwise plan.Load
	}{{&o.High, DefaultHigh}, {&o.Low, DefaultLow}, {&o.Drain, DefaultDrain}, {&o.Useful, DefaultUseful}} {
		if *d.share == 0 {
			*d.share = d.otherwise
		}
		if *d.share < 0 || *d.share > 8*plan.LoadUnit {
			return o, fmt.Errorf("partitioning from the plan in force: a share of the capacity is %s, and it is between 0 and 8", *d.share)
		}
	}
	if o.Down == 0 {
		o.Down = o.High
	}
	if o.Down > o.High || o.Down < o.Low {
		return o, fmt.Errorf("partitioning from the plan in force: down (%s) is between low (%s) and high (%s)", o.Down, o.Low, o.High)
	}
	if o.Low > o.High || o.Drain > o.Low {
		return o, fmt.Errorf("partitioning from the plan in force: drain (%s), low (%s) and high (%s) ascend", o.Drain, o.Low, o.High)
	}
	if o.MaxMoves < 0 || o.Budget < 0 {
		return o, fmt.Errorf("partitioning from the plan in force: maxMoves (%d) and budget (%d) are 0 or more", o.MaxMoves, o.Budget)
	}
	if o.Budget == 0 {
		o.Budget = 2_000_000 + 200*items
	}
	return o, nil
}

// Plan answers a partition for what the problem has in force.
func Plan(p constraint.Question, o Options) (Answer, error) {
	o, err := o.complete(len(p.Items))
	if err != nil {
		return Answer{}, err
	}
	c, err := p.Check()
	if err != nil {
		return Answer{}, err
	}
	return PlanChecked(&c, o)
}

// PlanChecked is Plan for a problem that was checked, and options without defaults to fill in.
func PlanChecked(c *constraint.Setting, o Options) (Answer, error) {
	o, err := o.complete(len(c.Items))
	if err != nil {
		return Answer{}, err
	}
	s := newState(c, o)
	light, err := settling{s}.settle()
	if err != nil {
		return Answer{}, err
	}
	bearing{s}.bear()
	drained := Drain{}
	if s.overloaded() {
		s.reopen()
		relief{s}.relieve()
	} else {
		drained = draining{s}.drain()
	}
	filling{s}.fill()
	settling{s}.place(light)
	s.again(drained)
	return s.answer(drained), nil
}

// again: what weighs nothing counts against a cap, and may have opened a replica that relieves others.
func (s *state) again(d Drain) {
	const rounds = 8
	for range rounds {
		before := len(s.journal)
		settling{s}.uncap()
		bearing{s}.bear()
		if s.overloaded() && !d.Fits {
			clear(s.spent)
			relief{s}.relieve()
		}
		if len(s.journal) == before {
			return
		}
	}
}

func (s *state) answer(d Drain) Answer {
	a := Answer{Partition: s.c.Build(s.c.Items, slices.Clone(s.of), s.n), Drain: d, Cut: s.cut, HighMemory: s.high.memory, Steps: s.o.Budget - s.ops}
	a.High, a.Low, a.Full, a.Even = s.unit.to(s.high.load), s.unit.to(s.low.load), s.unit.to(s.full.load), s.unit.to(s.even())
	a.DrainTo = s.unit.to(s.drainTo.load)
	for i, to := range s.of {
		it := &s.c.Items[i]
		if it.Replica != partition.Free && s.c.IsClosed(to) && s.c.Stands(i) != to {
			a.Lost = append(a.Lost, partition.Lost{What: partition.Closed, To: partition.Pin, Item: it.ID, Replica: to})
		}
		if from := s.c.Stands(i); from != to {
			a.Moves = append(a.Moves, Move{Item: i, ID: it.ID, From: from, To: to, Load: it.Load, Why: s.why[int32(i)].Why, Sake: s.why[int32(i)].sake})
		}
	}
	slices.SortFunc(a.Moves, func(x, y Move) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(a.Lost, func(x, y partition.Lost) int {
		return cmp.Or(cmp.Compare(x.What, y.What), cmp.Compare(x.Replica, y.Replica), cmp.Compare(x.Item, y.Item))
	})
	for r := range s.n {
		if s.heavy(r) {
			a.Over = append(a.Over, r)
		}
	}
	return a
}

// shareOf is a share of a load, rounded down; it saturates.
func shareOf(load, share plan.Load) plan.Load { return mulDiv(load, share, plan.LoadUnit) }

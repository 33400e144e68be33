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
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky/draft"
	"ballast/planner/partition/sticky/overload"
	"ballast/planner/partition/sticky/starved"
	"ballast/planner/plan"
)

// Options are what a caller may set.
type Options = draft.Options

// Move is an item's way to another replica. From is plan.NoReplica for one that arrived. Sake is the replica that it
// relieves or fills, plan.NoReplica where a rule wants it.
type Move struct {
	Item     int
	ID       string
	From, To int
	Load     plan.Load
	Why      draft.Why
	Sake     int
}

// Must reports whether a rule wants the move, whatever it costs.
func (m Move) Must() bool { return m.Sake == plan.NoReplica && m.Why != draft.Drained }

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

// Midway is how far a replica above high gives items up as ballast asks for it: not to high alone, since it would be
// above it again at once, nor to low, since each percent more is moves.
func Midway(high, low plan.Load) plan.Load { return low + (high-low)/2 }

// Plan answers a partition for what the problem has in force.
func Plan(p constraint.Question, o Options) (Answer, error) {
	o, err := o.Complete(len(p.Items))
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
	o, err := o.Complete(len(c.Items))
	if err != nil {
		return Answer{}, err
	}
	s := draft.New(c, o)
	light, err := settling{s}.settle()
	if err != nil {
		return Answer{}, err
	}
	starved.Relieve(s)
	drained := Drain{}
	if s.Overloaded() {
		s.Reopen()
		overload.Relieve(s)
	} else {
		drained = draining{s}.drain()
	}
	filling{s}.fill()
	settling{s}.place(light)
	again(s, drained)
	return answer(s, drained), nil
}

// again: what weighs nothing counts against a cap, and may have opened a replica that relieves others.
func again(s *draft.Draft, d Drain) {
	const rounds = 8
	for range rounds {
		before := s.Mark()
		settling{s}.uncap()
		starved.Relieve(s)
		if s.Overloaded() && !d.Fits {
			overload.Relieve(s)
		}
		if s.Mark() == before {
			return
		}
	}
}

func answer(s *draft.Draft, d Drain) Answer {
	a := Answer{Partition: s.Setting.Build(s.Setting.Items, slices.Clone(s.Of), s.N), Drain: d, Cut: s.Cut,
		HighMemory: s.High.Memory}
	a.Steps = s.Options.Budget - s.Steps
	a.High, a.Low, a.Full, a.Even = s.InUnit(s.High.Load), s.InUnit(s.Low.Load), s.InUnit(s.Full.Load),
		s.InUnit(s.Even())
	a.DrainTo = s.InUnit(s.DrainTo.Load)
	for i, to := range s.Of {
		it := &s.Setting.Items[i]
		if it.Replica != partition.Free && s.Setting.IsClosed(to) && s.Setting.Stands(i) != to {
			a.Lost = append(a.Lost, partition.Lost{What: partition.Closed, To: partition.Pin, Item: it.ID, Replica: to})
		}
		if from := s.Setting.Stands(i); from != to {
			why := s.Why[int32(i)]
			a.Moves = append(a.Moves, Move{Item: i, ID: it.ID, From: from, To: to, Load: it.Load, Why: why.Why,
				Sake: why.Sake})
		}
	}
	slices.SortFunc(a.Moves, func(x, y Move) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(a.Lost, func(x, y partition.Lost) int {
		return cmp.Or(cmp.Compare(x.What, y.What), cmp.Compare(x.Replica, y.Replica), cmp.Compare(x.Item, y.Item))
	})
	for r := range s.N {
		if s.Heavy(r) {
			a.Over = append(a.Over, r)
		}
	}
	return a
}

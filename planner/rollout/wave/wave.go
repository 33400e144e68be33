// Package wave chooses which clusters a live rollout moves next.
package wave

import (
	"cmp"
	"fmt"
	"slices"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/rollout/answers"
	"ballast/planner/rollout/basis"
	"ballast/planner/rollout/layout"
)

// Unit is the clusters of one server that are still to move: Argo CD cannot tell them apart, so they move together.
type Unit struct {
	placement.Unit // its home is where it goes
	from           int
	Leaves         bool   // from a replica that is to go
	connected      bool   // its owner has it connected now
	idle           bool   // no replica is to report it
	unserved       bool   // nobody works for the replica that it leaves
	unknown        string // a cluster of which nobody says who owns it
}

// LoadOf is a row's load, and a little more, so that clusters count where loads are unknown or alike.
func LoadOf(row plan.Row) plan.Load { return plan.LoadOf(row.Load) + 1 }

// Remaining lists the units that are not where they go, by name.
func (c Chooser) Remaining() []Unit {
	secrets, to := c.Seen.Sorted(), c.Rows.Destinations()
	var units []Unit
	server := func(i int) string { return secrets[i].Together() }
	for _, members := range placement.Group(len(secrets), server) {
		u := Unit{Unit: placement.Unit{Home: plan.NoReplica}, connected: true, idle: true}
		for _, i := range members {
			if s := secrets[i]; s.Managed() {
				c.joins(&u, s, to)
			}
		}
		if len(u.Names) > 0 {
			u.unserved = c.Unserved(u.from)
			units = append(units, u)
		}
	}
	return units
}

// joins adds a cluster to its unit, if it is to move and goes with the others.
func (c Chooser) joins(u *Unit, s observed.Secret, destinations map[string]int) {
	row, known := c.Plan.Clusters[s.Name]
	from, _, _ := c.View.Effective(s.Name)
	to := destinations[s.Name]
	if !known || from == to || len(u.Names) > 0 && to != u.Home {
		return // pinned apart: the next waves move it
	}
	if len(u.Names) == 0 {
		u.from, u.Home = from, to
	}
	owned, told := c.Seen.Owned[s.Name]
	u.Unit = u.With(s.Name, LoadOf(row)).Taking(c.Options.Bytes[s.Name])
	u.Apart = placement.Joined(u.Apart, s.Apart)
	u.Leaves = u.Leaves || from >= c.Plan.Rollout.Replicas
	u.idle = u.idle && !s.Awaited(owned)
	u.connected = u.connected && (!s.Awaited(owned) || len(owned.Live) > 0)
	if !told && !s.Skip {
		u.unknown = cmp.Or(u.unknown, s.Name)
	}
}

// carried is the load of each replica by the rows, once those units are where they go.
func (c Chooser) carried(moved []Unit) []plan.Load {
	size := c.Plan.Widest()
	for _, row := range c.Plan.Clusters {
		size = max(size, row.Replica+1)
	}
	loads := make([]plan.Load, size)
	for _, row := range c.Plan.Clusters {
		loads[row.Replica] += LoadOf(row)
	}
	for _, u := range moved {
		for _, name := range u.Names {
			loads[c.Plan.Clusters[name].Replica] -= LoadOf(c.Plan.Clusters[name])
		}
		loads[u.Home] += u.Load
	}
	return loads
}

// inUse is the memory that each replica's clusters take by the rows; nil: nobody knows.
func (c Chooser) inUse(replicas int) []plan.Bytes {
	if c.Options.Memory <= 0 {
		return nil
	}
	all := make([]plan.Bytes, replicas)
	for name, row := range c.Plan.Clusters {
		all[row.Replica] = all[row.Replica].Plus(c.Options.Bytes[name])
	}
	return all
}

// mostNamed is how many Secrets a wave of several servers names at most: as many as maxMovesPerWave may be, which are
// written, and turned back, well within its deadline.
const mostNamed = 1000

// Chooser chooses the next wave of a live rollout.
type Chooser struct {
	*basis.Basis
	Rows    layout.Layout
	Answers answers.Answers
}

// Choose answers the next wave, or why there is none; spent says that it is for want of a budget.
//
// The rule: no replica comes above the heaviest load that any replica has now or will have in the end, what arrives in
// a wave counted before what leaves in it. Of the units that fit, one from the heaviest replica goes first, then a
// heavier one, then by name; those that nobody has connected come last, since no owner can show that it took them. Off
// a replica that nobody works for those come first that anybody is to have: who makes idle clusters must not keep
// others there. Where none fits, as in an exchange between two full replicas, one goes alone: the one whose receiver is
// the lightest with it. One whose receiver still has a cluster that it is to be apart from goes once that has left, or
// alone where none can go before. Nor does a replica come above its memory, counted in the same way: where only that is
// left, as in an exchange, one goes alone, the one that exceeds it least. A server is one move, whatever number of
// Secrets it has; a unit of more than a wave may name goes alone too, and so does a group of more servers than a wave
// may move. Each unit of the wave takes one look at all that are left.
func (c Chooser) Choose(left []Unit) (wave []Unit, blocked string, spent bool) {
	limit, room := min(max(c.Options.MaxMovesPerWave, 1), c.Options.Budget), min(c.room(left), mostNamed)
	if c.Unseen() {
		return nil, c.Blind(), false
	}
	if limit < 1 {
		return nil, "the budget of moves is used up", true
	}
	free, blocked := c.movable(left)
	if len(free) == 0 {
		return nil, blocked, false
	}
	now := c.carried(nil)
	d := &selection{now: now, least: slices.Clone(now), ceiling: max(slices.Max(now), slices.Max(c.carried(left))),
		taken:  c.taken(),
		memory: c.Options.Memory, inUse: c.inUse(len(now))}
	for moves := 0; moves < limit; {
		i := d.next(free, len(wave) == 0, room, func(u Unit) bool { return moves+c.Moves(u) <= limit })
		if i < 0 {
			break
		}
		u := free[i]
		free = slices.Delete(free, i, i+1)
		wave, room, moves = append(wave, u), room-len(u.Names), moves+c.Moves(u)
		alone := d.crowds(u) || d.lacks(u) > 0
		d.take(u)
		d.now[u.Home] += u.Load
		d.least[u.from] -= u.Load
		if d.now[u.Home] > d.ceiling || alone {
			break // alone
		}
	}
	return wave, "", false
}

// room is how many clusters of those that are left a wave may name, so that the plan can be written: each stands in it
// twice. One goes always: new rows leave room for so many.
func (c Chooser) room(left []Unit) int {
	longest := 0
	for _, u := range left {
		for _, name := range u.Names {
			longest = max(longest, codec.RowBytes(name))
		}
	}
	at := c.Plan
	rest := *at.Rollout
	rest.Moves, rest.Was = nil, nil
	at.Rollout = &rest
	return max(codec.Room(at)/max(2*longest, 1), 1)
}

// movable are the units that may move now, and why the first of the others may not.
func (c Chooser) movable(left []Unit) (free []Unit, blocked string) {
	shut := map[int]string{}
	for _, u := range left {
		why, asked := shut[u.Home]
		if !asked {
			why = c.Answers.CannotReceive(u.Home)
			shut[u.Home] = why
		}
		if c.Options.Closed[u.Home] && !c.PinnedTo(u.Names[0], u.Home) { // a pin is a person's word
			why = cmp.Or(why, fmt.Sprintf("replica %d is unwell or cordoned", u.Home))
		}
		if !u.unserved {
			why = cmp.Or(c.Options.AwaitSize[u.Home], why)
		}
		why = cmp.Or(c.Answers.Risk(u.Names, u.from, u.Home), why)
		if u.unknown != "" && c.Seen.OwnersKnown {
			why = fmt.Sprintf("nobody says who owns cluster %q", u.unknown)
		}
		if why == "" {
			free = append(free, u)
			continue
		}
		blocked = cmp.Or(blocked, why)
	}
	return free, blocked
}

// selection is how loads change while a wave is chosen: now with what arrives, least without what leaves.
type selection struct {
	now, least []plan.Load
	ceiling    plan.Load
	taken      map[seat]int // clusters of a group that is kept apart; nil: there is none
	memory     plan.Bytes
	inUse      []plan.Bytes // with what arrives; nil: nobody knows
}

// lacks is the memory that the receiver has too little for a unit. One that has nothing in use has enough: no other has
// more.
func (d *selection) lacks(u Unit) plan.Bytes {
	if d.inUse == nil || u.Memory == 0 || d.inUse[u.Home] == 0 {
		return 0
	}
	return max(d.inUse[u.Home].Plus(u.Memory)-d.memory, 0)
}

// seat is a group on a replica.
type seat struct {
	group   string
	replica int
}

// taken counts the clusters of groups on each replica.
func (c Chooser) taken() map[seat]int {
	var taken map[seat]int
	for _, s := range c.Seen.Secrets {
		for _, group := range s.Apart {
			if taken == nil {
				taken = map[seat]int{}
			}
			at := s.Shard
			if replica, _, known := c.View.Effective(s.Name); known {
				at = replica
			}
			taken[seat{group, at}]++
		}
	}
	return taken
}

// crowds reports whether the receiver still has one of the unit's groups.
func (d *selection) crowds(u Unit) bool {
	return len(d.taken) > 0 && slices.ContainsFunc(u.Apart, func(group string) bool { return d.taken[seat{group, u.Home}] > 0 })
}

// take has the receiver have the unit's groups, and its memory in use; what it leaves counts there until the wave is
// over.
func (d *selection) take(u Unit) {
	for _, group := range u.Apart {
		d.taken[seat{group, u.Home}]++
	}
	if d.inUse != nil {
		d.inUse[u.Home] = d.inUse[u.Home].Plus(u.Memory)
	}
}

// Moves is how many moves a unit's are.
func (c Chooser) Moves(u Unit) int { return c.Groups().Count(slices.Values(u.Names), c.Hash) }

// next is the index of the unit that goes next, -1 for none; room is how many clusters the wave may still name, and
// within the budget says which units it may still move; the first one may exceed both.
func (d *selection) next(free []Unit, first bool, room int, within func(Unit) bool) int {
	best := -1
	for i, u := range free {
		fits := d.now[u.Home]+u.Load <= d.ceiling
		alone := !fits || d.crowds(u) || d.lacks(u) > 0
		if !first && (alone || len(u.Names) > room || !within(u)) {
			continue
		}
		if best < 0 || d.before(u, free[best]) {
			best = i
		}
	}
	return best
}

func (d *selection) before(a, b Unit) bool {
	over := func(u Unit) plan.Load { return max(d.now[u.Home]+u.Load-d.ceiling, 0) }
	heavier := func(x, y plan.Load) int { return cmp.Compare(y, x) }
	last := func(x, y bool) int { return cmp.Compare(rank(x), rank(y)) }
	return cmp.Or(last(d.crowds(a), d.crowds(b)), cmp.Compare(d.lacks(a), d.lacks(b)), cmp.Compare(over(a), over(b)),
		last(a.unserved && a.idle, b.unserved && b.idle), last(!a.connected, !b.connected),
		heavier(d.least[a.from], d.least[b.from]),
		heavier(a.Load, b.Load), cmp.Compare(a.Names[0], b.Names[0])) < 0
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

package sticky

import (
	"cmp"
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

const nowhere = partition.Free

// state is a partition in the making. Everything that changes it goes through shift, which the journal can undo.
type state struct {
	c       *constraint.Setting
	o       Options
	unit    unit
	n       int // replicas
	of      []int
	load    []plan.Load
	cluster []int
	units   []int // items, by replica
	pinned  []int // fixed items, by replica
	bears   []int // items that carry a load or take memory, by replica: one alone gains nothing elsewhere
	taken   constraint.Taken
	tree    ranking   // replicas that receive, least loaded first
	shut    []bool    // replicas that do not receive now
	member  [][]int32 // items that may move, by replica; nil: none were asked for
	ranked  []bool    // whether those are, by replica
	why     map[int32]because
	journal []step

	high, down, low, drainTo, full line
	useful                         plan.Load
	mem                            []plan.Bytes // by replica; nil: it bounds nothing

	sake  int // the replica for which something is done now; nowhere: a rule wants it
	moves int
	cut   bool
	spent []bool // replicas that nothing relieves
	ops   int
}

type step struct {
	item     int32
	from, to int32
	why      because
}

type because struct {
	Why
	sake int
}

func newState(c *constraint.Setting, o Options) *state {
	n := min(max(c.Replicas, c.Least), c.Most)
	c, unit := refined(c)
	s := &state{c: c, o: o, unit: unit, of: make([]int, len(c.Items)), why: map[int32]because{}, ops: o.Budget, sake: nowhere}
	if c.Groups.Any() {
		s.taken = constraint.Taken{}
	}
	if c.Bytes != nil {
		s.mem = make([]plan.Bytes, 0, n)
	}
	for range n {
		s.open()
	}
	s.limits()
	return s
}

// open adds a replica.
func (s *state) open() int {
	r := s.n
	s.n++
	s.load, s.cluster = append(s.load, 0), append(s.cluster, 0)
	s.units, s.pinned, s.bears = append(s.units, 0), append(s.pinned, 0), append(s.bears, 0)
	s.shut, s.spent = append(s.shut, s.c.IsClosed(r)), append(s.spent, false)
	if s.member != nil {
		s.member, s.ranked = append(s.member, nil), append(s.ranked, false)
	}
	if s.mem != nil {
		s.mem = append(s.mem, 0)
	}
	s.tree.grow()
	if !s.shut[r] {
		s.tree.add(s, r)
	}
	return r
}

// unopen takes back the last replica, which is empty.
func (s *state) unopen() {
	r := s.n - 1
	s.tree.remove(s, r)
	s.tree.shrink()
	s.n = r
	s.load, s.cluster, s.units, s.pinned, s.bears = s.load[:r], s.cluster[:r], s.units[:r], s.pinned[:r], s.bears[:r]
	s.shut, s.spent = s.shut[:r], s.spent[:r]
	if s.member != nil {
		s.member, s.ranked = s.member[:r], s.ranked[:r]
	}
	if s.mem != nil {
		s.mem = s.mem[:r]
	}
}

// limits are the shares of what a replica may carry.
func (s *state) limits() {
	full := s.c.Capacity
	even := s.even()
	even = max(even, min(s.unit.from(s.o.Even), even+even/2))
	switch {
	case s.c.Bounds.Fixed > 0: // balance only
		full = slack(even, s.o.Low)
	case s.n == s.c.Most && shareOf(full, s.o.Low) < even+even/20:
		full = max(full, slack(even, s.o.Low))
	}
	s.full = line{full, s.c.Bounds.Memory}
	s.high, s.down, s.low = s.full.share(s.o.High), s.full.share(s.o.Down), s.full.share(s.o.Low)
	s.drainTo, s.useful = s.full.share(s.o.Drain), max(shareOf(full, s.o.Useful), 1)
}

// slack is the capacity whose low share is a twentieth above an even share.
func slack(even, low plan.Load) plan.Load {
	const most = plan.Load(1 << 62)
	target := float64(even) * 1.05 * float64(plan.LoadUnit) / float64(low)
	if target >= float64(most) {
		return most
	}
	return max(plan.Load(target), 1)
}

// even is the load that the replicas would carry if it could be dealt evenly: the mean, without the items that are above
// it, which have a replica of their own.
func (s *state) even() plan.Load {
	rest, bins := s.c.Total, s.n
	const passes = 16
	for range passes {
		if bins <= 1 {
			break
		}
		mean := ceil(rest, bins)
		left, own := s.c.Total, s.n
		for _, l := range s.c.Loads {
			if l > mean {
				left, own = left-l, own-1
			}
		}
		if own < 1 || own == bins {
			break
		}
		rest, bins = left, own
	}
	return ceil(rest, max(bins, 1))
}

func ceil(load plan.Load, n int) plan.Load {
	if load == 0 {
		return 0
	}
	return (load-1)/plan.Load(n) + 1
}

// put adds an item to a replica, take takes it away: nothing else changes a replica.
func (s *state) put(i, r, sign int) {
	s.load[r] += plan.Load(sign) * s.c.Loads[i]
	if s.mem != nil {
		s.mem[r] += plan.Bytes(sign) * s.c.Bytes[i]
	}
	s.cluster[r] += sign * s.c.Items[i].Clusters
	s.units[r] += sign
	if s.c.Loads[i] > 0 || s.bytes(i) > 0 {
		s.bears[r] += sign
	}
	if s.c.Items[i].Replica != partition.Free {
		s.pinned[r] += sign
	}
	if s.taken != nil {
		s.taken.Add(s.c.Groups.Of(i), r, int32(sign))
	}
}

// shift brings an item to another replica, to nowhere too.
func (s *state) shift(i, to int, why Why) {
	s.journal = append(s.journal, step{item: int32(i), from: int32(s.of[i]), to: int32(to), why: s.why[int32(i)]})
	s.carry(i, to)
	if !s.arrives(i) {
		s.why[int32(i)] = because{why, s.sake}
	}
}

// arrives reports whether an item has no replica that it could keep: wherever it goes is no move.
func (s *state) arrives(i int) bool {
	why := s.why[int32(i)].Why
	return why == Arrived || why == Gone
}

func (s *state) carry(i, to int) {
	from := s.of[i]
	for _, r := range []int{from, to} {
		if r == nowhere {
			continue
		}
		if r == from {
			s.put(i, r, -1)
		} else {
			s.put(i, r, 1)
		}
		if s.member != nil {
			s.enlist(i, r, r == to)
		}
		s.tree.fix(s, r)
	}
	s.of[i] = to
}

// undo goes back to where the journal was that long.
func (s *state) undo(mark int) {
	for len(s.journal) > mark {
		last := s.journal[len(s.journal)-1]
		s.journal = s.journal[:len(s.journal)-1]
		s.carry(int(last.item), int(last.from))
		if s.why[last.item] = last.why; last.why.Why == "" {
			delete(s.why, last.item)
		}
	}
}

// members are the items of a replica that may move, the lightest first.
func (s *state) members(r int) []int32 {
	if s.member == nil {
		s.list()
	}
	if !s.ranked[r] {
		slices.SortFunc(s.member[r], s.lighter)
		s.ranked[r] = true
	}
	return s.member[r]
}

// list makes all members at once. Each replica's are ranked when they are asked for: in a fleet at rest the last one's alone are.
func (s *state) list() {
	s.member, s.ranked = make([][]int32, s.n), make([]bool, s.n)
	backing := make([]int32, len(s.of))
	at := 0
	for r := range s.n {
		s.member[r] = backing[at : at : at+s.units[r]]
		at += s.units[r]
	}
	for i, r := range s.of {
		if r != nowhere && s.c.Items[i].Replica == partition.Free {
			s.member[r] = append(s.member[r], int32(i))
		}
	}
	s.ops -= len(s.of)
}

func (s *state) enlist(i, r int, in bool) {
	if s.c.Items[i].Replica != partition.Free {
		return
	}
	at, _ := slices.BinarySearchFunc(s.members(r), int32(i), s.lighter)
	if in {
		s.member[r] = slices.Insert(s.member[r], at, int32(i))
	} else {
		s.member[r] = slices.Delete(s.member[r], at, at+1)
	}
}

// lighter orders items by load, then by ID.
func (s *state) lighter(a, b int32) int {
	if la, lb := s.c.Loads[a], s.c.Loads[b]; la != lb {
		return cmp.Compare(la, lb)
	}
	return cmp.Or(cmp.Compare(s.c.Items[a].ID, s.c.Items[b].ID), cmp.Compare(a, b))
}

// heavier orders the heaviest first, then by ID.
func (s *state) heavier(a, b int32) int {
	return cmp.Or(cmp.Compare(s.c.Loads[b], s.c.Loads[a]), cmp.Compare(s.c.Items[a].ID, s.c.Items[b].ID))
}

// heavy reports whether a replica is to give items up.
func (s *state) heavy(r int) bool {
	movable := s.bears[r] > 1 && s.pinned[r] < s.units[r]
	above := s.load[r] > s.high.load || s.mem != nil && s.mem[r] > s.high.memory
	return movable && above && !s.patient(r)
}

func (s *state) patient(r int) bool { return s.o.Patient != nil && s.o.Patient(r) }

func (s *state) overloaded() bool {
	for r := range s.n {
		if s.heavy(r) {
			return true
		}
	}
	return false
}

// may reports whether the rules let an item go to a replica, whatever it carries.
func (s *state) may(i, r int) bool {
	if most := s.c.Bounds.MaxClusters; most > 0 && s.units[r] > 0 && s.cluster[r]+s.c.Items[i].Clusters > most {
		return false
	}
	return s.taken == nil || !s.taken.Has(s.c.Groups.Of(i), r)
}

// fits: a replica without items takes any.
func (s *state) fits(i, r int, limit line) bool {
	return s.units[r] == 0 || s.load[r]+s.c.Loads[i] <= limit.load && s.holds(i, r, limit.memory)
}

// least is the least loaded replica that takes an item, nowhere if none does.
func (s *state) least(i, not int, limit line) int {
	if len(s.tree.order) == 0 {
		return nowhere
	}
	top := s.tree.order[0]
	if s.units[top] > 0 && s.load[top]+s.c.Loads[i] > limit.load {
		return nowhere // it is the least loaded; an empty one would be first
	}
	if int(top) != not && s.may(i, int(top)) && s.fits(i, int(top), limit) {
		return int(top)
	}
	best := nowhere
	s.ops -= len(s.tree.order)
	for _, r := range s.tree.order {
		if r := int(r); r != not && s.fits(i, r, limit) && s.may(i, r) && (best == nowhere || s.less(r, best)) {
			best = r
		}
	}
	return best
}

// fullest is the most loaded replica that takes an item.
func (s *state) fullest(i, not int, limit line) int {
	best := nowhere
	s.ops -= len(s.tree.order)
	for _, r := range s.tree.order {
		if r := int(r); r != not && s.fits(i, r, limit) && s.may(i, r) && (best == nowhere || s.less(best, r)) {
			best = r
		}
	}
	return best
}

// less is a total order of replicas: by load, then fewer clusters, then number.
func (s *state) less(a, b int) bool {
	if s.load[a] != s.load[b] {
		return s.load[a] < s.load[b]
	}
	return cmp.Or(cmp.Compare(s.cluster[a], s.cluster[b]), cmp.Compare(a, b)) < 0
}

// ranking is a heap of replicas that knows where each is.
type ranking struct {
	order []int32
	place []int32 // by replica; -1: it is not in
}

func (t *ranking) grow()   { t.place = append(t.place, -1) }
func (t *ranking) shrink() { t.place = t.place[:len(t.place)-1] }

func (t *ranking) add(s *state, r int) {
	if t.place[r] >= 0 {
		return
	}
	t.place[r] = int32(len(t.order))
	t.order = append(t.order, int32(r))
	t.up(s, int(t.place[r]))
}

func (t *ranking) remove(s *state, r int) {
	at := t.place[r]
	if at < 0 {
		return
	}
	last := len(t.order) - 1
	moved := t.order[last]
	t.order[at], t.place[moved] = moved, at
	t.order, t.place[r] = t.order[:last], -1
	if int(at) < last {
		t.fix(s, int(moved))
	}
}

// heapify puts all in order after many changed.
func (t *ranking) heapify(s *state) {
	for at := len(t.order)/2 - 1; at >= 0; at-- {
		t.down(s, at)
	}
}

func (t *ranking) fix(s *state, r int) {
	if at := t.place[r]; at >= 0 {
		t.up(s, int(at))
		t.down(s, int(t.place[r]))
	}
}

func (t *ranking) up(s *state, at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if !s.less(int(t.order[at]), int(t.order[parent])) {
			return
		}
		t.swap(at, parent)
		at = parent
	}
}

func (t *ranking) down(s *state, at int) {
	for {
		child := 2*at + 1
		if child >= len(t.order) {
			return
		}
		if right := child + 1; right < len(t.order) && s.less(int(t.order[right]), int(t.order[child])) {
			child = right
		}
		if !s.less(int(t.order[child]), int(t.order[at])) {
			return
		}
		t.swap(at, child)
		at = child
	}
}

func (t *ranking) swap(a, b int) {
	t.order[a], t.order[b] = t.order[b], t.order[a]
	t.place[t.order[a]], t.place[t.order[b]] = int32(a), int32(b)
}

package sticky_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/fresh"
	"ballast/planner/partition/sticky"
	"ballast/planner/partition/sticky/draft"
	"ballast/planner/plan"
)

func drawBounds(t *rapid.T) partition.Bounds {
	most := rapid.IntRange(1, 12).Draw(t, "maxReplicas")
	b := partition.Bounds{
		MaxReplicas: most,
		MinReplicas: rapid.IntRange(0, most).Draw(t, "minReplicas"),
		MaxClusters: rapid.SampledFrom([]int{0, 0, 0, 3, 8}).Draw(t, "maxClusters"),
		Capacity:    plan.Load(rapid.SampledFrom([]int64{0, 30, 100, 300}).Draw(t, "capacity")),
	}
	if rapid.IntRange(0, 3).Draw(t, "is fixed") == 0 {
		b.Fixed = rapid.IntRange(1, 14).Draw(t, "fixed")
	}
	return b
}

func drawProblem(t *rapid.T) constraint.Question {
	p := constraint.Question{Bounds: drawBounds(t), Replicas: rapid.IntRange(1, 10).Draw(t, "replicas")}
	n := rapid.IntRange(0, 40).Draw(t, "items")
	p.Now = make([]int, n)
	for i := range n {
		it := partition.Item{ID: fmt.Sprintf("c%02d", i), Clusters: 1, Replica: partition.Free,
			Load: plan.Load(rapid.Int64Range(0, 40).Draw(t, "load"))}
		if rapid.IntRange(0, 7).Draw(t, "is a unit") == 0 {
			it.Clusters = rapid.IntRange(2, 4).Draw(t, "clusters")
		}
		if rapid.IntRange(0, 9).Draw(t, "is pinned") == 0 {
			it.Replica = rapid.IntRange(0, p.Bounds.MaxReplicas-1).Draw(t, "pin")
		}
		p.Items = append(p.Items, it)
		p.Now[i] = rapid.IntRange(-1, p.Replicas).Draw(t, "now")
	}
	for r := range p.Replicas {
		if rapid.IntRange(0, 9).Draw(t, "is closed") == 0 {
			p.Closed = append(p.Closed, make([]bool, r+1-len(p.Closed))...)
			p.Closed[r] = true
		}
	}
	if n > 1 {
		for g := range rapid.IntRange(0, 3).Draw(t, "groups") {
			p.Apart = append(p.Apart, constraint.Group{Name: fmt.Sprint("g", g),
				Items: rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, min(n, 5), rapid.ID).Draw(t, "group")})
		}
	}
	return p
}

func drawOptions(t *rapid.T) sticky.Options {
	return sticky.Options{MaxMoves: rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "maxMoves"), DrainDue: rapid.Bool().Draw(t, "drain is due"),
		Down: rapid.SampledFrom([]plan.Load{0, 900_000_000}).Draw(t, "down")}
}

// ask answers nil where the rules clash; every other error fails the test.
func ask(t *rapid.T, p constraint.Question, o sticky.Options) *sticky.Answer {
	t.Logf("%+v, %+v", p, o)
	a, err := sticky.Plan(p, o)
	var clash *constraint.Error
	if errors.As(err, &clash) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

func TestEveryPlanKeepsEveryRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProblem(t), drawOptions(t)
		a := ask(t, p, o)
		if a == nil {
			return
		}
		checkSums(t, p, a)
		checkCount(t, p, a)
		checkRules(t, p, a)
		checkMoves(t, p, o, a)
	})
}

func checkSums(t *rapid.T, p constraint.Question, a *sticky.Answer) {
	loads, clusters := make([]plan.Load, a.Replicas), make([]int, a.Replicas)
	for i, r := range a.Of {
		if at := p.Items[i].Replica; at != partition.Free && at != r {
			t.Fatalf("%q is pinned to %d and is on %d", p.Items[i].ID, at, r)
		}
		loads[r] += p.Items[i].Load
		clusters[r] += p.Items[i].Clusters
	}
	if d := cmp.Diff(loads, a.Loads) + cmp.Diff(clusters, a.Clusters); d != "" {
		t.Fatalf("loads and clusters (-added up +said)\n%s", d)
	}
}

func checkCount(t *rapid.T, p constraint.Question, a *sticky.Answer) {
	frame, err := partition.NewFrame(p.Items, p.Bounds)
	if err != nil {
		t.Fatal(err)
	}
	if a.Replicas < frame.Least || a.Replicas > frame.Most {
		t.Fatalf("%d replicas, want %d to %d", a.Replicas, frame.Least, frame.Most)
	}
}

func checkRules(t rapid.TB, p constraint.Question, a *sticky.Answer) {
	for _, g := range p.Apart {
		on := map[int]int{}
		for _, i := range g.Items {
			if other, is := on[a.Of[i]]; is {
				t.Fatalf("%q and %q of group %q are on replica %d", p.Items[i].ID, p.Items[other].ID, g.Name, a.Of[i])
			}
			on[a.Of[i]] = i
		}
	}
	for i, r := range a.Of {
		if p.IsClosed(r) && p.Now[i] != r && p.Items[i].Replica != r {
			t.Fatalf("%q went to replica %d, which is closed", p.Items[i].ID, r)
		}
	}
	said := map[int]bool{}
	for _, l := range a.Lost {
		if l.What == partition.MaxClusters {
			said[l.Replica] = true
		}
	}
	for r, n := range a.Clusters {
		if most := p.Bounds.MaxClusters; most > 0 && n > most != said[r] {
			t.Fatalf("replica %d has %d clusters of %d, and that is lost: %v", r, n, most, said[r])
		}
	}
}

// checkMoves: all that changed is told, with a reason, and what is not asked for by a rule has a gain.
func checkMoves(t *rapid.T, p constraint.Question, o sticky.Options, a *sticky.Answer) {
	var told, are []int
	wished := 0
	before := slices.Clone(a.Of)
	for _, m := range a.Moves {
		told = append(told, m.Item)
		switch m.Why {
		case draft.Overload, draft.MadeRoom, draft.Drained:
			wished++
			before[m.Item] = m.From
			if m.Load == 0 && m.Why == draft.Overload {
				t.Fatalf("%q has no load and was moved for it", m.ID)
			}
		case "":
			t.Fatalf("%q moved without a reason", m.ID)
		}
	}
	for i, r := range a.Of {
		if p.Stands(i) != r {
			are = append(are, i)
		}
	}
	slices.Sort(told)
	if d := cmp.Diff(are, told, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("moved (-are +told)\n%s", d)
	}
	if o.MaxMoves > 0 && wished > o.MaxMoves {
		t.Fatalf("%d moves that no rule asks for, of %d", wished, o.MaxMoves)
	}
	if must := len(a.Moves) > wished; !must && wished > 0 && !gains(p, before, a) {
		t.Fatalf("%d moves without a gain: %+v", wished, a.Moves)
	}
}

// gains: less load above high on replicas of several items, or a replica that is empty or nearer to it.
func gains(p constraint.Question, before []int, a *sticky.Answer) bool {
	if over(p, before, a.High) > over(p, a.Of, a.High) {
		return true
	}
	return slices.ContainsFunc(a.Moves, func(m sticky.Move) bool { return m.Why == draft.Drained && m.From == a.Drain.Replica })
}

func over(p constraint.Question, of []int, high plan.Load) (sum plan.Load) {
	loads, units := map[int]plan.Load{}, map[int]int{}
	for i, r := range of {
		loads[r] += p.Items[i].Load
		units[r]++
	}
	for r, l := range loads {
		if units[r] > 1 {
			sum += max(l-high, 0)
		}
	}
	return sum
}

// TestNoMoveIsWithoutAGain draws fleets that were at rest and whose loads changed: in others nearly every move is a rule's.
func TestNoMoveIsWithoutAGain(t *testing.T) {
	var relieved, filled int
	for round := 0; round == 0 || !t.Failed() && round < 100 && (relieved < 20 || filled < 5); round++ {
		rapid.Check(t, func(t *rapid.T) {
			r, f := checkGain(t)
			relieved += r
			filled += f
		})
	}
	if !t.Failed() && (relieved < 20 || filled < 5) {
		t.Errorf("%d plans relieve or drain and %d fill: too few to say anything", relieved, filled)
	}
}

// checkGain draws a fleet that is at rest, changes loads of it, and counts what it looked at: a plan that relieves or drains, or
// one that fills, and does nothing else.
func checkGain(t *rapid.T) (relieved, filled int) {
	p, o := drawProblem(t), drawOptions(t)
	rest := ask(t, p, sticky.Options{})
	if rest == nil {
		return 0, 0
	}
	p.Now, p.Replicas = rest.Of, rest.Replicas
	for i := range p.Items {
		if rapid.Bool().Draw(t, "changes") {
			p.Items[i].Load = plan.Load(rapid.Int64Range(0, 60).Draw(t, "its load now"))
		}
	}
	a := ask(t, p, o)
	if a == nil || len(a.Moves) == 0 {
		return 0, 0
	}
	before, why := slices.Clone(a.Of), map[draft.Why]int{}
	for _, m := range a.Moves {
		before[m.Item] = m.From
		why[m.Why]++
	}
	switch len(a.Moves) {
	case why[draft.Overload] + why[draft.MadeRoom] + why[draft.Drained]:
		if !gains(p, before, a) {
			t.Fatalf("moves without a gain: %+v", a.Moves)
		}
		return 1, 0
	case why[draft.Filled]:
		if was, is := unlevel(p, before), unlevel(p, a.Of); is >= was {
			t.Fatalf("filling makes the fleet no more level (%d was %d): %+v", is, was, a.Moves)
		}
		return 0, 1
	}
	return 0, 0
}

// unlevel is the sum of the squares of the replicas' loads: the less, the more level.
func unlevel(p constraint.Question, of []int) (sum int64) {
	loads := map[int]int64{}
	for i, r := range of {
		loads[r] += int64(p.Items[i].Load)
	}
	for _, load := range loads {
		sum += load * load
	}
	return sum
}

func TestWhatIsInForceIsAnsweredWithNoMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProblem(t), drawOptions(t)
		o.MaxMoves = 0
		first := ask(t, p, o)
		if first == nil {
			return
		}
		o.DrainDue = false // a drain may make the next replica the highest one
		p.Now, p.Replicas = first.Of, first.Replicas
		second := ask(t, p, o)
		if second == nil {
			t.Fatal("the rules clash once they are kept")
		}
		if len(second.Moves) > 0 || second.Replicas != first.Replicas {
			t.Fatalf("%d replicas, then %d with %+v\nof %+v", first.Replicas, second.Replicas, second.Moves, p)
		}
	})
}

func TestOrderNamesAndUnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProblem(t), drawOptions(t)
		first := ask(t, p, o)
		q, to := permuted(t, p)
		for i := range q.Items {
			q.Items[i].ID = "x-" + q.Items[i].ID
			q.Items[i].Load *= 2
		}
		q.Bounds.Capacity *= 2
		second := ask(t, q, o)
		if (first == nil) != (second == nil) {
			t.Fatal("the rules clash in one order only")
		}
		if first == nil {
			return
		}
		for i, r := range first.Of {
			if got := second.Of[to[i]]; got != r {
				t.Fatalf("%q is on %d, in another order on %d", p.Items[i].ID, r, got)
			}
		}
	})
}

func permuted(t *rapid.T, p constraint.Question) (q constraint.Question, to []int) {
	order := make([]int, len(p.Items))
	for i := range order {
		order[i] = i
	}
	order = rapid.Permutation(order).Draw(t, "order")
	q, to = p, make([]int, len(order))
	q.Items, q.Now, q.Apart = nil, nil, nil
	for k, i := range order {
		to[i] = k
		q.Items, q.Now = append(q.Items, p.Items[i]), append(q.Now, p.Now[i])
	}
	for _, g := range p.Apart {
		var items []int
		for _, i := range g.Items {
			items = append(items, to[i])
		}
		q.Apart = append(q.Apart, constraint.Group{Name: g.Name, Items: items})
	}
	return q, to
}

func TestAnEmptyClusterMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProblem(t), drawOptions(t)
		p.Bounds.MaxClusters, p.Closed = 0, nil // it counts against a cap, and one more replica may have to open for it
		first := ask(t, p, o)
		if first == nil {
			return
		}
		q := p
		q.Items = append(slices.Clone(p.Items), partition.Item{ID: "new", Clusters: 1, Replica: partition.Free})
		q.Now = append(slices.Clone(p.Now), partition.Free)
		second := ask(t, q, o)
		if second == nil {
			t.Fatal("the rules clash")
		}
		if d := cmp.Diff(first.Of, second.Of[:len(p.Items)]); d != "" {
			t.Fatalf("(-without +with)\n%s", d)
		}
	})
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint8(4), uint8(3), int64(5), true, uint8(0), uint8(0), int32(0))
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0}, uint8(1), uint8(9), int64(math.MaxInt64), false, uint8(0), uint8(0), int32(0))
	six := []byte{9, 8, 1, 7, 6, 2, 8, 7, 1, 9, 9, 2, 5, 5, 3, 4, 4, 3}
	f.Add(six, uint8(6), uint8(4), int64(2000), true, uint8(2), uint8(0), int32(1))
	f.Add(six, uint8(6), uint8(3), int64(2000), false, uint8(0), uint8(3), int32(40))
	f.Add(six, uint8(6), uint8(3), int64(9000), false, uint8(9), uint8(200), int32(-7))
	f.Fuzz(anyLoads)
}

// anyLoads: an answer or an error, whatever the loads are, how many replicas are asked for, and how little may be tried.
func anyLoads(t *testing.T, raw []byte, most, replicas uint8, capacity int64, due bool, least, fixed uint8, budget int32) {
	p := constraint.Question{Replicas: int(replicas)}
	p.Bounds = partition.Bounds{MinReplicas: int(least), MaxReplicas: int(most), Fixed: int(fixed), Capacity: plan.Load(capacity)}
	for k := 0; k+2 < len(raw) && k < 600; k += 3 {
		load := plan.Load(raw[k]) << (raw[k+1] % 56)
		p.Items = append(p.Items, partition.Item{ID: fmt.Sprint(k), Load: load, Clusters: 1 + int(raw[k+1]/200), Replica: int(raw[k+2]/240) - 1})
		p.Now = append(p.Now, int(raw[k+2]%64)-1)
		if raw[k+1]%16 == 1 {
			p.Closed = append(p.Closed, raw[k]%2 == 0)
		}
		if raw[k+1]%16 == 2 {
			p.Apart = append(p.Apart, constraint.Group{Name: fmt.Sprint(k), Items: []int{len(p.Items) - 1, int(raw[k]) % len(p.Items)}})
		}
	}
	p.Bounds.MaxClusters = int(replicas % 5 * 3)
	if most%2 == 1 { // what an item takes of a replica's memory has nothing to do with its load
		p.Bounds.Memory = plan.Bytes(1) << (replicas % 62)
		for k := range p.Items {
			p.Items[k].Memory = plan.Bytes(raw[3*k+1]) << (raw[3*k] % 54)
		}
	}
	if a, err := sticky.Plan(p, sticky.Options{DrainDue: due, MaxMoves: int(most % 7), Budget: int(budget)}); err == nil {
		checkPlaces(t, "sticky", p, a.Of, a.Replicas)
		checkRules(t, p, &a)
		checkBudget(t, p, int(budget), &a)
		if p.Bounds.Memory > 0 {
			checkMemory(t, p, &a)
		}
	}
	if a, err := partition.LPT(p.Items, p.Bounds); err == nil {
		checkPlaces(t, "lpt", p, a.Of, a.Replicas)
	}
	o := fresh.Options{Steps: int(budget % 100_000)}
	if a, err := fresh.Plan(p, o); err == nil {
		checkPlaces(t, "fresh", p, a.Of, a.Replicas)
		checkRules(t, p, &sticky.Answer{Partition: a})
	}
	if a, found := fresh.Without(p, o); found {
		checkPlaces(t, "without", p, a.Of, a.Replicas)
		checkRules(t, p, &sticky.Answer{Partition: a})
	}
}

// checkBudget: it took what it may, and beyond it what it had begun: a look at each item and replica, twice in each of the eight rounds.
func checkBudget(t *testing.T, p constraint.Question, budget int, a *sticky.Answer) {
	if budget == 0 {
		budget = 2_000_000 + 200*len(p.Items)
	}
	if over := a.Steps - budget; over > 16*(len(p.Items)+a.Replicas+1) {
		t.Fatalf("it took %d steps of %d, with %d items and %d replicas", a.Steps, budget, len(p.Items), a.Replicas)
	}
}

// checkPlaces finds each item on one of the replicas, those that are pinned on theirs, and as many replicas as are asked for: Fixed
// loses to MaxReplicas, and both bounds to nothing but pins, which are never beyond MaxReplicas.
func checkPlaces(t *testing.T, by string, p constraint.Question, of []int, replicas int) {
	b := p.Bounds
	pinned := 0
	for _, it := range p.Items {
		pinned = max(pinned, it.Replica+1)
	}
	low, high := max(b.MinReplicas, pinned, 1), b.MaxReplicas
	if b.Fixed > 0 {
		low = max(min(b.Fixed, b.MaxReplicas), pinned)
		high = low
	}
	if replicas < low || replicas > high {
		t.Fatalf("%s has %d replicas, and there are to be %d to %d", by, replicas, low, high)
	}
	for i, r := range of {
		if at := p.Items[i].Replica; r < 0 || r >= replicas || at != partition.Free && at != r {
			t.Fatalf("%s has %q, pinned to %d, on replica %d of %d", by, p.Items[i].ID, at, r, replicas)
		}
	}
}

package sticky_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky"
	"ballast/planner/partition/sticky/draft"
	"ballast/planner/plan"
)

const gib = plan.Bytes(1 << 30)

// fleetOf is items of loads and memory, on the replicas that they stand on.
func fleetOf(replicas int, memory plan.Bytes, items ...partition.Item) constraint.Question {
	p := constraint.Question{Replicas: replicas, Bounds: partition.Bounds{MaxReplicas: 4, MinReplicas: replicas, Capacity: 100, Memory: memory}}
	for i, it := range items {
		p.Now = append(p.Now, it.Replica)
		it.ID, it.Clusters, it.Replica = fmt.Sprintf("c%d", i), 1, partition.Free
		p.Items = append(p.Items, it)
	}
	return p
}

func on(replica int, load plan.Load, memory plan.Bytes) partition.Item {
	return partition.Item{Replica: replica, Load: load, Memory: memory}
}

func fixed(p constraint.Question, n int) constraint.Question {
	p.Bounds.Fixed = n
	return p
}

func TestWhatMemoryAsksFor(t *testing.T) {
	for name, test := range map[string]struct {
		problem constraint.Question
		want    []sticky.Move
		lost    []partition.Lost
	}{
		"all is within it":               {problem: fleetOf(2, 10*gib, on(0, 10, 4*gib), on(0, 10, 5*gib), on(1, 10, 9*gib))},
		"nobody knows how much there is": {problem: fleetOf(2, 0, on(0, 10, 40*gib), on(0, 10, 50*gib), on(1, 10, gib))},
		"the one that takes the least of those that are enough": {
			problem: fleetOf(2, 10*gib, on(0, 10, 6*gib), on(0, 10, 3*gib), on(0, 10, 5*gib), on(1, 10, gib)),
			want:    []sticky.Move{{Item: 2, ID: "c2", From: 0, To: 1, Load: 10, Why: draft.Starved, Sake: plan.NoReplica}}},
		"above high it pays like overload": {
			problem: fleetOf(2, 100*gib, on(0, 10, 60*gib), on(0, 10, 37*gib), on(1, 10, gib)),
			want:    []sticky.Move{{Item: 1, ID: "c1", From: 0, To: 1, Load: 10, Why: draft.Overload, Sake: 0}}},
		"a load goes no way for which there is no memory": {
			problem: fleetOf(3, 10*gib, on(0, 60, gib), on(0, 50, 2*gib), on(1, 10, 9*gib), on(2, 30, gib)),
			want:    []sticky.Move{{Item: 1, ID: "c1", From: 0, To: 2, Load: 50, Why: draft.Overload, Sake: 0}}},
		"one cluster that takes more than there is": {
			problem: fleetOf(2, 10*gib, on(0, 10, 11*gib), on(1, 10, gib)),
			lost:    []partition.Lost{{What: partition.Memory, To: partition.Undivided, Item: "c0", Replica: 0}}},
		"it has a replica of its own": {
			problem: fixed(fleetOf(2, 10*gib, on(0, 10, 11*gib), on(0, 10, gib), on(1, 10, gib)), 2),
			want:    []sticky.Move{{Item: 1, ID: "c1", From: 0, To: 1, Load: 10, Why: draft.Starved, Sake: plan.NoReplica}},
			lost:    []partition.Lost{{What: partition.Memory, To: partition.Undivided, Item: "c0", Replica: 0}}},
		"more than all have": {
			problem: fixed(fleetOf(2, 10*gib, on(0, 10, 9*gib), on(0, 10, 8*gib), on(1, 10, 9*gib)), 2),
			lost:    []partition.Lost{{What: partition.Memory, To: partition.FixedReplicas, Item: "c1", Replica: 0}}},
		"one replica more": {
			problem: fleetOf(2, 10*gib, on(0, 10, 9*gib), on(0, 10, 8*gib), on(1, 10, 9*gib)),
			want:    []sticky.Move{{Item: 1, ID: "c1", From: 0, To: 2, Load: 10, Why: draft.Starved, Sake: plan.NoReplica}}},
		"only all together": { // 7 and 3, 6 and 4
			problem: fixed(fleetOf(2, 10*gib, on(0, 10, 7*gib), on(0, 10, 4*gib), on(1, 10, 6*gib), on(1, 10, 3*gib)), 2),
			want: []sticky.Move{{Item: 1, ID: "c1", From: 0, To: 1, Load: 10, Why: draft.Starved, Sake: plan.NoReplica},
				{Item: 3, ID: "c3", From: 1, To: 0, Load: 10, Why: draft.MadeRoom, Sake: plan.NoReplica}}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := sticky.Plan(test.problem, sticky.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, a.Moves) + cmp.Diff(test.lost, a.Lost); diff != "" {
				t.Errorf("moves and what is lost (-want +got):\n%s", diff)
			}
		})
	}
}

// withMemory draws what items take of replicas that have 100 bytes.
func withMemory(t *rapid.T, p constraint.Question) constraint.Question {
	p.Bounds.Memory = 100
	p.Items = slices.Clone(p.Items)
	for i := range p.Items {
		p.Items[i].Memory = plan.Bytes(rapid.SampledFrom([]int64{0, 5, 20, 33, 45, 60, 130}).Draw(t, "memory"))
	}
	return p
}

// beyond is the memory that replicas of several items lack, of all together.
func beyond(p constraint.Question, of []int) (lack plan.Bytes) {
	memory, units := map[int]plan.Bytes{}, map[int]int{}
	for i, r := range of {
		if r < 0 {
			continue
		}
		memory[r] += p.Items[i].Memory
		units[r]++
	}
	for r, bytes := range memory {
		if units[r] > 1 {
			lack += max(bytes-p.Bounds.Memory, 0)
		}
	}
	return lack
}

func TestEveryPlanKeepsEveryRuleBesideMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := withMemory(t, drawProblem(t)), drawOptions(t)
		a := ask(t, p, o)
		if a == nil {
			return
		}
		checkCount(t, p, a)
		checkRules(t, p, a)
		checkMemory(t, p, a)
	})
}

// checkMemory: what replicas have in use adds up, and is told where it is more than they have.
func checkMemory(t rapid.TB, p constraint.Question, a *sticky.Answer) {
	memory := make([]plan.Bytes, a.Replicas)
	for i, r := range a.Of {
		memory[r] += p.Items[i].Memory
	}
	if d := cmp.Diff(memory, a.Memory); d != "" {
		t.Fatalf("memory (-added up +said)\n%s", d)
	}
	said := map[int]bool{}
	for _, l := range a.Lost {
		if l.What == partition.Memory {
			said[l.Replica] = true
		}
	}
	for r, bytes := range memory {
		if (bytes > p.Bounds.Memory) != said[r] {
			t.Fatalf("replica %d has %d in use, and that is told: %v", r, bytes, said[r])
		}
	}
}

// TestWithoutMemoryNothingChanges: an item's memory counts for nothing where nobody says what a replica has, and where it has more
// than enough.
func TestWithoutMemoryNothingChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProblem(t), drawOptions(t)
		for i := range p.Items {
			p.Items[i].Load++ // what has neither load nor memory waits for all others
		}
		before := ask(t, p, o)
		q := withMemory(t, p)
		for _, memory := range []plan.Bytes{0, 1 << 40} {
			q.Bounds.Memory = memory
			after := ask(t, q, o)
			if after != nil {
				after.HighMemory, after.Memory = 0, nil
			}
			if d := cmp.Diff(before, after); d != "" {
				t.Fatalf("(-before +after)\n%s", d)
			}
		}
	})
}

func TestWhatIsInForceStaysBesideMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := withMemory(t, drawProblem(t)), drawOptions(t)
		o.MaxMoves = 0
		first := ask(t, p, o)
		if first == nil {
			return
		}
		o.DrainDue = false
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

func TestNoMoveMakesMemoryScarcer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := withMemory(t, drawProblem(t)), drawOptions(t)
		p.Apart, p.Bounds.MaxClusters = nil, 0 // what a rule asks for comes first
		for i := range p.Items {
			p.Items[i].Replica = partition.Free
			p.Now[i] = min(max(p.Now[i], 0), p.Replicas-1)
		}
		p.Bounds.MaxReplicas = max(p.Bounds.MaxReplicas, p.Replicas)
		if p.Bounds.Fixed > 0 {
			p.Bounds.Fixed = p.Replicas
		}
		a := ask(t, p, o)
		if a == nil {
			return
		}
		if before, after := beyond(p, p.Now), beyond(p, a.Of); after > before {
			t.Fatalf("%d bytes are lacking, and were %d: %+v", after, before, a.Moves)
		}
	})
}

// TestMemoryIsKeptWhereverItCanBe: of all ways to divide a small fleet by the rules, one is within the memory only if the answer is.
func TestMemoryIsKeptWhereverItCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, replicas := rapid.IntRange(1, 7).Draw(t, "items"), rapid.IntRange(1, 3).Draw(t, "replicas")
		p := constraint.Question{Replicas: replicas, Bounds: partition.Bounds{MaxReplicas: replicas + rapid.IntRange(0, 1).Draw(t, "more"), Capacity: 100, Memory: 100}}
		if rapid.Bool().Draw(t, "is fixed") {
			p.Bounds.Fixed = replicas
		}
		for i := range n {
			it := partition.Item{ID: fmt.Sprintf("c%02d", i), Clusters: 1, Replica: partition.Free, Load: plan.Load(rapid.Int64Range(0, 60).Draw(t, "load")),
				Memory: plan.Bytes(rapid.Int64Range(0, 70).Draw(t, "memory"))}
			if rapid.IntRange(0, 7).Draw(t, "is pinned") == 0 {
				it.Replica = rapid.IntRange(0, replicas-1).Draw(t, "pin")
			}
			p.Items = append(p.Items, it)
			p.Now = append(p.Now, rapid.IntRange(-1, replicas-1).Draw(t, "now"))
		}
		if n > 1 && rapid.Bool().Draw(t, "has a group") {
			p.Apart = []constraint.Group{{Name: "g", Items: []int{0, 1}}}
		}
		a := ask(t, p, drawOptions(t))
		if a == nil || beyond(p, a.Of) == 0 {
			return
		}
		most := p.Bounds.MaxReplicas
		if p.Bounds.Fixed > 0 {
			most = p.Bounds.Fixed
		}
		if of := within(p, most, make([]int, 0, n)); of != nil {
			t.Fatalf("%v lacks %d bytes, and %v none", a.Of, beyond(p, a.Of), of)
		}
	})
}

// within is a plan of so many replicas by the rules that lacks no memory; nil: there is none.
func within(p constraint.Question, replicas int, of []int) []int {
	k := len(of)
	if k == len(p.Items) {
		if beyond(p, of) > 0 || len(p.Apart) > 0 && of[0] == of[1] {
			return nil
		}
		return of
	}
	for r := range replicas {
		if at := p.Items[k].Replica; at != partition.Free && at != r {
			continue
		}
		if found := within(p, replicas, append(of, r)); found != nil {
			return found
		}
	}
	return nil
}

func TestThatMuchMemoryCannotBeAddedUp(t *testing.T) {
	p := fleetOf(2, gib, on(0, 1, math.MaxInt64-1), on(0, 1, 5))
	_, err := sticky.Plan(p, sticky.Options{})
	if want := `partitioning "c1": with it the memory of all is beyond what can be added up`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	p = fleetOf(2, -1, on(0, 1, -2))
	_, err = sticky.Plan(p, sticky.Options{})
	want := "partitioning with -1 bytes of memory a replica: that is 0 (nobody knows) or more\npartitioning \"c0\": it takes -2 bytes of memory, and that is 0 or more"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestATightFleetIsPacked: where all replicas are full to the last byte in one plan, that or another is found from wherever things stand.
func TestATightFleetIsPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(2, 3).Draw(t, "replicas")
		p := fixed(constraint.Question{Replicas: replicas, Bounds: partition.Bounds{MaxReplicas: replicas, Capacity: 100, Memory: 100}}, replicas)
		for r := range replicas {
			a := rapid.IntRange(5, 60).Draw(t, "first")
			b := rapid.IntRange(5, 90-a+4).Draw(t, "second")
			for k, memory := range []int{a, b, 100 - a - b} {
				p.Items = append(p.Items, partition.Item{ID: fmt.Sprint("c", r, k), Clusters: 1, Replica: partition.Free, Memory: plan.Bytes(memory),
					Load: plan.Load(rapid.IntRange(0, 30).Draw(t, "load"))})
				p.Now = append(p.Now, rapid.IntRange(0, replicas-1).Draw(t, "now"))
			}
		}
		if a := ask(t, p, sticky.Options{}); beyond(p, a.Of) > 0 {
			t.Fatalf("%v is short of %d, and there is a plan that is not", a.Of, beyond(p, a.Of))
		}
	})
}

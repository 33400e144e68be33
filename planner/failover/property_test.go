package failover

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/placement"
	"ballast/planner/plan"
)

// drawRequest is any request: clusters that share servers or stand where nothing runs, pins of every kind, replicas
// that do not exist, a budget that pins overdrew.
func drawRequest(t *rapid.T) Request {
	p := plan.Plan{Replicas: rapid.IntRange(0, 6).Draw(t, "replicas"), MaxReplicas: 16, Clusters: map[string]plan.Row{}}
	if rapid.IntRange(0, 4).Draw(t, "rollout") == 0 {
		p.Rollout = &plan.Rollout{Mode: rapid.SampledFrom([]string{plan.ModeLive, plan.ModeX0Y}).Draw(t, "mode"),
			From: plan.Count{Replicas: p.Replicas}, Replicas: rapid.IntRange(0, 7).Draw(t, "next replicas")}
	}
	r := Request{Loads: map[string]plan.Load{}, Fixed: map[string]bool{}}
	pins := plan.Pins{}
	for i := range rapid.IntRange(0, 25).Draw(t, "clusters") {
		name := fmt.Sprintf("c%02d", i)
		row := plan.Row{Replica: rapid.IntRange(0, 7).Draw(t, "at")}
		if rapid.IntRange(0, 2).Draw(t, "shares") == 0 {
			row.Server = rapid.SampledFrom([]string{"aaaaaaa", "bbbbbbb", "ccccccc"}).Draw(t, "server")
		}
		row.Load = fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "load of its row"))
		switch rapid.IntRange(0, 9).Draw(t, "stays") {
		case 0:
			pins[name] = rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7, 15, 16, 99}).Draw(t, "pin")
		case 1:
			r.Fixed[name] = true
		case 2:
			row.Pinned = true
		}
		if rapid.Bool().Draw(t, "measured") {
			r.Loads[name] = units(float64(rapid.IntRange(0, 9).Draw(t, "load")))
		}
		p.Clusters[name] = row
	}
	r.View = plan.NewView(p, pins)
	replicas := rapid.SliceOfN(rapid.IntRange(-1, 7), 0, 3)
	r.Unwell, r.Cordoned, r.CannotReceive = replicas.Draw(t, "unwell"), replicas.Draw(t, "cordoned"), replicas.Draw(t, "shut")
	r.Capacity, r.BudgetDrain = units(float64(rapid.IntRange(0, 40).Draw(t, "capacity"))), rapid.IntRange(-3, 30).Draw(t, "budget")
	r.BudgetRescue = rapid.IntRange(-3, 30).Draw(t, "rescue")
	r.BudgetSuspect = min(r.BudgetRescue, rapid.IntRange(-3, 30).Draw(t, "whole"))
	r.MaxClusters = rapid.IntRange(0, 9).Draw(t, "most clusters")
	drawTies(t, &r)
	if rapid.Bool().Draw(t, "failed over before") {
		r.Last = Last{Replica: rapid.IntRange(0, 7).Draw(t, "last"), At: at(float64(rapid.IntRange(-120, 60).Draw(t, "minute"))), Dead: replicas.Draw(t, "dead then")}
	}
	r.Dead = replicas.Draw(t, "dead")
	return r
}

// drawTies has clusters that are kept apart, servers that stay together, and memory that replicas have too little of.
func drawTies(t *rapid.T, r *Request) {
	names := slices.Sorted(maps.Keys(r.View.Plan.Clusters))
	if rapid.IntRange(0, 2).Draw(t, "some are kept apart") == 0 {
		r.Apart = map[string][]string{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "is a hub") {
				r.Apart[name] = []string{"hubs"}
			}
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "servers are bound") == 0 {
		r.Servers = placement.NewServers(len(names))
		for _, name := range names {
			if server := r.View.Plan.Clusters[name].Server; server != "" {
				r.Servers.Add(name, "https://"+server)
			}
		}
		r.Servers.Bind("https://bbbbbbb", "https://aaaaaaa")
	}
	if rapid.IntRange(0, 2).Draw(t, "memory is known") == 0 {
		r.Memory, r.Bytes = 12, map[string]plan.Bytes{}
		for _, name := range names {
			r.Bytes[name] = plan.Bytes(rapid.IntRange(0, 12).Draw(t, "bytes"))
		}
	}
}

// shared is what clusters have in common that stay together; empty: it has none.
func shared(r Request, name string) string {
	hash := r.View.Plan.Clusters[name].Server
	if r.Servers == nil {
		return hash
	}
	return r.Servers.Of(name, hash)
}

func after(r Request, e Evacuation, name string) int {
	if to, moves := e.Moves[name]; moves {
		return to
	}
	return stands(r, name)
}

// tiesHold: what leaves a replica that works goes to none that has another one of its group, or not its memory; what leaves one that
// nobody works for may, and that is told. Of several Secrets that go together the first is named.
func tiesHold(t *rapid.T, r Request, e Evacuation) {
	crowds, starves := map[int]bool{}, map[int]bool{}
	for _, n := range e.Notes {
		if forced := n.Kind == GroupCrowded || n.Kind == MemoryCrowded; forced && !dead(r, stands(r, n.Cluster)) {
			t.Fatalf("%s left replica %d, which works, for one that may not take it: %v", n.Cluster, stands(r, n.Cluster), n)
		}
		crowds[n.Replica] = crowds[n.Replica] || n.Kind == GroupCrowded
		starves[n.Replica] = starves[n.Replica] || n.Kind == MemoryCrowded
	}
	inUse := make(map[int]plan.Bytes)
	for name := range r.View.Plan.Clusters {
		inUse[after(r, e, name)] += r.Bytes[name]
	}
	for name, to := range e.Moves {
		if r.Memory > 0 && inUse[to] > r.Memory && r.Bytes[name] > 0 && !starves[to] {
			t.Fatalf("%s takes replica %d to %d bytes of %d, and nothing says so: %v", name, to, inUse[to], r.Memory, e.Notes)
		}
		for other := range r.Apart {
			together := shared(r, other) != "" && shared(r, other) == shared(r, name)
			if meets := other != name && after(r, e, other) == to; meets && !together && len(r.Apart[name]) > 0 && !crowds[to] {
				t.Fatalf("%s meets %s on replica %d, and nothing says so: %v", name, other, to, e.Notes)
			}
		}
	}
}

func fixed(r Request, name string) bool { return pinned(r, name) || r.Fixed[name] }

// pinned reports whether a cluster has the replica that it is pinned to.
func pinned(r Request, name string) bool {
	pin, pinned := r.View.Pin(name)
	return pinned && pin == stands(r, name)
}

// dead reports whether a replica is unwell and does not work.
func dead(r Request, replica int) bool {
	return slices.Contains(r.Unwell, replica) && !r.Recovered[replica]
}

func stands(r Request, name string) int {
	replica, _, _ := r.View.Effective(name)
	return replica
}

func TestEvacuationsKeepToTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		e := Evacuate(r, start)
		emptied := union(r.Unwell, r.Cordoned)
		drained, either := 0, 0
		for name := range e.Moves {
			switch from := stands(r, name); {
			case dead(r, from) && slices.Contains(r.Cordoned, from):
				either++
			case slices.Contains(r.Cordoned, from):
				drained++
			}
		}
		off := func(yield func(string) bool) {
			for name := range e.Moves {
				if from := stands(r, name); slices.Contains(r.Cordoned, from) && !dead(r, from) && !yield(name) {
					return
				}
			}
		}
		servers, most := r.Servers, max(r.BudgetDrain, 0)
		if servers == nil {
			servers = placement.NewServers(0)
		} else if most > 0 {
			most++ // two that are bound go whole once there is room for one
		}
		if n := servers.Count(off, func(name string) string { return r.View.Plan.Clusters[name].Server }); n > most {
			t.Fatalf("%d servers leave cordoned replicas, the budget for those is %d", n, r.BudgetDrain)
		}
		if n := len(e.Moves) - drained; n < e.FailedOver || n > e.FailedOver+either {
			t.Fatalf("%d moves, %d off unwell and %d off cordoned replicas, %d off such as are both", len(e.Moves), e.FailedOver, drained, either)
		}
		for name, to := range e.Moves {
			from := stands(r, name)
			switch {
			case fixed(r, name):
				t.Fatalf("%s is fixed, and moves", name)
			case !slices.Contains(emptied, from):
				t.Fatalf("%s leaves %d, which is neither unwell nor cordoned", name, from)
			case slices.Contains(emptied, to) || slices.Contains(r.CannotReceive, to) || to < 0 || to >= r.View.Plan.Running():
				t.Fatalf("%s moves to %d, which is unwell, cordoned, shut or does not run", name, to)
			}
		}
		oneReplicaAnHour(t, r, e)
		serversTogether(t, r, e)
		tiesHold(t, r, e)
		pinnedAreNamed(t, r, e)
		capHolds(t, r, e)
	})
}

// capHolds: a replica receives more than the cap allows only where no open one has room. A server goes to where it
// stands, whatever the cap says.
func capHolds(t *rapid.T, r Request, e Evacuation) {
	clusters, received := make([]int, r.View.Plan.Running()), map[int]bool{}
	for name, row := range r.View.Plan.Clusters {
		at := stands(r, name)
		if to, moves := e.Moves[name]; moves {
			at, received[to] = to, true
			if row.Server != "" {
				return
			}
		}
		if at < len(clusters) {
			clusters[at]++
		}
	}
	for to := range received {
		for replica, n := range clusters {
			closed := slices.Contains(union(r.Unwell, r.Cordoned), replica) || slices.Contains(r.CannotReceive, replica)
			if r.MaxClusters > 0 && !closed && clusters[to] > r.MaxClusters && n < r.MaxClusters {
				t.Fatalf("replica %d goes to %d clusters, replica %d has %d, the cap is %d: %v", to, clusters[to], replica, n, r.MaxClusters, e.Moves)
			}
		}
	}
}

func oneReplicaAnHour(t *rapid.T, r Request, e Evacuation) {
	left, both := map[int]int{}, false
	for name := range e.Moves {
		from := stands(r, name)
		if both = both || dead(r, from) && slices.Contains(r.Cordoned, from); !slices.Contains(r.Cordoned, from) {
			left[from]++
		}
	}
	if both { // what leaves those may be a failover's or a drain's
		return
	}
	busy := !r.Last.At.IsZero() && start.Sub(r.Last.At) < time.Hour
	all, goesOn := 0, busy && (r.Last.At.Equal(e.Last.At) || r.Last.At.After(start)) // which is a clock that went back
	for from, n := range left {
		along := slices.Contains(e.Last.Dead, from) && dead(r, from)
		if all += n; from != e.Last.Replica && !along {
			t.Fatalf("clusters leave %v, the last failover is %v and then %v", left, r.Last, e.Last)
		}
	}
	if anew := !goesOn && !cmp.Equal(e.Last.Dead, union(r.Dead)); len(left) > 0 && (all != e.FailedOver || busy && !goesOn || anew) {
		t.Fatalf("%d clusters leave %v, the last failover is %v and then %v", e.FailedOver, left, r.Last, e.Last)
	}
	if len(left) == 0 && e.FailedOver > 0 || e.Last.At.After(start) || busy && !r.Last.At.After(start) && !cmp.Equal(e.Last, r.Last) {
		t.Fatalf("%d failed over, the last failover was %v and is %v", e.FailedOver, r.Last, e.Last)
	}
}

// serversTogether: Secrets with one server that stood on one replica do so afterwards. One that is fixed keeps them.
func serversTogether(t *rapid.T, r Request, e Evacuation) {
	for a := range r.View.Plan.Clusters {
		for b := range r.View.Plan.Clusters {
			together := shared(r, a) != "" && shared(r, a) == shared(r, b)
			if together && stands(r, a) == stands(r, b) && after(r, e, a) != after(r, e, b) {
				t.Fatalf("%s and %s stay together and stood on %d; now they are on %d and %d", a, b, stands(r, a), after(r, e, a), after(r, e, b))
			}
		}
	}
}

// pinnedAreNamed: what a pin keeps on a replica that is to be empty is named once, alone or for the others that stay together with it.
func pinnedAreNamed(t *rapid.T, r Request, e Evacuation) {
	named := map[string]int{}
	for _, n := range e.Notes {
		if n.Kind == PinnedStays {
			named[n.Cluster]++
		}
	}
	for name := range r.View.Plan.Clusters {
		at, want := stands(r, name), 0
		emptied := at < r.View.Plan.Running() && slices.Contains(union(r.Unwell, r.Cordoned), at)
		if emptied && pinned(r, name) {
			want = 1
		}
		if kept := emptied && !fixed(r, name) && keptByPin(r, name); kept && named[name] == 1 {
			want = 1
		}
		if named[name] != want {
			t.Fatalf("%s is on %d, to be emptied: %t, pinned there: %t; it is named %d times", name, at, emptied, pinned(r, name), named[name])
		}
	}
}

// keptByPin reports whether a pin keeps another one of those that stay together with a cluster.
func keptByPin(r Request, name string) bool {
	for other := range r.View.Plan.Clusters {
		together := shared(r, name) != "" && shared(r, other) == shared(r, name)
		if together && other != name && pinned(r, other) {
			return true
		}
	}
	return false
}

func TestTheSameQuestionHasTheSameAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		first := Evacuate(r, start)
		again := r
		again.Unwell = append(rapid.Permutation(r.Unwell).Draw(t, "unwell again"), r.Unwell...)
		again.Cordoned = rapid.Permutation(r.Cordoned).Draw(t, "cordoned again")
		again.View = plan.NewView(r.View.Plan.Clone(), pinsOf(r))
		if diff := cmp.Diff(first, Evacuate(again, start)); diff != "" {
			t.Fatalf("-first +again:\n%s", diff)
		}
	})
}

func pinsOf(r Request) plan.Pins {
	pins := plan.Pins{}
	for name := range r.View.Plan.Clusters {
		if pin, ok := r.View.Pin(name); ok {
			pins[name] = pin
		}
	}
	return pins
}

// TestEnoughBudgetEmptiesAndKeepsTheLargestLoadSmall: with no limit every cluster leaves that can, and no replica
// carries more than it did, than the capacity, or than the mean and one cluster: the bound of a list schedule.
func TestEnoughBudgetEmptiesAndKeepsTheLargestLoadSmall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		r.BudgetDrain, r.Unwell, r.CannotReceive, r.MaxClusters = 1000, nil, nil, 0
		r.Servers, r.Apart, r.Memory = nil, nil, 0
		for name, row := range r.View.Plan.Clusters {
			row.Server = ""
			r.View.Plan.Clusters[name] = row
		}
		n := r.View.Plan.Running()
		e := Evacuate(r, start)
		before, after := make([]plan.Load, n), make([]plan.Load, n)
		var heaviest, total plan.Load
		for _, name := range slices.Sorted(maps.Keys(r.View.Plan.Clusters)) {
			from := stands(r, name)
			to, moves := e.Moves[name]
			if from >= n {
				continue
			}
			open := !slices.Contains(r.Cordoned, from)
			if !moves && !open && !fixed(r, name) && len(r.Cordoned) > 0 && anyOpen(r, n) {
				t.Fatalf("%s stays on %d, which is cordoned", name, from)
			}
			if !moves {
				to = from
			}
			load, measured := r.Loads[name]
			if !measured {
				if err := load.UnmarshalText([]byte(r.View.Plan.Clusters[name].Load)); err != nil {
					t.Fatal(err)
				}
			}
			before[from], after[to] = before[from]+load, after[to]+load
			if heaviest = max(heaviest, load); moves || open {
				total += load
			}
		}
		opened := plan.Load(0)
		for replica := range n {
			if !slices.Contains(r.Cordoned, replica) {
				opened++
			}
		}
		for replica := range n {
			if !slices.Contains(r.Cordoned, replica) && after[replica] > max(before[replica], r.Capacity, total/opened+heaviest) {
				t.Fatalf("replica %d goes from %s to %s: the capacity is %s, the mean %s and the heaviest cluster %s",
					replica, before[replica], after[replica], r.Capacity, total/opened, heaviest)
			}
		}
	})
}

func anyOpen(r Request, n int) bool {
	for replica := range n {
		if !slices.Contains(r.Cordoned, replica) {
			return true
		}
	}
	return false
}

package failover

import (
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/failover/health"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

var start = time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time { return start.Add(time.Duration(minutes * float64(time.Minute))) }

// rows is a plan of so many replicas.
func rows(replicas int, clusters map[string]plan.Row) plan.Plan {
	return plan.Plan{Replicas: replicas, MaxReplicas: 16, Clusters: clusters}
}

// units is a load.
func units(index float64) plan.Load { return plan.Load(index * float64(plan.LoadUnit)) }

func request(p plan.Plan, change ...func(*Request)) Request {
	r := Request{View: plan.NewView(p, nil), Capacity: units(10), BudgetDrain: math.MaxInt, BudgetRescue: math.MaxInt, BudgetSuspect: math.MaxInt}
	for _, c := range change {
		c(&r)
	}
	return r
}

func unwell(replicas ...int) func(*Request)   { return func(r *Request) { r.Unwell = replicas } }
func cordoned(replicas ...int) func(*Request) { return func(r *Request) { r.Cordoned = replicas } }
func shut(replicas ...int) func(*Request)     { return func(r *Request) { r.CannotReceive = replicas } }
func budget(n int) func(*Request)             { return func(r *Request) { r.BudgetDrain = n } }
func rescue(n int) func(*Request)             { return func(r *Request) { r.BudgetRescue, r.BudgetSuspect = n, n } }
func capacity(c float64) func(*Request)       { return func(r *Request) { r.Capacity = units(c) } }
func memory(has plan.Bytes, takes map[string]plan.Bytes) func(*Request) {
	return func(r *Request) { r.Memory, r.Bytes = has, takes }
}
func works(replica int) func(*Request) {
	return func(r *Request) { r.Recovered = map[int]bool{replica: true} }
}
func again(names ...string) func(*Request) {
	return func(r *Request) {
		r.Suspects = map[string]bool{}
		for _, name := range names {
			r.Suspects[name] = true
		}
	}
}

func down(replicas ...int) func(*Request) { return func(r *Request) { r.Dead = replicas } }

// hubs are kept apart.
func hubs(names ...string) func(*Request) {
	return func(r *Request) {
		r.Apart = map[string][]string{}
		for _, name := range names {
			r.Apart[name] = []string{"hubs"}
		}
	}
}

func last(replica int, minute float64) func(*Request) {
	return func(r *Request) { r.Last = Last{Replica: replica, At: at(minute)} }
}

func pins(pins plan.Pins) func(*Request) {
	return func(r *Request) { r.View = plan.NewView(r.View.Plan, pins) }
}

// four is four replicas: 0 with 6, 1 with 4, 2 with 2 and 3 with 9.
func four() plan.Plan {
	return rows(4, map[string]plan.Row{
		"a": {Replica: 0, Load: "4"}, "b": {Replica: 0, Load: "2"},
		"c": {Replica: 1, Load: "4"},
		"d": {Replica: 2, Load: "2"},
		"e": {Replica: 3, Load: "5"}, "f": {Replica: 3, Load: "3"}, "g": {Replica: 3, Load: "1"},
	})
}

func TestWhereClustersGo(t *testing.T) {
	withServers := four()
	withServers.Clusters["f"] = plan.Row{Replica: 3, Load: "3", Server: "samehost"}
	withServers.Clusters["g"] = plan.Row{Replica: 3, Load: "1", Server: "samehost"}
	split := four()
	split.Clusters["d"] = plan.Row{Replica: 2, Load: "2", Server: "samehost"}
	split.Clusters["e"] = plan.Row{Replica: 3, Load: "5", Server: "samehost"}
	wasPinned := four()
	wasPinned.Clusters["e"] = plan.Row{Replica: 3, Load: "5", Pinned: true}
	wasPinned.Clusters["f"] = plan.Row{Replica: 3, Load: "3", Pinned: true}
	shrinking := four()
	shrinking.Rollout = &plan.Rollout{Mode: plan.ModeLive, From: plan.Count{Replicas: 4}, Replicas: 2}
	beyond := four()
	beyond.Clusters["lost"] = plan.Row{Replica: 9, Load: "50"}
	for name, test := range map[string]struct {
		request Request
		want    Evacuation
	}{
		"nobody is unwell": {request(four()), Evacuation{}},
		"an unwell replica: the heaviest first, each to the fullest that takes it": {request(four(), unwell(3)),
			Evacuation{Moves: map[string]int{"e": 1, "f": 0, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"a cordoned replica": {request(four(), cordoned(3)), Evacuation{Moves: map[string]int{"e": 1, "f": 0, "g": 0}}},
		"a cordoned replica that does not work waits for no budget of drains": {request(four(), unwell(3), cordoned(3), budget(0)),
			Evacuation{Moves: map[string]int{"e": 1, "f": 0, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"nor does it in another replica's hour, but by the budget": {request(four(), unwell(3), cordoned(3), last(2, -1), budget(1)),
			Evacuation{Moves: map[string]int{"e": 1}, Last: Last{Replica: 2, At: at(-1)},
				Notes: []Note{{BudgetWaits, "f", 3, `2 clusters of replica 3, which is cordoned, wait for the move budget, the first is "f"`}}}},
		"what a failover leaves of it goes as a drain": {request(four(), unwell(3), cordoned(3), again("e", "f", "g"), rescue(1), budget(1)),
			Evacuation{Moves: map[string]int{"e": 1, "f": 0}, FailedOver: 1, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{{BudgetWaits, "g", 3, `1 cluster of replica 3, which is cordoned, waits for the move budget, the first is "g"`}}}},
		"a cordoned replica that works again, though unwell, waits for the budget": {request(four(), unwell(3), works(3), cordoned(3), budget(1)),
			Evacuation{Moves: map[string]int{"e": 1},
				Notes: []Note{{BudgetWaits, "f", 3, `2 clusters of replica 3, which is cordoned, wait for the move budget, the first is "f"`}}}},
		"a cordoned replica: not beside its group": {request(four(), cordoned(3), hubs("c", "e")),
			Evacuation{Moves: map[string]int{"e": 2, "f": 2, "g": 0}}},
		"a cordoned replica: it stays where each has one of its group": {request(four(), cordoned(3), hubs("a", "c", "d", "e")),
			Evacuation{Moves: map[string]int{"f": 0, "g": 0}, Notes: []Note{{GroupStays, "e", 3, `cluster "e" stays on replica 3, which is cordoned, ` +
				`for every replica that may take it has another one of group "hubs", which is kept apart: add a replica, or change the group`}}}},
		"one that nobody has goes all the same": {request(four(), unwell(3), hubs("a", "c", "d", "e")),
			Evacuation{Moves: map[string]int{"f": 0, "g": 0, "e": 2}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}, Notes: []Note{{GroupCrowded, "e", 2,
				`cluster "e" goes to replica 2, which has another one of group "hubs": nobody has it where it is, and no other replica may take it`}}}},
		"present loads win over the rows'": {request(four(), unwell(3), func(r *Request) {
			r.Loads = map[string]plan.Load{"e": units(1), "f": units(6), "a": units(9)}
		}), Evacuation{Moves: map[string]int{"f": 1, "e": 2, "g": 2}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"what replicas carry beside the plan counts": {request(four(), unwell(3), func(r *Request) { r.Beside = []plan.Load{units(4), units(5), 0} }),
			Evacuation{Moves: map[string]int{"e": 2, "f": 2, "g": 1}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"more than fits: the largest load is kept small": {request(four(), unwell(3), capacity(6)),
			Evacuation{Moves: map[string]int{"f": 2, "g": 2, "e": 1}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{{BeyondCapacity, "", 1, "replica 1 goes to load 9, beyond the capacity of 6: no other replica has room for what leaves"}}}},
		"an unknown capacity: everything is spread": {request(four(), unwell(3), capacity(0)),
			Evacuation{Moves: map[string]int{"e": 2, "f": 1, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"memory: only where there is enough": {request(four(), unwell(3), memory(10, map[string]plan.Bytes{"a": 4, "c": 9, "e": 3, "f": 3, "g": 3})),
			Evacuation{Moves: map[string]int{"e": 2, "f": 2, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"memory: what nobody has goes all the same, by the budget": {request(four(), unwell(3), rescue(1), memory(10, map[string]plan.Bytes{"a": 8, "c": 9, "d": 8, "e": 5, "f": 5, "g": 1})),
			Evacuation{Moves: map[string]int{"g": 0, "f": 2}, FailedOver: 2, Last: Last{Replica: 3, At: at(0)}, Notes: []Note{
				{MemoryCrowded, "f", 2, `cluster "f" goes to replica 2, which has not the 5 B of memory that it takes: nobody has it where it is, and no other replica has more`},
				{BudgetWaits, "e", 3, `1 cluster of replica 3, which is unwell, waits for the move budget, the first is "e"`}}}},
		"memory: what a replica has that works stays": {request(four(), cordoned(3), memory(10, map[string]plan.Bytes{"a": 8, "c": 9, "d": 8, "e": 5, "f": 1})),
			Evacuation{Moves: map[string]int{"f": 0, "g": 0}, Notes: []Note{{MemoryStays, "e", 3, `cluster "e" stays on replica 3, which is cordoned, ` +
				`for no replica that may take it has the 5 B of memory that it takes: add a replica, or raise the memory`}}}},
		"a cap on clusters": {request(four(), unwell(3), func(r *Request) { r.MaxClusters = 2 }),
			Evacuation{Moves: map[string]int{"e": 1, "f": 2, "g": 2}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{{BeyondCapacity, "", 2, "replica 2 goes to 3 clusters, beyond maxClustersPerReplica 2: no other replica has room for what leaves"}}}},
		"a cap on clusters holds where nothing is known of a capacity": {request(four(), unwell(3), capacity(0), func(r *Request) { r.MaxClusters = 2 }),
			Evacuation{Moves: map[string]int{"e": 2, "f": 1, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{{BeyondCapacity, "", 0, "replica 0 goes to 3 clusters, beyond maxClustersPerReplica 2: no other replica has room for what leaves"}}}},
		"a cap on clusters holds beyond the capacity": {request(four(), unwell(2, 3), last(2, -1), capacity(1), func(r *Request) { r.MaxClusters = 2 }),
			Evacuation{Moves: map[string]int{"d": 1}, FailedOver: 1, Last: Last{Replica: 2, At: at(-1)}, Notes: []Note{
				{HourWaits, "", 3, "replica 3 is unwell and keeps its clusters for now: one replica an hour is emptied, and another may be from 2026-11-20T17:59:00Z"},
				{BeyondCapacity, "", 1, "replica 1 goes to load 6, beyond the capacity of 1: no other replica has room for what leaves"}}}},
		"a cap on clusters wins over the lightest": {request(four(), unwell(3), capacity(0), func(r *Request) {
			r.MaxClusters, r.Loads = 3, map[string]plan.Load{"a": 0, "b": 0, "c": units(9), "d": units(9)}
		}), Evacuation{Moves: map[string]int{"e": 0, "f": 1, "g": 2}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"a small budget: what fits comes first, the heaviest of it": {request(four(), cordoned(3), budget(1)),
			Evacuation{Moves: map[string]int{"e": 1},
				Notes: []Note{{BudgetWaits, "f", 3, `2 clusters of replica 3, which is cordoned, wait for the move budget, the first is "f"`}}}},
		"a small budget and little room: what fits comes before what is heavier": {request(four(), cordoned(3), capacity(6), budget(2)),
			Evacuation{Moves: map[string]int{"f": 2, "g": 2},
				Notes: []Note{{BudgetWaits, "e", 3, `1 cluster of replica 3, which is cordoned, waits for the move budget, the first is "e"`}}}},
		"a small budget and no room: the least harm comes first": {request(four(), cordoned(3), capacity(1), budget(2)),
			Evacuation{Moves: map[string]int{"g": 1, "f": 2},
				Notes: []Note{ // what waits takes no room
					{BudgetWaits, "e", 3, `1 cluster of replica 3, which is cordoned, waits for the move budget, the first is "e"`},
					{BeyondCapacity, "", 1, "replica 1 goes to load 5, beyond the capacity of 1: no other replica has room for what leaves"},
					{BeyondCapacity, "", 2, "replica 2 goes to load 5, beyond the capacity of 1: no other replica has room for what leaves"},
				}}},
		"what nobody has and others have room for waits for no budget": {request(four(), unwell(3), budget(-7), rescue(0)),
			Evacuation{Moves: map[string]int{"e": 1, "f": 0, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"a small budget: what carries nothing comes last": {request(four(), cordoned(3), capacity(1), budget(2), func(r *Request) {
			r.Loads = map[string]plan.Load{"g": 0}
		}), Evacuation{Moves: map[string]int{"f": 1, "e": 2},
			Notes: []Note{
				{BudgetWaits, "g", 3, `1 cluster of replica 3, which is cordoned, waits for the move budget, the first is "g"`},
				{BeyondCapacity, "", 1, "replica 1 goes to load 7, beyond the capacity of 1: no other replica has room for what leaves"},
				{BeyondCapacity, "", 2, "replica 2 goes to load 7, beyond the capacity of 1: no other replica has room for what leaves"},
			}}},
		"a budget that pins overdrew": {request(four(), cordoned(2), budget(-7)),
			Evacuation{Notes: []Note{{BudgetWaits, "d", 2, `1 cluster of replica 2, which is cordoned, waits for the move budget, the first is "d"`}}}},
		"a quarter more than others carry goes, and one beyond that": {request(four(), unwell(3), capacity(1), rescue(0)),
			Evacuation{Moves: map[string]int{"f": 2, "g": 1}, FailedOver: 2, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{
					{BudgetWaits, "e", 3, `1 cluster of replica 3, which is unwell, waits for the move budget, the first is "e"`},
					{BeyondCapacity, "", 1, "replica 1 goes to load 5, beyond the capacity of 1: no other replica has room for what leaves"},
					{BeyondCapacity, "", 2, "replica 2 goes to load 5, beyond the capacity of 1: no other replica has room for what leaves"},
				}}},
		"what waits makes no room where the others took on a quarter": {request(rows(3, map[string]plan.Row{
			"a": {Replica: 0, Load: "13"}, "b": {Replica: 0, Load: "1"}, "c": {Replica: 0, Load: "2"}, "d": {Replica: 0, Load: "3"},
			"e": {Replica: 0, Load: "7"}, "f": {Replica: 0, Load: "14"}, "g": {Replica: 1, Load: "43"}, "h": {Replica: 2, Load: "15"},
		}), unwell(0), capacity(28), rescue(1)),
			Evacuation{Moves: map[string]int{"a": 2, "b": 1, "c": 1, "d": 1, "e": 2}, FailedOver: 5, Last: Last{Replica: 0, At: at(0)},
				Notes: []Note{
					{BudgetWaits, "f", 0, `1 cluster of replica 0, which is unwell, waits for the move budget, the first is "f"`},
					{BeyondCapacity, "", 1, "replica 1 goes to load 49, beyond the capacity of 28: no other replica has room for what leaves"},
					{BeyondCapacity, "", 2, "replica 2 goes to load 35, beyond the capacity of 28: no other replica has room for what leaves"},
				}}},
		"within the hour it is a quarter of what they carried before": {request(four(), unwell(3), capacity(1), rescue(0), func(r *Request) {
			r.Last = Last{Replica: 3, At: at(-5), Carried: []plan.Load{units(4), units(3), units(1)}}
		}), Evacuation{Last: Last{Replica: 3, At: at(-5)},
			Notes: []Note{{BudgetWaits, "g", 3, `3 clusters of replica 3, which is unwell, wait for the move budget, the first is "g"`}}}},
		"without loads nobody knows what others bear": {request(four(), unwell(3), capacity(0), rescue(2), func(r *Request) {
			r.Loads = map[string]plan.Load{}
			for name := range r.View.Plan.Clusters {
				r.Loads[name] = 0
			}
		}), Evacuation{Moves: map[string]int{"e": 1, "f": 2}, FailedOver: 2, Last: Last{Replica: 3, At: at(0)},
			Notes: []Note{{BudgetWaits, "g", 3, `1 cluster of replica 3, which is unwell, waits for the move budget, the first is "g"`}}}},
		"one that does not work comes before one that works again, and waits for no hour of it": {request(four(), unwell(0, 1), func(r *Request) {
			r.Recovered = map[int]bool{0: true}
			r.Last = Last{Replica: 0, At: at(-5), Worked: true}
		}), Evacuation{Moves: map[string]int{"c": 2}, FailedOver: 1, Last: Last{Replica: 1, At: at(0)},
			Notes: []Note{{HourWaits, "", 0, "replica 0 is unwell and keeps its clusters for now: one replica an hour is emptied, and another may be from 2026-11-20T17:55:00Z"}}}},
		"a replica that works again has its clusters: they wait for the budget": {request(four(), unwell(3), rescue(1), func(r *Request) {
			r.Recovered = map[int]bool{3: true}
		}), Evacuation{Moves: map[string]int{"e": 1}, FailedOver: 1, Last: Last{Replica: 3, At: at(0), Worked: true},
			Notes: []Note{{BudgetWaits, "f", 3, `2 clusters of replica 3, which is unwell, wait for the move budget, the first is "f"`}}}},
		"what a failover moved within a day waits for the budget": {request(four(), unwell(3), rescue(1), func(r *Request) {
			r.Suspects = map[string]bool{"e": true, "f": true}
		}), Evacuation{Moves: map[string]int{"e": 1, "g": 1}, FailedOver: 2, Last: Last{Replica: 3, At: at(0)},
			Notes: []Note{{BudgetWaits, "f", 3, `1 cluster of replica 3, which is unwell, waits for the move budget, the first is "f"`}}}},
		"a quarter is one more of four equal ones, to the last unit": {request(rows(2, map[string]plan.Row{"a": {Replica: 1}, "b": {Replica: 1}, "c": {Replica: 1}, "d": {Replica: 1}, "e": {}, "f": {}}),
			unwell(0), capacity(0), last(0, -5), rescue(0), func(r *Request) {
				r.Loads = map[string]plan.Load{}
				for name := range r.View.Plan.Clusters {
					r.Loads[name] = 16666667
				}
				r.Last.Carried = []plan.Load{33333334, 66666668}
			}), Evacuation{Moves: map[string]int{"e": 1}, FailedOver: 1, Last: Last{Replica: 0, At: at(-5)},
			Notes: []Note{{BudgetWaits, "f", 0, `1 cluster of replica 0, which is unwell, waits for the move budget, the first is "f"`}}}},
		"a day's budget that is spent holds up alone what a failover moved within that day": {request(four(), unwell(3), capacity(1), last(3, -5), again("e"), func(r *Request) {
			r.BudgetRescue, r.BudgetSuspect = 3, 0
		}), Evacuation{Moves: map[string]int{"f": 2, "g": 1}, FailedOver: 2, Last: Last{Replica: 3, At: at(-5)},
			Notes: []Note{
				{BudgetWaits, "e", 3, `1 cluster of replica 3, which is unwell, waits for the move budget, the first is "e"`},
				{BeyondCapacity, "", 1, "replica 1 goes to load 5, beyond the capacity of 1: no other replica has room for what leaves"},
				{BeyondCapacity, "", 2, "replica 2 goes to load 5, beyond the capacity of 1: no other replica has room for what leaves"},
			}}},
		"and what no other replica has the memory for": {request(four(), unwell(3), capacity(1), last(3, -5),
			memory(10, map[string]plan.Bytes{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 11, "g": 1}), func(r *Request) { r.BudgetRescue, r.BudgetSuspect = 3, 0 }),
			Evacuation{Moves: map[string]int{"e": 2, "g": 1}, FailedOver: 2, Last: Last{Replica: 3, At: at(-5)},
				Notes: []Note{
					{BudgetWaits, "f", 3, `1 cluster of replica 3, which is unwell, waits for the move budget, the first is "f"`},
					{BeyondCapacity, "", 1, "replica 1 goes to load 5, beyond the capacity of 1: no other replica has room for what leaves"},
					{BeyondCapacity, "", 2, "replica 2 goes to load 7, beyond the capacity of 1: no other replica has room for what leaves"},
				}}},
		"an unwell replica's clusters take nothing of the budget for cordoned ones": {request(four(), unwell(1), cordoned(3, 2), budget(1)),
			Evacuation{Moves: map[string]int{"c": 0, "g": 0}, FailedOver: 1, Last: Last{Replica: 1, At: at(0)},
				Notes: []Note{
					{BudgetWaits, "d", 2, `3 clusters of 2 replicas that are cordoned wait for the move budget, the first is "d"`},
					{BeyondCapacity, "", 0, "replica 0 goes to load 11, beyond the capacity of 10: no other replica has room for what leaves"},
				}}},
		"a drain waits by itself": {request(four(), unwell(1), cordoned(3), budget(0)),
			Evacuation{Moves: map[string]int{"c": 0}, FailedOver: 1, Last: Last{Replica: 1, At: at(0)},
				Notes: []Note{
					{BudgetWaits, "e", 3, `3 clusters of replica 3, which is cordoned, wait for the move budget, the first is "e"`},
				}}},
		"a replica that is both is cordoned": {request(four(), unwell(3), cordoned(3), last(1, -1)),
			Evacuation{Moves: map[string]int{"e": 1, "f": 0, "g": 0}, Last: Last{Replica: 1, At: at(-1)}}},
		"of two unwell ones the most loaded": {request(four(), unwell(0, 3), capacity(100)),
			Evacuation{Moves: map[string]int{"e": 1, "f": 1, "g": 1}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{{HourWaits, "", 0, "replica 0 is unwell and keeps its clusters for now: one replica an hour is emptied, and another may be from 2026-11-20T18:00:00Z"}}}},
		"another one within the hour": {request(four(), unwell(0), last(3, -59)),
			Evacuation{Last: Last{Replica: 3, At: at(-59)},
				Notes: []Note{{HourWaits, "", 0, "replica 0 is unwell and keeps its clusters for now: one replica an hour is emptied, and another may be from 2026-11-20T17:01:00Z"}}}},
		"another one after the hour": {request(four(), unwell(0), last(3, -60)),
			Evacuation{Moves: map[string]int{"a": 1, "b": 1}, FailedOver: 2, Last: Last{Replica: 0, At: at(0)}}},
		"the same one within the hour goes on": {request(four(), unwell(0, 3), last(0, -59), capacity(100)),
			Evacuation{Moves: map[string]int{"a": 1, "b": 1}, FailedOver: 2, Last: Last{Replica: 0, At: at(-59)},
				Notes: []Note{{HourWaits, "", 3, "replica 3 is unwell and keeps its clusters for now: one replica an hour is emptied, and another may be from 2026-11-20T17:01:00Z"}}}},
		"a clock that went back": {request(four(), unwell(0), last(3, 500_000)),
			Evacuation{Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{{HourWaits, "", 0, "replica 0 is unwell and keeps its clusters for now: one replica an hour is emptied, and another may be from 2026-11-20T18:00:00Z"}}}},
		"of two that do not work neither waits for the other": {request(four(), unwell(0, 3), down(0, 3), capacity(100)),
			Evacuation{Moves: map[string]int{"a": 1, "b": 1, "e": 1, "f": 1, "g": 1}, FailedOver: 5, Last: Last{Replica: 3, At: at(0), Dead: []int{0, 3}}}},
		"one that was dead when another's failover began waits for no hour, and counts with it": {request(four(), unwell(0), down(0), capacity(1), rescue(0), func(r *Request) {
			r.Last = Last{Replica: 3, At: at(-5), Dead: []int{0, 3}, Carried: []plan.Load{0, units(3), units(4)}}
		}), Evacuation{Moves: map[string]int{"b": 2}, FailedOver: 1, Last: Last{Replica: 3, At: at(-5), Dead: []int{0, 3}},
			Notes: []Note{
				{BudgetWaits, "a", 0, `1 cluster of replica 0, which is unwell, waits for the move budget, the first is "a"`},
				{BeyondCapacity, "", 2, "replica 2 goes to load 4, beyond the capacity of 1: no other replica has room for what leaves"}}}},
		"one that works again does not": {request(four(), unwell(0), works(0), func(r *Request) { r.Last = Last{Replica: 3, At: at(-59), Dead: []int{0, 3}} }),
			Evacuation{Last: Last{Replica: 3, At: at(-59), Dead: []int{0, 3}},
				Notes: []Note{{HourWaits, "", 0, "replica 0 is unwell and keeps its clusters for now: one replica an hour is emptied, and another may be from 2026-11-20T17:01:00Z"}}}},
		"what two of them leave waits together": {request(four(), unwell(0, 3), down(0, 3), capacity(1), rescue(0), again("a", "b", "e", "f", "g")),
			Evacuation{Moves: map[string]int{"g": 2}, FailedOver: 1, Last: Last{Replica: 3, At: at(0), Dead: []int{0, 3}},
				Notes: []Note{
					{BudgetWaits, "b", 0, `4 clusters of 2 replicas that are unwell wait for the move budget, the first is "b"`},
					{BeyondCapacity, "", 2, "replica 2 goes to load 3, beyond the capacity of 1: no other replica has room for what leaves"}}}},
		"an empty replica takes nobody's hour": {request(rows(3, map[string]plan.Row{"a": {Replica: 1}}), unwell(0, 1)),
			Evacuation{Moves: map[string]int{"a": 2}, FailedOver: 1, Last: Last{Replica: 1, At: at(0)}}},
		"clusters without a load": {request(rows(3, map[string]plan.Row{"a": {}, "b": {}, "c": {Replica: 1}}), unwell(0), capacity(0)),
			Evacuation{Moves: map[string]int{"a": 2, "b": 1}, FailedOver: 2, Last: Last{Replica: 0, At: at(0)}}},
		"a pinned cluster stays": {request(four(), unwell(3), pins(plan.Pins{"e": 3, "a": 0})),
			Evacuation{Moves: map[string]int{"f": 0, "g": 0}, FailedOver: 2, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{{PinnedStays, "e", 3, `cluster "e" stays on replica 3, which is unwell, for it is pinned there: unpin it, or pin it to another`}}}},
		"a pin that is refused keeps its cluster nowhere": {request(four(), unwell(3), pins(plan.Pins{"e": 99, "f": 16})),
			Evacuation{Moves: map[string]int{"e": 1, "f": 0, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"nor does one that waits for a replica": {request(four(), unwell(3), pins(plan.Pins{"e": 4, "f": 15})),
			Evacuation{Moves: map[string]int{"e": 1, "f": 0, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"nor on a cordoned replica": {request(four(), cordoned(3), pins(plan.Pins{"e": 99, "f": 4})),
			Evacuation{Moves: map[string]int{"e": 1, "f": 0, "g": 0}}},
		"nor the others of its server": {request(withServers, unwell(3), capacity(7), pins(plan.Pins{"g": 99})),
			Evacuation{Moves: map[string]int{"e": 2, "f": 1, "g": 1}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{{BeyondCapacity, "", 1, "replica 1 goes to load 8, beyond the capacity of 7: no other replica has room for what leaves"}}}},
		"nor one that people took away or changed since the plan": {request(wasPinned, unwell(3), pins(plan.Pins{"f": 99})),
			Evacuation{Moves: map[string]int{"e": 1, "f": 0, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"nobody may write its Secret": {request(four(), cordoned(1), func(r *Request) { r.Fixed = map[string]bool{"c": true, "a": true} }),
			Evacuation{Notes: []Note{{FixedStays, "c", 1, `cluster "c" stays on replica 1, which is cordoned, for its Secret is immutable, unmanaged or refuses writes: let ballast write it`}}}},
		"one server goes together": {request(withServers, unwell(3), capacity(7)),
			Evacuation{Moves: map[string]int{"e": 2, "f": 1, "g": 1}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{{BeyondCapacity, "", 1, "replica 1 goes to load 8, beyond the capacity of 7: no other replica has room for what leaves"}}}},
		"one server waits together": {request(withServers, cordoned(3), budget(1)),
			Evacuation{Moves: map[string]int{"e": 1},
				Notes: []Note{{BudgetWaits, "f", 3, `2 clusters of replica 3, which is cordoned, wait for the move budget, the first is "f"`}}}},
		"one server is one move, whatever number of Secrets it has": {request(withServers, cordoned(3), budget(1), func(r *Request) {
			r.Loads = map[string]plan.Load{"f": units(6), "g": 0}
		}), Evacuation{Moves: map[string]int{"f": 1, "g": 1},
			Notes: []Note{{BudgetWaits, "e", 3, `1 cluster of replica 3, which is cordoned, waits for the move budget, the first is "e"`}}}},
		"one server that stands on two healthy ones joins the lower": {request(rows(4, map[string]plan.Row{
			"a": {Replica: 0, Server: "samehost"}, "b": {Replica: 2, Server: "samehost"}, "c": {Replica: 3, Server: "samehost"}}), unwell(3)),
			Evacuation{Moves: map[string]int{"c": 0}, FailedOver: 1, Last: Last{Replica: 3, At: at(0)}}},
		"one server that is pinned to two healthy ones joins the lower": {request(rows(4, map[string]plan.Row{
			"a": {Replica: 1, Server: "samehost", Pinned: true}, "b": {Replica: 2, Server: "samehost", Pinned: true}, "c": {Replica: 3, Server: "samehost"},
			"d": {Replica: 0, Server: "samehost"}}), unwell(3), pins(plan.Pins{"a": 1, "b": 2})),
			Evacuation{Moves: map[string]int{"c": 1}, FailedOver: 1, Last: Last{Replica: 3, At: at(0)}}},
		"one server stays with its pinned one": {request(withServers, unwell(3), pins(plan.Pins{"g": 3})),
			Evacuation{Moves: map[string]int{"e": 1}, FailedOver: 1, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{
					{PinnedStays, "f", 3, `cluster "f" stays on replica 3, which is unwell, for it has the server of "g", which stays: delete or unpin one of them`},
					{PinnedStays, "g", 3, `cluster "g" stays on replica 3, which is unwell, for it is pinned there: unpin it, or pin it to another`},
				}}},
		"one server joins its pinned one": {request(withServers, unwell(3), pins(plan.Pins{"g": 2})),
			Evacuation{Moves: map[string]int{"e": 1, "f": 2}, FailedOver: 2, Last: Last{Replica: 3, At: at(0)}}},
		"one server whose pins disagree stays": {request(withServers, unwell(3), func(r *Request) {
			p := r.View.Plan.Clone()
			p.Clusters["h"] = plan.Row{Replica: 2, Server: "samehost"}
			r.View = plan.NewView(p, nil)
			r.Fixed = map[string]bool{"g": true, "h": true}
		}), Evacuation{Moves: map[string]int{"e": 1}, FailedOver: 1, Last: Last{Replica: 3, At: at(0)},
			Notes: []Note{
				{FixedStays, "f", 3, `cluster "f" stays on replica 3, which is unwell, for it has the server of "g", which stays: delete or unpin one of them`},
				{FixedStays, "g", 3, `cluster "g" stays on replica 3, which is unwell, for its Secret is immutable, unmanaged or refuses writes: let ballast write it`},
			}}},
		"one server joins the one that stands elsewhere": {request(split, unwell(3)),
			Evacuation{Moves: map[string]int{"e": 2, "f": 2, "g": 0}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}}},
		"even beyond the capacity": {request(split, unwell(3), capacity(6)),
			Evacuation{Moves: map[string]int{"e": 2, "f": 1, "g": 1}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)},
				Notes: []Note{
					{BeyondCapacity, "", 1, "replica 1 goes to load 8, beyond the capacity of 6: no other replica has room for what leaves"},
					{BeyondCapacity, "", 2, "replica 2 goes to load 7, beyond the capacity of 6: no other replica has room for what leaves"},
				}}},
		"what was split over two that are emptied meets again": {request(split, unwell(2), cordoned(3)),
			Evacuation{Moves: map[string]int{"d": 0, "e": 0, "f": 1, "g": 1}, FailedOver: 1, Last: Last{Replica: 2, At: at(0)},
				Notes: []Note{{BeyondCapacity, "", 0, "replica 0 goes to load 13, beyond the capacity of 10: no other replica has room for what leaves"}}}},
		"replicas that are about to go receive nothing": {request(shrinking, unwell(0), capacity(100)),
			Evacuation{Moves: map[string]int{"a": 1, "b": 1}, FailedOver: 2, Last: Last{Replica: 0, At: at(0)}}},
		"replicas that do not run are nobody's": {request(beyond, unwell(9, -1, 4), cordoned(7, -5)), Evacuation{}},
		"everybody is unwell or cordoned": {request(four(), unwell(0, 1), cordoned(2, 3)),
			Evacuation{Notes: []Note{{NowhereToGo, "", 0, "all of the 4 replicas are unwell or cordoned, so that clusters have nowhere to go: let a cordon end"}}}},
		"what is shut receives nothing, and keeps what it has": {request(four(), unwell(3), shut(0, 1), pins(plan.Pins{"a": 0})),
			Evacuation{Moves: map[string]int{"e": 2, "f": 2, "g": 2}, FailedOver: 3, Last: Last{Replica: 3, At: at(0)}, Notes: []Note{
				{BeyondCapacity, "", 2, "replica 2 goes to load 11, beyond the capacity of 10: no other replica has room for what leaves"}}}},
		"all others are shut": {request(four(), unwell(3), shut(0, 1, 2)),
			Evacuation{Notes: []Note{{NowhereToGo, "", 0, "clusters have nowhere to go: of the 4 replicas none is well, ready, answers for itself and is not cordoned"}}}},
		"the only other one was killed for its memory": {func() Request { r := request(four(), unwell(3), shut(0, 1)); r.Killed = []int{2}; return r }(),
			Evacuation{Notes: []Note{{NowhereToGo, "", 0, "clusters have nowhere to go: of the 4 replicas none is well, ready, answers for itself, is not " +
				"cordoned and was not killed for its memory: see what happened, then run `ballast resume`"}}}},
		"everybody is shut, and nobody is to be emptied": {request(four(), shut(0, 1, 2, 3)), Evacuation{}},
		"no replica runs": {request(rows(0, nil), unwell(0)), Evacuation{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Evacuate(test.request, at(0))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Last{}, "Carried")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestOnlyWhoNeverWorkedSinceIsEmptiedBesideAnother: who worked at one look, or may have while nobody looked, may have fallen ill of what
// it received.
func TestOnlyWhoNeverWorkedSinceIsEmptiedBesideAnother(t *testing.T) {
	o := health.Options{After: 5 * time.Minute, Interval: time.Minute}
	m := health.Memory{Looked: at(9), Replicas: map[int]health.Replica{1: {Down: at(1)}, 2: {}, 3: {Down: at(2)}, 4: {Down: at(8)}}}
	last := Last{Replica: 3, At: at(6), Dead: []int{1, 2, 3}}
	for name, test := range map[string]struct {
		now  time.Time
		want []int
	}{
		"at each look":     {at(10), []int{1, 3}},
		"after an absence": {at(15), nil},
		"by another clock": {at(-300), []int{1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got := last.Still(m, m, o, test.now)
			if diff := cmp.Diff(test.want, got.Dead, cmpopts.EquateEmpty()); diff != "" || len(last.Dead) != 3 {
				t.Errorf("-want +got:\n%s\nand it was given %v", diff, last.Dead)
			}
		})
	}
	if got := m.Dead(); !cmp.Equal(got, []int{1, 3, 4}) {
		t.Errorf("%v do not work, want 1, 3 and 4", got)
	}
}

func TestLoadsThatAddUpToTooMuchStopAtTheMost(t *testing.T) {
	clusters := map[string]plan.Row{}
	loads := map[string]plan.Load{}
	for i := range 12 {
		name := fmt.Sprint("c", i)
		clusters[name], loads[name] = plan.Row{Replica: i % 3}, math.MaxInt64/8
	}
	got := Evacuate(request(rows(3, clusters), unwell(0), func(r *Request) { r.Loads, r.Capacity = loads, 1 }), at(0))
	if got := (placement.Bin{Load: math.MaxInt64 - 1}).With(2, 1).Load; got != math.MaxInt64 {
		t.Errorf("they add up to %d", got)
	}
	if diff := cmp.Diff(map[string]int{"c0": 1, "c3": 2, "c6": 1, "c9": 2}, got.Moves); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestOneUnwellReplicaAnHourIsEmptied, whole, whatever the budget says: the more loaded one first.
func TestOneUnwellReplicaAnHourIsEmptied(t *testing.T) {
	clusters := map[string]plan.Row{}
	for i := range 20 {
		clusters[fmt.Sprintf("c%02d", i)] = plan.Row{Replica: i % 2, Load: fmt.Sprint(i)}
	}
	p := rows(4, clusters)
	var l Last
	for _, step := range []struct {
		minute float64
		off    int // the replica that ten clusters leave; -1: none
		last   Last
	}{
		{0, 1, Last{Replica: 1, At: at(0)}}, {1, -1, Last{Replica: 1, At: at(0)}}, {59, -1, Last{Replica: 1, At: at(0)}}, {60, 0, Last{Replica: 0, At: at(60)}},
	} {
		e := Evacuate(request(p, unwell(0, 1), budget(3), capacity(60), func(r *Request) { r.Last = l }), at(step.minute))
		for name, to := range e.Moves {
			row := p.Clusters[name]
			if row.Replica != step.off || to < 2 {
				t.Fatalf("minute %v: %s moves from %d to %d, want from %d", step.minute, name, row.Replica, to, step.off)
			}
			row.Replica = to
			p.Clusters[name] = row
		}
		want := 0
		if step.off >= 0 {
			want = 10
		}
		if diff := cmp.Diff(step.last, e.Last, cmpopts.IgnoreFields(Last{}, "Carried")); diff != "" || e.FailedOver != want {
			t.Errorf("minute %v: %d clusters fail over, want %d; the last one (-want +got):\n%s", step.minute, e.FailedOver, want, diff)
		}
		l = e.Last
	}
}

// TestAReplicaThatDiesAfterAllIsEmptied: that it worked when its failover began keeps nobody on it, and gives the others no second
// quarter within the hour.
func TestAReplicaThatDiesAfterAllIsEmptied(t *testing.T) {
	clusters := map[string]plan.Row{}
	for i := range 20 {
		clusters[fmt.Sprintf("c%02d", i)] = plan.Row{Replica: 0, Load: "1"}
	}
	for i := range 36 {
		clusters[fmt.Sprintf("d%02d", i)] = plan.Row{Replica: 1 + i%3, Load: "1"}
	}
	p := rows(4, clusters)
	var l Last
	for _, step := range []struct {
		minute float64
		works  bool
		leave  int // of 12 clusters that each of the others carried, a quarter is 3
		last   Last
	}{
		{0, true, 2, Last{Replica: 0, At: at(0), Worked: true}},   // the budget's
		{1, false, 7, Last{Replica: 0, At: at(0)}},                // the rest of three quarters
		{2, true, 0, Last{Replica: 0, At: at(0)}},                 // no budget is left
		{3, false, 0, Last{Replica: 0, At: at(0)}},                // and no quarter
		{60, true, 2, Last{Replica: 0, At: at(60), Worked: true}}, // another hour
		{61, false, 9 - 2, Last{Replica: 0, At: at(60)}},          // 15 carried, a quarter of it is 3 each
	} {
		left := 0
		if step.minute == 0 || step.minute == 60 {
			left = 2
		}
		e := Evacuate(request(p, unwell(0), func(r *Request) {
			r.Last, r.Recovered, r.BudgetRescue, r.BudgetDrain = l, map[int]bool{0: step.works}, left, left
		}), at(step.minute))
		for name, to := range e.Moves {
			row := p.Clusters[name]
			row.Replica = to
			p.Clusters[name] = row
		}
		if diff := cmp.Diff(step.last, e.Last, cmpopts.IgnoreFields(Last{}, "Carried")); diff != "" || e.FailedOver != step.leave {
			t.Errorf("minute %v: %d clusters fail over, want %d; the last one (-want +got):\n%s", step.minute, e.FailedOver, step.leave, diff)
		}
		l = e.Last
	}
}

var sinkMoves int

// BenchmarkEvacuate is 10,000 clusters on 16 replicas, of which one is unwell and one is cordoned.
func BenchmarkEvacuate(b *testing.B) {
	clusters, loads := make(map[string]plan.Row, 10_000), make(map[string]plan.Load, 10_000)
	for i := range 10_000 {
		name := fmt.Sprintf("cluster-%05d", i)
		clusters[name] = plan.Row{Replica: i % 16, Server: plan.ServerHash(fmt.Sprint("https://", i))}
		loads[name] = plan.Load(1+i*7919%1000) * plan.LoadUnit / 1000
	}
	r := request(rows(16, clusters), unwell(3), cordoned(5), budget(1000), capacity(400), func(r *Request) { r.Loads = loads })
	for b.Loop() {
		sinkMoves += len(Evacuate(r, start).Moves)
	}
}

// starving is so many clusters on a replica that is to be empty, for which no other has the memory.
func starving(clusters int) Request {
	all, bytes := make(map[string]plan.Row, clusters+16), make(map[string]plan.Bytes, clusters+16)
	for i := range 16 {
		name := fmt.Sprintf("stands-%02d", i)
		all[name], bytes[name] = plan.Row{Replica: i, Server: plan.ServerHash("https://" + name)}, 95
	}
	for i := range clusters {
		name := fmt.Sprintf("cluster-%05d", i)
		all[name], bytes[name] = plan.Row{Replica: 5, Server: plan.ServerHash("https://" + name)}, plan.Bytes(1+i%10)
	}
	return request(rows(16, all), cordoned(5), budget(1000), capacity(400), memory(100, bytes))
}

// processorTime is what this process has used: a busy machine takes none of it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Who makes thousands of clusters that starve keeps no cycle waiting: each of them stays, moves where it fits, or waits.
func TestThousandsThatStarveTakeNoMinute(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Request)
		kind   NoteKind
		told   int // of it, at least
		stays  bool
	}{
		"for memory":                  {func(*Request) {}, MemoryStays, 4900, true},
		"of a group":                  {apart, GroupStays, 5000, true},
		"where nobody has them":       {dying(5000), MemoryCrowded, 4900, false},
		"and most of them may not go": {dying(10), MemoryCrowded, 10, false},
		"and half of them may":        {dying(2500), MemoryCrowded, 2500, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := starving(5000)
			tc.change(&r)
			began := processorTime(t)
			e := Evacuate(r, start)
			if took := processorTime(t) - began; took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			told := 0
			for _, n := range e.Notes {
				if n.Kind == tc.kind {
					told++
				}
			}
			if told < tc.told || tc.stays && told+len(e.Moves) != 5001 {
				t.Errorf("%d are told of, %d move", told, len(e.Moves))
			}
			if !tc.stays {
				return
			}
			in, groups := map[int]plan.Bytes{}, map[int]int{}
			for name, to := range e.Moves {
				in[to], groups[to] = in[to]+r.Bytes[name], groups[to]+1
			}
			for replica := range 16 {
				if most := plan.Bytes(5); tc.kind == MemoryStays && in[replica] > most {
					t.Errorf("replica %d takes %d more, and has %d", replica, in[replica], most)
				}
				if tc.kind == GroupStays && groups[replica] > 1 {
					t.Errorf("replica %d takes %d of one group", replica, groups[replica])
				}
			}
		})
	}
}

// dying has nobody work for replica 5, and so many leave it at once.
func dying(rescue int) func(*Request) {
	return func(r *Request) { r.Cordoned, r.Unwell, r.BudgetRescue = nil, []int{5}, rescue }
}

// apart has all of a request's clusters kept apart, and memory without a bound.
func apart(r *Request) {
	r.Memory, r.Apart = 0, map[string][]string{}
	for name := range r.View.Plan.Clusters {
		if name != "stands-05" {
			r.Apart[name] = []string{"prod"}
		}
	}
}

// BenchmarkStarving is 5,000 clusters of which next to none has room elsewhere.
func BenchmarkStarving(b *testing.B) {
	r := starving(5000)
	for b.Loop() {
		sinkMoves += len(Evacuate(r, start).Moves)
	}
}

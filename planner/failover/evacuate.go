// Package failover says where the clusters of unwell and cordoned replicas go.
package failover

import (
	"maps"
	"math"
	"slices"
	"time"

	"ballast/planner/failover/health"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// Last is the failover that began last. Its replica goes on to be emptied, wave by wave, while others wait. Carried is
// what each replica carried when it began; Worked says that it worked at the last look, so that one that does not waits
// for no hour. Dead are those that did not work when it began, nor since: they are emptied beside it, within the same
// quarter of what the others carried.
type Last struct {
	Replica int         `json:"replica"`
	At      time.Time   `json:"at,omitzero"`
	Carried []plan.Load `json:"carried,omitempty"`
	Worked  bool        `json:"worked,omitempty"`
	Dead    []int       `json:"dead,omitempty"`
}

// Still is without the replicas that worked since, or may have where nobody looked: before is the memory at the last
// look.
func (l Last) Still(before, m health.Memory, o health.Options, now time.Time) Last {
	blind := o.Blind(before, now)
	l.Dead = slices.DeleteFunc(slices.Clone(l.Dead), func(replica int) bool { return blind || m.Replicas[replica].Down.IsZero() })
	return l
}

// Request is everything that decides where clusters go. Of the plan count the rows and the replicas that run at both
// ends of a rollout that is under way.
type Request struct {
	View        *plan.View
	Loads       map[string]plan.Load  // present loads, by cluster; the row's for others
	Beside      []plan.Load           // what replicas carry beside the plan's rows, such as an implicit in-cluster
	Capacity    plan.Load             // the load a replica may carry; 0: not known
	MaxClusters int                   // of one replica; 0: no cap. Like the capacity it is kept while that is possible
	Memory      plan.Bytes            // that a replica may have in use; 0: not known
	Bytes       map[string]plan.Bytes // present memory, by cluster
	BytesBeside []plan.Bytes          // what replicas have in use beside the plan's rows
	Servers     *placement.Servers    // what stays together; nil: by the hashes of the rows
	Apart       map[string][]string   // the groups of which no two share a replica, by cluster
	Beyond      [][]string            // of those, what replicas have beside the plan's rows
	Fixed       map[string]bool       // clusters whose Secret nobody may write
	Held        map[string]bool       // clusters that stay, since a trip says so; people know of it
	Gone        map[string]bool       // clusters without a Secret: their rows follow the others of their server, and keep none
	Unwell      []int
	Works       map[int]bool // unwell replicas that work again: somebody has what is on them
	Dead        []int        // replicas that do not work now, unwell or not yet
	Cordoned    []int
	Shut        []int           // others that receive nothing now, and keep what they have
	Killed      []int           // so do these until a person has looked: killed for their memory behind a wave
	Budget      int             // servers that may leave cordoned replicas now
	Rescue      int             // servers that may leave an unwell one now, beyond what the others take on freely
	Whole       int             // of those, what waits for the whole budget: their replica's death may be theirs, or without memory elsewhere
	Again       map[string]bool // clusters whose replicas may die of them: one did soon after a failover, or two moved them within a day
	Last        Last
}

// Evacuation is the moves, by cluster, of which FailedOver leave an unwell replica; what people should know; and the
// failover that counts as the last one once the moves are made. Where FailedOver is 0 Last is to be kept at once: it is
// the one that was given, or follows a clock that went back.
type Evacuation struct {
	Moves      map[string]int
	FailedOver int
	Notes      []Note
	Last       Last
}

// Evacuate says where clusters of unwell and cordoned replicas go.
//
// One unwell replica an hour is emptied, first one that does not work, then the most loaded, and with one that does not
// all others that did not work when that began, nor since; cordoned ones at once, all of them. One that is cordoned and
// does not work is unwell first: nobody has its clusters, and a person who wants it empty must not keep them waiting by
// that. What the failover leaves of it waits as a drain does. Clusters go to replicas that are neither, nor shut: first
// those that fit within the capacity, the heaviest first, each to the fullest replica that takes it; then the others,
// placed the heaviest first on the lightest replica, which keeps the largest load small. Secrets with one server, and
// groups that stay together, go together, and join the ones that stand on a healthy replica; what is pinned to the
// replica that it has stays. What is kept apart goes where none of its group is. Where every other replica has one,
// what a replica has that works stays, and what nobody has goes there all the same: a cluster without an owner comes
// before a group.
//
// What is on a replica that does not work waits for no budget, for nobody reconciles it, as long as it fits the
// capacity or a quarter more than the others carried when that began, and the memory, unless its replicas may die of
// it: it would take half of the fleet along each hour. What the others do not take on freely waits for the rates' share
// of each hour; what replicas may die of, and what no other replica has the memory for, waits for the whole budget. At
// least one an hour goes. A replica that works again, though it is unwell, has its clusters: they wait for the budget.
// Where that is too small, those that fit the capacity come first, the heaviest first; then, of those beyond it, the
// lightest first, for they do the least harm, and what carries nothing comes last. The rest waits. Nothing ever brings
// a cluster back but balance.
func Evacuate(r Request, now time.Time) Evacuation {
	if now.Before(r.Last.At) {
		r.Last.At = now // the clock went back: no time passed
	}
	e := newEvacuation(r)
	e.out.Last = r.Last
	e.keep()
	if !slices.ContainsFunc(e.bins, func(b placement.Bin) bool { return b.Open }) {
		e.nowhere()
		return e.out
	}
	s := schedule{e, now}
	if replica, ok := s.next(); ok {
		s.failOver(replica)
	}
	_, later := emptying{e, e.cordoned, room{r.Budget, r.Budget}, func() func(unit) bool { return func(unit) bool { return true } }}.empty()
	e.waits(e.cordoned, later)
	e.overloads()
	return e.out
}

// carried is what each replica carries.
func (e *evacuation) carried() []plan.Load {
	carried := make([]plan.Load, len(e.bins))
	for i, b := range e.bins {
		carried[i] = min(b.Load, math.MaxInt64/4)
	}
	return carried
}

// asksWhole reports whether a unit waits for the whole budget: replicas may die of it, one after the other.
func (e *evacuation) asksWhole(u unit) bool {
	return u.Starves || slices.ContainsFunc(u.Names, func(name string) bool { return e.Again[name] })
}

// evacuation is the state of one: what replicas carry, and which clusters belong together.
type evacuation struct {
	Request
	running  int
	unwell   []int           // that run; of the cordoned ones those that do not work
	cordoned []int           // that run
	emptied  []bool          // unwell or cordoned
	bins     []placement.Bin // what replicas carry; open are those that are neither, and not shut
	movable  []placement.Bin // of that, what may leave
	names    []string
	groups   []*group
	groupOf  map[string]*group // by cluster
	received []bool            // replicas that clusters move to
	out      Evacuation
}

func newEvacuation(r Request) *evacuation {
	n := r.View.Plan.Running()
	if r.Servers == nil {
		r.Servers = placement.NewServers(0)
	}
	e := &evacuation{Request: r, running: n, names: slices.Sorted(maps.Keys(r.View.Plan.Clusters)),
		emptied: make([]bool, n), received: make([]bool, n),
		bins: make([]placement.Bin, n), movable: make([]placement.Bin, n)}
	e.cordoned = slices.DeleteFunc(union(r.Cordoned), e.absent)
	e.unwell = slices.DeleteFunc(union(r.Unwell), func(replica int) bool {
		return e.absent(replica) || slices.Contains(e.cordoned, replica) && r.Works[replica]
	})
	for replica := range e.bins {
		e.emptied[replica] = slices.Contains(e.cordoned, replica) || slices.Contains(e.unwell, replica)
		e.bins[replica].Open = !e.emptied[replica] && !slices.Contains(r.Shut, replica) && !slices.Contains(r.Killed, replica)
		if replica < len(r.Beside) {
			e.bins[replica].Load = max(r.Beside[replica], 0)
		}
		if replica < len(r.BytesBeside) {
			e.bins[replica].Memory = max(r.BytesBeside[replica], 0)
		}
		if replica < len(r.Beyond) {
			e.bins[replica].Apart = r.Beyond[replica]
		}
	}
	e.gather()
	return e
}

func (e *evacuation) absent(replica int) bool { return replica < 0 || replica >= e.running }

// load is a cluster's present load, else the one of its row's decision.
func (e *evacuation) load(name string) plan.Load {
	if load, ok := e.Loads[name]; ok {
		return max(load, 0)
	}
	return plan.LoadOf(e.View.Plan.Clusters[name].Load)
}

// union are the replicas of all lists, in order.
func union(lists ...[]int) []int {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(lists...))))
}

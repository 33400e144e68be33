package size

import (
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/size/rational"
)

// Reading is an input as it was last seen. Missing: not known now; what rules decided of it stays.
type Reading struct {
	Total   float64
	Cluster float64         // of the heaviest
	Replica map[int]float64 // by ordinal
	Missing bool
}

// at is the reading of a rule's scope. What is no number is not known: whoever answers the planner may say of several
// clusters what no sum can hold.
func (r Reading) at(scope Scope, replica int) (float64, bool) {
	value, known := r.of(scope, replica)
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, false
	}
	return value, known
}

// of is one replica's, or where one size is for all that of the largest.
func (r Reading) of(scope Scope, replica int) (float64, bool) {
	if r.Missing {
		return 0, false
	}
	switch scope {
	case Cluster:
		return r.Cluster, true
	case Replica:
		if replica != All {
			value, known := r.Replica[replica]
			return value, known
		}
		most := math.Inf(-1)
		for _, value := range r.Replica {
			most = math.Max(most, value)
		}
		return most, len(r.Replica) > 0
	}
	return r.Total, true
}

// All is the ordinal under which the memory keeps what is one for all replicas.
const All = -1

// States are what the rules remember, by Rule.Key and ordinal.
type States map[string]map[int]State

// Question is what sizes follow from. The rules are of one container.
type Question struct {
	Rules    []Rule
	Inputs   map[string]Reading
	Replicas []int // the ordinals that get a size
	Uniform  bool  // one size for all: rules of scope Replica look at the largest
	InForce  map[int]Resources
	Found    Resources                    // what the workload had before any policy: limits follow from it
	Headroom map[string]Headroom          // by resource
	Peak     map[int]float64              // bytes of memory that a replica was seen to use
	NodeCap  map[string]resource.Quantity // the most that a node can give one replica; absent: not known
	Held     bool                         // sizes are held at what comes out: 0 is what the workload had, and without that the least
	Now      time.Time
}

// Row is what one rule made of one replica's input; Replica is All where it is one for all.
type Row struct {
	Rule    Rule
	Replica int
	Input   float64
	Known   bool
	Last    time.Time // when its input was known last, where it is not known now; zero: it is, or never was
	Decision
}

// Result is the sizes by ordinal. A request or a limit of which a rule has not seen its input yet is in none of them.
// Capped names the resources that were to be larger than a node, memory also where its limit is less above the peak
// than it should be for that.
type Result struct {
	Sizes  map[int]Resources
	Capped map[int][]string
	Rows   []Row
}

// Evaluate makes the sizes, and what the rules remember next.
func Evaluate(q Question, m States) (Result, States) {
	result := Result{Sizes: map[int]Resources{}, Capped: map[int][]string{}}
	next := States{}
	sums := map[int]map[Field]sum{}
	for _, r := range q.Rules {
		states := map[int]State{}
		for _, replica := range q.ordinals(r) {
			row, state := q.ask(r, replica, m[r.Key()][replica])
			states[replica] = state
			result.Rows = append(result.Rows, row)
			if sums[replica] == nil {
				sums[replica] = map[Field]sum{}
			}
			sums[replica][r.Field()] = sums[replica][r.Field()].plus(row.Decision, row.Known)
		}
		next[r.Key()] = states
	}
	for _, replica := range q.Replicas {
		size, capped := q.size(replica, sums[All], sums[replica])
		result.Sizes[replica] = size
		if len(capped) > 0 {
			result.Capped[replica] = capped
		}
	}
	return result, next
}

func (q Question) ordinals(r Rule) []int {
	if r.Scope == Replica && !q.Uniform {
		return q.Replicas
	}
	return []int{All}
}

// ask lets one rule decide for one replica.
func (q Question) ask(r Rule, replica int, s State) (Row, State) {
	value, known := q.Inputs[r.Input].at(r.Scope, replica)
	if _, there := q.Inputs[r.Input]; !there {
		known = false
	}
	row := Row{Rule: r, Replica: replica, Input: value, Known: known || r.Input == ""}
	current := s.Value
	if current == nil {
		current = q.startOf(r, replica, value, known)
	}
	if known {
		s = s.Observe(r, q.Now, value)
	} else if r.Input != "" && s.Value != nil {
		row.Decision = Decision{Computed: *s.Value, Value: *s.Value, Held: HeldNoInput}
		if row.Known = s.Since != 0; row.Known {
			row.Last = time.Unix(s.until(q.Now).At, 0).UTC()
		}
		return row, s
	}
	row.Decision, s = s.Decide(r, q.Now, current)
	if row.Held == HeldNoInput {
		s.Value = nil // nothing was decided
	}
	return row, s
}

// startOf is what a rule without a memory takes as its value in force: the replica's, of which rules that add up have
// the parts that they compute now.
func (q Question) startOf(r Rule, replica int, input float64, known bool) *resource.Quantity {
	stands, there := q.standing(replica, r.Field())
	if !there || !known {
		return nil
	}
	own, all := r.Value(input, true), *resource.NewQuantity(0, r.Base.Format)
	for _, other := range q.Rules {
		if other.Field() != r.Field() {
			continue
		}
		value, known := q.Inputs[other.Input].at(other.Scope, replica)
		all = rational.Add(all, other.Value(value, known))
	}
	part := rational.Share(stands, own, all)
	return &part
}

// standing is what of a field is in force; for all replicas the largest.
func (q Question) standing(replica int, f Field) (resource.Quantity, bool) {
	var most resource.Quantity
	var found bool
	for ordinal, size := range q.InForce {
		list := size.Requests
		if f.List == Limits {
			list = size.Limits
		}
		value, there := list[f.Resource]
		if !there || replica != All && ordinal != replica {
			continue
		}
		if !found || value.Cmp(most) > 0 {
			most, found = value, true
		}
	}
	return most, found
}

// sum is what the rules of one field add up to; unknown where one has seen no input.
type sum struct {
	value   resource.Quantity
	unknown bool
	any     bool
}

func (s sum) plus(d Decision, known bool) sum {
	if !s.any {
		return sum{d.Value, !known, true}
	}
	return sum{rational.Add(s.value, d.Value), s.unknown || !known, true}
}

func (s sum) and(o sum) sum {
	switch {
	case !s.any:
		return o
	case !o.any:
		return s
	}
	return sum{rational.Add(s.value, o.value), s.unknown || o.unknown, true}
}

// size puts one replica's together.
func (q Question) size(replica int, all, own map[Field]sum) (Resources, []string) {
	out := Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	fields := map[Field]bool{}
	for f := range all {
		fields[f] = true
	}
	for f := range own {
		fields[f] = true
	}
	for f := range fields {
		s := all[f].and(own[f])
		switch value := Whole(f.Resource, s.value); {
		case s.unknown:
		case f.List == Limits:
			out.Limits[f.Resource] = value
		default:
			out.Requests[f.Resource] = value
		}
	}
	if q.Held {
		q.notNothing(out, fields)
	}
	capped := q.capped(out)
	capped = append(capped, q.limit(replica, out, fields)...)
	again := q.capped(out) // a request that equals its limit grew with it
	return out.Cap(), slices.Compact(slices.Sorted(slices.Values(append(capped, again...))))
}

// notNothing has what the workload had in place of a size of 0, which nothing can be held at. A request without that is
// the least there is, and a limit without that is nobody's.
func (q Question) notNothing(size Resources, ruled map[Field]bool) {
	for name, request := range size.Requests {
		if request.Sign() > 0 {
			continue
		}
		if had := q.Found.Requests[name]; had.Sign() > 0 {
			size.Requests[name] = had
		} else {
			size.Requests[name] = smallest(name)
		}
	}
	for name, limit := range size.Limits {
		if limit.Sign() > 0 {
			continue
		}
		delete(size.Limits, name)
		for f := range ruled {
			if f.List == Limits && f.Resource == name { // it follows the request, as where no rule makes one
				delete(ruled, f)
			}
		}
	}
}

// smallest is the least of a resource that a container can be held at.
func smallest(name string) resource.Quantity {
	if name == CPU {
		return *resource.NewMilliQuantity(1, resource.DecimalSI)
	}
	return *resource.NewQuantity(1<<20, resource.BinarySI)
}

// capped cuts requests to what a node can give, and names them.
func (q Question) capped(size Resources) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(size.Requests)) {
		most, known := q.NodeCap[name]
		if request := size.Requests[name]; known && request.Cmp(most) > 0 {
			size.Requests[name] = Whole(name, most)
			names = append(names, name)
		}
	}
	return names
}

// limit adds the limits that no rule makes, and keeps that of memory above the peak. It names memory where a node has
// less than that.
func (q Question) limit(replica int, size Resources, fields map[Field]bool) (short []string) {
	ruled := map[string]bool{}
	for f := range fields {
		ruled[f.Resource] = ruled[f.Resource] || f.List == Limits
	}
	for name, request := range size.Requests {
		if ruled[name] {
			continue
		}
		was, had := q.Found.Limits[name], q.Found.Requests[name]
		if limit := Limit(&was, &had, request, q.Headroom[name]); limit != nil {
			size.Limits[name] = Whole(name, *limit)
		}
	}
	if limit, limited := size.Limits[Memory]; limited {
		raised := NotBelow(limit, q.Peak[replica], q.most(Memory))
		if request, is := size.Requests[Memory]; is && request.Cmp(limit) == 0 { // equal stays equal: another class is no size in place
			size.Requests[Memory] = raised
		}
		size.Limits[Memory] = raised
		if Short(raised, q.Peak[replica]) {
			short = append(short, Memory)
		}
	}
	return short
}

// most is what a node can give of a resource; nil: not known.
func (q Question) most(name string) *resource.Quantity {
	most, known := q.NodeCap[name]
	if !known {
		return nil
	}
	return &most
}

package resize

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/cycle/memory"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Back is what a person went back to: the earlier plan in the cycle in which that is done, and how long its sizes hold then.
type Back struct {
	To  *plan.Plan
	For time.Duration
}

// back are the sizes that a person went back to; nil: the policies decide. They decide of a replica again that grows at once, or that has
// more clusters than then: what comes to it now was not there.
func (q Question) back(v view) *memory.SizesBack {
	was := q.Memory.Back
	switch {
	case q.Back.To != nil:
		was = &memory.SizesBack{At: q.Now, Of: sizesOf(*q.Back.To, q.ordinals(), q.uniform()), Clusters: q.Clusters}
	case was == nil || q.Now.Sub(was.At) >= q.Back.For || handover{q}.switches():
		return nil
	}
	of := maps.Clone(was.Of)
	maps.DeleteFunc(of, func(replica int, _ plan.Resources) bool {
		return v.urgent[replica] != "" || was.Clusters != nil && q.clusters(q.Clusters, replica) > q.clusters(was.Clusters, replica)
	})
	return &memory.SizesBack{At: was.At, Of: of, Clusters: was.Clusters}
}

// clusters is how many an ordinal has; where one size is for all, the most that a replica has.
func (q Question) clusters(of map[int]int, ordinal int) int {
	if !q.uniform() {
		return of[ordinal]
	}
	most := 0
	for _, n := range of {
		most = max(most, n)
	}
	return most
}

// switches reports whether size.apply is another than the plan was made by: then its sizes are of other replicas.
func (q handover) switches() bool {
	return q.handsOver() || !q.template() && q.Plan.Resources != nil
}

// sizesOf are what a plan holds these ordinals at, in either way; what it does not size is left out.
func sizesOf(p plan.Plan, ordinals []int, uniform bool) map[int]plan.Resources {
	of := map[int]plan.Resources{}
	for _, r := range ordinals {
		own, held := p.SizeOf(r)
		apart := uniform && held && p.Sizes.Replicas != nil // one size for all is none of theirs
		switch {
		case held && !apart:
			of[r] = own
		case p.Resources != nil:
			of[r] = *p.Resources
		}
	}
	return of
}

// goBack puts the sizes that a person went back to in place of what the policies want.
func (w *wishes) goBack(q Question, v view) {
	w.back = q.back(v)
	if w.back == nil {
		return
	}
	w.asked = map[int]bool{}
	used, most := v.used(q), q.NodeCap
	for _, r := range q.ordinals() {
		then, had := w.back.Of[r]
		if !had {
			continue
		}
		w.Sizes[r], w.asked[r] = backTo(quantitiesOf(&then), w.Sizes[r], int64(used[r]), most), true
	}
}

// backTo is what a size was, as far as the rules name its resources still: not above the cap, nor with a memory limit below what
// is in use, nor a request above its limit.
func backTo(then, wanted size.Resources, used int64, most map[string]resource.Quantity) size.Resources {
	out := over(wanted, size.Resources{})
	var node *resource.Quantity
	if cap, bounded := most[size.Memory]; bounded {
		node = &cap
	}
	for name := range wanted.Requests {
		if q, had := then.Requests[name]; had {
			out.Requests[name] = q
		}
		if cap, bounded := most[name]; bounded && cap.Cmp(out.Requests[name]) < 0 {
			out.Requests[name] = cap
		}
	}
	for name := range wanted.Limits {
		limit, had := then.Limits[name]
		if !had {
			limit = wanted.Limits[name]
		}
		if name == size.Memory {
			limit = size.NotBelow(limit, float64(used), node)
		}
		if request := out.Requests[name]; limit.Cmp(request) < 0 {
			limit = request
		}
		out.Limits[name] = limit
	}
	return out
}

// SizeBack is a replica's size by the plan in force, and by the one that a person goes back to; Replica is size.All where they
// have one.
type SizeBack struct {
	Replica int            `json:"replica"`
	Now     plan.Resources `json:"now"`
	Then    plan.Resources `json:"then"`
}

// Differences are the sizes that differ: only of replicas that both plans size.
func Differences(now, then plan.Plan, replicas int) (back []SizeBack) {
	uniform := now.Resources != nil || now.Target.Kind == plan.Deployment
	ordinals := []int{0}
	for r := 1; r < replicas && !uniform; r++ {
		ordinals = append(ordinals, r)
	}
	is, was := sizesOf(now, ordinals, uniform), sizesOf(then, ordinals, uniform)
	for _, r := range ordinals {
		a, held := is[r]
		b, had := was[r]
		if !held || !had || a.Same(b) {
			continue
		}
		if uniform {
			r = size.All
		}
		back = append(back, SizeBack{Replica: r, Now: a, Then: b})
	}
	return back
}

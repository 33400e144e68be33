package wish

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// sizesBack are the sizes that a person went back to; nil: the policies decide. They decide of a replica again that
// grows at once, or that has more clusters than then: what comes to it now was not there.
func sizesBack(q question.Question, v View) *memory.SizesBack {
	was := q.Memory.Back
	switch {
	case q.Back.To != nil:
		was = &memory.SizesBack{At: q.Now, Of: quantity.Planned(*q.Back.To, q.Ordinals(), q.Uniform()),
			Clusters: q.Clusters}
	case was == nil || q.Now.Sub(was.At) >= q.Back.For || question.Handover{Question: q}.Switches():
		return nil
	}
	of := maps.Clone(was.Of)
	maps.DeleteFunc(of, func(replica int, _ plan.Resources) bool {
		return v.Urgent[replica] != "" || was.Clusters != nil &&
			clustersOf(q, q.Clusters, replica) > clustersOf(q, was.Clusters, replica)
	})
	return &memory.SizesBack{At: was.At, Of: of, Clusters: was.Clusters}
}

// clustersOf is how many an ordinal has; where one size is for all, the most that a replica has.
func clustersOf(q question.Question, of map[int]int, ordinal int) int {
	if !q.Uniform() {
		return of[ordinal]
	}
	most := 0
	for _, n := range of {
		most = max(most, n)
	}
	return most
}

// GoBack puts the sizes that a person went back to in place of what the policies want.
func (w *Wishes) GoBack(q question.Question, v View) {
	w.Back = sizesBack(q, v)
	if w.Back == nil {
		return
	}
	w.Asked = map[int]bool{}
	used, most := v.used(q), q.NodeCap
	for _, r := range q.Ordinals() {
		then, had := w.Back.Of[r]
		if !had {
			continue
		}
		w.Sizes[r], w.Asked[r] = backTo(quantity.Of(&then), w.Sizes[r], int64(used[r]), most), true
	}
}

// backTo is what a size was, as far as the rules name its resources still: not above the cap, nor with a memory limit
// below what is in use, nor a request above its limit.
func backTo(then, wanted size.Resources, used int64, most map[string]resource.Quantity) size.Resources {
	out := quantity.Over(wanted, size.Resources{})
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

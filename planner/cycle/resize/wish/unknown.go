package wish

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/size"
)

// Unknown reports whether a rule that makes a replica's request, or its limit, has not seen its input yet. A limit that no rule
// makes follows from the request.
func Unknown(rows []size.Row, replica int, name string) (request, limit bool) {
	ruled := false
	for _, row := range rows {
		if row.Rule.Resource != name || row.Replica != replica && row.Replica != size.All {
			continue
		}
		if row.Rule.List == size.Limits {
			ruled, limit = true, limit || !row.Known
		} else {
			request = request || !row.Known
		}
	}
	return request, limit || !ruled && request
}

// answerKills has a replica that was OOM-killed grow beyond the memory limit that it is held at, where a rule has not seen its
// input yet and so nothing is wanted. What is equal stays equal.
func (w Wishes) answerKills(q question.Question, v View) {
	if !q.NamedResources()[size.Memory] {
		return
	}
	used := v.used(q)
	for _, replica := range q.Ordinals() {
		held := quantity.Of(q.Held(q.Plan, replica))
		was, limited := held.Limits[size.Memory]
		_, wanted := w.Sizes[replica].Limits[size.Memory]
		if v.killedOf(q, replica) && limited && !wanted {
			w.Sizes[replica] = quantity.Over(w.Sizes[replica], Grown(held, size.NotBelow(was, used[replica], mostOf(q, size.Memory))))
		}
	}
}

// KeepUnseen lowers no memory limit of a replica that nobody saw use any memory: its peak is not known. What is equal stays equal.
func (w Wishes) KeepUnseen(q question.Question, v View) {
	used := v.used(q)
	for _, replica := range q.Ordinals() {
		was, limit := v.Current[replica].Limits[size.Memory], w.Sizes[replica].Limits[size.Memory]
		if used[replica] > 0 || limit.IsZero() || limit.Cmp(was) >= 0 {
			continue
		}
		w.Sizes[replica] = quantity.Over(w.Sizes[replica], Grown(w.Sizes[replica], was))
	}
}

// mostOf is what a node can give of a resource; nil: not known.
func mostOf(q question.Question, name string) *resource.Quantity {
	most, known := q.NodeCap[name]
	if !known {
		return nil
	}
	return &most
}

// Grown is the memory of a size with that limit.
func Grown(held size.Resources, limit resource.Quantity) size.Resources {
	out := size.Resources{Limits: map[string]resource.Quantity{size.Memory: limit}}
	was := held.Limits[size.Memory]
	if request, is := held.Requests[size.Memory]; is && request.Cmp(was) == 0 {
		out.Requests = map[string]resource.Quantity{size.Memory: limit}
	}
	return out
}

// killedOf reports whether a replica of that ordinal was killed and nobody grew for it yet.
func (v View) killedOf(q question.Question, ordinal int) bool {
	for replica := range v.Kills {
		if q.Of(replica) == ordinal {
			return true
		}
	}
	return false
}

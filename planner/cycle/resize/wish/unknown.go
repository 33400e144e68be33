package wish

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/config"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/size"
)

// Unknown reports whether a rule that makes a replica's request, or its limit, has not seen its input yet. A limit that
// no rule makes follows from the request.
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

// answerKills has a replica that was OOM-killed grow beyond the memory limit that it is held at, where a rule has not
// seen its input yet and so nothing is wanted. What is equal stays equal.
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
			w.Sizes[replica] = quantity.Over(w.Sizes[replica],
				Grown(held, size.NotBelow(was, used[replica], mostOf(q, size.Memory))))
		}
	}
}

// KeepUnseen lowers no memory limit of a replica that nobody saw use any memory: its peak is not known. What is equal
// stays equal.
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

// mostOfFound is how many times the template's memory limit memory that follows pods may come to, where no cap is
// written or known.
const mostOfFound = 4

// MostByPods is the node cap; where memory has none and follows what pods say that they use, the template's limit
// bounds it: each larger limit lets a pod say more, and its size would grow by a quarter with every cycle.
func MostByPods(q question.Question) map[string]resource.Quantity {
	endless := slices.ContainsFunc(q.Size.Merged(), func(r size.Rule) bool {
		return r.Resource == size.Memory && r.Input == config.InputMemoryInUse && r.Max == nil
	})
	limit, limited := quantity.Of(q.PodTemplate().Found()).Limits[size.Memory]
	if _, bounded := q.NodeCap[size.Memory]; bounded || !endless || !limited {
		return q.NodeCap
	}
	most := map[string]resource.Quantity{}
	maps.Copy(most, q.NodeCap)
	most[size.Memory] = *resource.NewQuantity(min(limit.Value(), quantity.MostMemory/mostOfFound)*mostOfFound,
		resource.BinarySI)
	return most
}

// NotBelowFound keeps memory limits as large as people's template has them, where memory follows what pods have had:
// such a rule shrinks an idle replica, and knows nothing of the clusters that a wave brings to it later.
func (w Wishes) NotBelowFound(q question.Question, v View) Wishes {
	if !slices.ContainsFunc(q.Size.Merged(), func(r size.Rule) bool { return r.Resource == size.Memory && q.Seen[r.Input] }) {
		return w
	}
	found := quantity.Of(v.Found)
	for replica, wanted := range w.Sizes {
		w.Sizes[replica] = limitedAs(wanted, found)
	}
	return w
}

// limitedAs is a size with the memory limit of least where its own is lower. A request that equals its limit stays
// equal: another class is no size in place.
func limitedAs(wanted, least size.Resources) size.Resources {
	limit, limited := wanted.Limits[size.Memory]
	most, had := least.Limits[size.Memory]
	if !limited || !had || limit.Cmp(most) >= 0 {
		return wanted
	}
	out := quantity.Over(wanted, size.Resources{})
	if request, is := wanted.Requests[size.Memory]; is && request.Cmp(limit) == 0 {
		out.Requests[size.Memory] = most
	}
	out.Limits[size.Memory] = most
	return out
}

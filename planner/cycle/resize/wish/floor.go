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

// mostOfFound is how many times the template's memory limit memory that follows pods may come to, where no cap is written or known.
const mostOfFound = 4

// MostByPods is the node cap; where memory has none and follows what pods say that they use, the template's limit bounds it: each
// larger limit lets a pod say more, and its size would grow by a quarter with every cycle.
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
	most[size.Memory] = *resource.NewQuantity(min(limit.Value(), quantity.MostMemory/mostOfFound)*mostOfFound, resource.BinarySI)
	return most
}

// NotBelowFound keeps memory limits as large as people's template has them, where memory follows what pods have had: such a rule
// shrinks an idle replica, and knows nothing of the clusters that a wave brings to it later.
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

// limitedAs is a size with the memory limit of least where its own is lower. A request that equals its limit stays equal: another
// class is no size in place.
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

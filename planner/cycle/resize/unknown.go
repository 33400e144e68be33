package resize

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/size"
)

// namedResources are the resources that rules name.
func (q Question) namedResources() map[string]bool {
	names := map[string]bool{}
	for _, rule := range q.Size.Merged() {
		names[rule.Resource] = true
	}
	return names
}

// unknown reports whether a rule that makes a replica's request, or its limit, has not seen its input yet. A limit that no rule
// makes follows from the request.
func unknown(rows []size.Row, replica int, name string) (request, limit bool) {
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
func (w wishes) answerKills(q Question, v view) {
	if !q.namedResources()[size.Memory] {
		return
	}
	used := v.used(q)
	for _, replica := range q.ordinals() {
		held := quantitiesOf(q.held(q.Plan, replica))
		was, limited := held.Limits[size.Memory]
		_, wanted := w.Sizes[replica].Limits[size.Memory]
		if v.killedOf(q, replica) && limited && !wanted {
			w.Sizes[replica] = over(w.Sizes[replica], grown(held, size.NotBelow(was, used[replica], q.most(size.Memory))))
		}
	}
}

// keepUnseen lowers no memory limit of a replica that nobody saw use any memory: its peak is not known. What is equal stays equal.
func (w wishes) keepUnseen(q Question, v view) {
	used := v.used(q)
	for _, replica := range q.ordinals() {
		was, limit := v.now[replica].Limits[size.Memory], w.Sizes[replica].Limits[size.Memory]
		if used[replica] > 0 || limit.IsZero() || limit.Cmp(was) >= 0 {
			continue
		}
		w.Sizes[replica] = over(w.Sizes[replica], grown(w.Sizes[replica], was))
	}
}

// most is what a node can give of a resource; nil: not known.
func (q Question) most(name string) *resource.Quantity {
	most, known := q.NodeCap[name]
	if !known {
		return nil
	}
	return &most
}

// grown is the memory of a size with that limit.
func grown(held size.Resources, limit resource.Quantity) size.Resources {
	out := size.Resources{Limits: map[string]resource.Quantity{size.Memory: limit}}
	was := held.Limits[size.Memory]
	if request, is := held.Requests[size.Memory]; is && request.Cmp(was) == 0 {
		out.Requests = map[string]resource.Quantity{size.Memory: limit}
	}
	return out
}

// killedOf reports whether a replica of that ordinal was killed and nobody grew for it yet.
func (v view) killedOf(q Question, ordinal int) bool {
	for replica := range v.kills {
		if q.of(replica) == ordinal {
			return true
		}
	}
	return false
}

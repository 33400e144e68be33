package bill

import (
	"maps"

	"ballast/planner/plan"
	"ballast/planner/size"
)

// request is what one replica asks for, in thousandths: cores, and bytes.
type request map[string]int64

func requestOf(r plan.Resources) request {
	out := request{}
	for name, text := range r.Requests {
		if q, err := size.ParseQuantity(text); err == nil {
			out[name] = q.MilliValue()
		}
	}
	return out
}

// held are the requests that a plan holds each replica at.
func held(p plan.Plan, replicas int) []request {
	all := make([]request, replicas)
	for r := range all {
		own, sized := p.SizeOf(r)
		if !sized && p.Resources != nil {
			own = *p.Resources
		}
		all[r] = requestOf(own)
	}
	return all
}

// differing is how many replicas that were there have another size now: one that comes has its size from the start.
func differing(was, now []request) (n int) {
	for r := range min(len(was), len(now)) {
		if len(was[r]) > 0 && !maps.Equal(was[r], now[r]) {
			n++
		}
	}
	return n
}

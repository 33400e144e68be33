package bill

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/size"
	"ballast/planner/size/peer"
)

// hvpa is a workload under an Hvpa that scales vertically alone: the VPA's target is what the largest replica needs.
type hvpa struct {
	stands request
	last   time.Time
}

// spec is one that we chose, of a workload that is to restart seldom: growth after 2 minutes, shrinking after 15, of at least half a
// core or 80 %, and 1G or 80 % of memory.
func spec() peer.HVPASpec {
	var s peer.HVPASpec
	s.Vpa.Deploy = true
	cpu, memory, percent := peer.Amount("500m"), peer.Amount("1G"), 80
	for _, one := range []struct {
		to    *peer.ScaleType
		after string
	}{{&s.Vpa.ScaleUp, "2m"}, {&s.Vpa.ScaleDown, "15m"}} {
		one.to.UpdatePolicy.UpdateMode, one.to.StabilizationDuration = change.Auto, one.after
		one.to.MinChange = peer.Params{CPU: peer.Param{Value: &cpu, Percentage: &percent}, Memory: peer.Param{Value: &memory, Percentage: &percent}}
	}
	return s
}

// takes lets it look at a target, and reports whether every pod restarts for it.
func (h *hvpa) takes(now time.Time, target request) bool {
	if len(target) == 0 {
		return false
	}
	if h.stands == nil { // it was deployed with what was needed then
		h.stands = maps.Clone(target)
		return false
	}
	made, err := spec().Requests("", size.Resources{Requests: quantities(h.stands)}, quantities(target), 100, true, peer.Moment{Now: now, Last: h.last})
	if err != nil || len(made.Next.Requests) == 0 {
		return false
	}
	for name, q := range made.Next.Requests {
		h.stands[name] = q.MilliValue()
	}
	h.last = now
	return true
}

func quantities(r request) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for name, milli := range r {
		out[name] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	return out
}

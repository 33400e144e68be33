package bill

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/size"
	"ballast/planner/size/peer"
)

// hvpa is a workload under an Hvpa: a number of replicas of its own, all of one size. Its HPA and its VPA go by one
// load, as if each replica needed what the fullest does.
type hvpa struct {
	spec     peer.HVPASpec
	stands   request // nil before it is deployed
	replicas int
	last     time.Time
}

// spec is one that we chose, of a workload that is to restart seldom, deployed with so many replicas: growth after 2
// minutes, shrinking after 15, of at least half a core or 80 %, and 1G or 80 % of memory. The weights are those of the
// first example in HVPA's README, the last of them without an end: 0 up to two replicas, 60 from three to seven, 0 from
// eight on.
func spec(replicas int) peer.HVPASpec {
	var s peer.HVPASpec
	s.Hpa.Deploy = true
	s.Hpa.Template.Spec.MaxReplicas = 10 * replicas
	s.Intervals = peer.WeightIntervals{{VpaWeight: 0, Last: 2}, {VpaWeight: 60, Start: 3, Last: 7},
		{VpaWeight: 0, Start: 8}}
	cpu, memory, percent := peer.Amount("500m"), peer.Amount("1G"), 80
	for _, one := range []struct {
		to    *peer.ScaleType
		after string
	}{{&s.Hpa.ScaleUp, "2m"}, {&s.Hpa.ScaleDown, "15m"}, {&s.Vpa.ScaleUp, "2m"}, {&s.Vpa.ScaleDown, "15m"}} {
		one.to.UpdatePolicy.UpdateMode, one.to.StabilizationDuration = change.Auto, one.after
		one.to.MinChange.CPU = peer.Param{Value: &cpu, Percentage: &percent}
		one.to.MinChange.Memory = peer.Param{Value: &memory, Percentage: &percent}
	}
	return s
}

// demand is what the rules of requests compute: of each replica alike, and beside it of the fullest of so many.
type demand struct {
	each, fullest request
	replicas      int
}

// of is what each of so many replicas needs of a resource, where the fullest stays as far above the others as it is.
func (d demand) of(name string, replicas int) int64 {
	n := int64(replicas)
	return d.each[name] + (d.fullest[name]*int64(d.replicas)+n-1)/n
}

// target is what the VPA recommends.
func (d demand) target(replicas int) request {
	out := request{}
	for _, part := range []request{d.each, d.fullest} {
		for name := range part {
			out[name] = d.of(name, replicas)
		}
	}
	return out
}

// takes lets it look at a demand, and is how many pods restart for their size.
func (h *hvpa) takes(now time.Time, d demand) (restarts int) {
	if h.stands == nil { // it was deployed with what was needed then
		if first := d.target(d.replicas); len(first) > 0 {
			h.spec, h.stands, h.replicas = spec(d.replicas), first, d.replicas
		}
		return 0
	}
	was, target, moment := h.replicas, d.target(h.replicas), peer.Moment{Now: now, Last: h.last}
	desired, most := h.desired(target), h.spec.Hpa.Template.Spec.MaxReplicas
	limited, err := h.spec.OutLimited(min(desired, most), desired > most, now)
	off, also := h.spec.Off(now)
	if err != nil || also != nil || off {
		return 0
	}
	desired = min(desired, most)
	weight := h.spec.Weight(was, desired)
	made, err := h.spec.Requests("", size.Resources{Requests: quantities(h.stands)}, quantities(target), weight,
		limited, moment)
	if err != nil {
		return 0
	}
	verdict, err := h.spec.Replicas(was, desired, 100-weight, moment)
	if err != nil {
		return 0
	}
	h.replicas = int(verdict.Value)
	if h.replicas != was || len(made.Next.Requests) > 0 {
		h.last = now
	}
	if len(made.Next.Requests) == 0 {
		return 0
	}
	for name, q := range made.Next.Requests {
		h.stands[name] = q.MilliValue()
	}
	return min(was, h.replicas)
}

// desired is how many replicas the HPA wants, that none needs more than it requests: what is within a tenth of that
// changes nothing.
func (h *hvpa) desired(target request) int {
	most, known := int64(1), false
	for name, needs := range target {
		stands := h.stands[name]
		if stands <= 0 {
			continue
		}
		wants := int64(h.replicas)
		if off := needs - stands; max(off, -off)*10 > stands {
			wants = (needs*wants + stands - 1) / stands
		}
		most, known = max(most, wants), true
	}
	if !known {
		return h.replicas
	}
	return int(most)
}

func quantities(r request) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for name, milli := range r {
		out[name] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	return out
}

package question

import (
	"time"

	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/plan"
)

// Handover is from sizes in place to those of the pod template, or back, and from one leader to the next.
type Handover struct{ Question }

// HandsOver reports whether pods are held in place and the template is to hold them from now on.
func (q Handover) HandsOver() bool { return q.InTemplate() && q.Plan.Sizes != nil }

// Covers reports whether the template would hold all that pods are held at in place and that rules still name.
func (q Handover) Covers(template plan.Resources) bool {
	named := q.NamedResources()
	lacks := func(held, of map[string]string) bool {
		for name := range held {
			if _, there := of[name]; named[name] && !there {
				return true
			}
		}
		return false
	}
	for _, replica := range q.All() {
		if held, ok := q.Plan.SizeOf(replica); ok && (lacks(held.Requests, template.Requests) || lacks(held.Limits, template.Limits)) {
			return false
		}
	}
	return true
}

// InForce are a plan's sizes, in either way; nil: it has none.
func InForce(p plan.Plan) *plan.Sizes {
	if p.Resources != nil {
		return &plan.Sizes{Default: *p.Resources}
	}
	return p.Sizes
}

// Newer are the resources, by ordinal, of which the plan in force has another size than the memory knows of: another leader
// changed it, whose memory this one has not got, or a person had an earlier one brought back.
func (q Handover) Newer() map[int]map[string]bool {
	if q.Memory.Held == nil || InForce(q.Plan) == nil || q.HandsOver() {
		return nil
	}
	known := q.Plan
	known.Sizes, known.Resources = q.Memory.Held, nil
	if q.InTemplate() {
		known.Sizes, known.Resources = nil, &q.Memory.Held.Default
	}
	out := map[int]map[string]bool{}
	for _, replica := range q.Ordinals() {
		was, is := quantity.Of(q.Held(known, replica)), quantity.Of(q.Held(q.Plan, replica))
		for _, name := range Sized() {
			if quantity.Same(was, is, name) {
				continue
			}
			if out[replica] == nil {
				out[replica] = map[string]bool{}
			}
			out[replica][name] = true
		}
	}
	return out
}

// Released is what is remembered of sizes while no policy makes any: what replicas were seen to use and which kills they grew for, for
// as long as that counts, and what the template had.
func Released(m memory.Sizes, now time.Time) memory.Sizes {
	kept := memory.Sizes{Killed: m.Killed, Found: m.Found, Written: m.Written, Resizes: m.Resizes}
	for replica, peak := range m.Peaks {
		if peak = peak.Next(0, now); peak.Bytes == 0 {
			continue
		}
		if kept.Peaks == nil {
			kept.Peaks = map[int]memory.Peak{}
		}
		kept.Peaks[replica] = peak
	}
	if kept.Peaks == nil {
		kept.Killed = nil
	}
	return kept
}

// Switches reports whether size.apply is another than the plan was made by: then its sizes are of other replicas.
func (q Handover) Switches() bool {
	return q.HandsOver() || !q.InTemplate() && q.Plan.Resources != nil
}

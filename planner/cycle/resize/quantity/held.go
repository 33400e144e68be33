// Package quantity has the arithmetic of sizes: what of a request and a limit leads, what both come to, and how people
// read it.
package quantity

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Held is a size as the plan has it; nil where it holds nothing.
func Held(r size.Resources) *plan.Resources {
	out := Resources(r)
	if len(out.Requests)+len(out.Limits) == 0 {
		return nil
	}
	return &out
}

// Rows are the sizes as the plan has them: the one that most replicas have is the default, where none is left as it is.
// nil where they hold nothing.
func Rows(ordinals []int, sizes map[int]size.Resources) *plan.Sizes {
	var all []plan.Resources
	for _, replica := range ordinals {
		if h := Held(sizes[replica]); h != nil {
			all = append(all, *h)
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := &plan.Sizes{}
	if len(all) == len(ordinals) {
		out.Default = usual(all)
	}
	for _, replica := range ordinals {
		if h := Held(sizes[replica]); h != nil && !h.Same(out.Default) {
			if out.Replicas == nil {
				out.Replicas = map[int]plan.Resources{}
			}
			out.Replicas[replica] = *h
		}
	}
	return out
}

// usual is the size that most have; of several the first.
func usual(sizes []plan.Resources) (most plan.Resources) {
	best := 0
	for _, one := range sizes {
		have := 0
		for _, other := range sizes {
			if one.Same(other) {
				have++
			}
		}
		if have > best {
			best, most = have, one
		}
	}
	return most
}

// Of reads a size of the plan or the template; what cannot be read is left out.
func Of(r *plan.Resources) size.Resources {
	out := size.Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	if r == nil {
		return out
	}
	for _, list := range []struct {
		from map[string]string
		to   map[string]resource.Quantity
	}{{r.Requests, out.Requests}, {r.Limits, out.Limits}} {
		for name, text := range list.from {
			if q, err := size.ParseQuantity(text); err == nil && q.Sign() > 0 {
				list.to[name] = q
			}
		}
	}
	return out
}

// Over is one size with what another says instead.
func Over(base, top size.Resources) size.Resources {
	out := size.Resources{Requests: maps.Clone(base.Requests), Limits: maps.Clone(base.Limits)}
	maps.Copy(out.Requests, top.Requests)
	maps.Copy(out.Limits, top.Limits)
	return out
}

// Larger is of each quantity the larger one.
func Larger(a, b size.Resources) size.Resources {
	out := Over(b, a)
	for _, list := range []struct{ with, out map[string]resource.Quantity }{{b.Requests, out.Requests}, {b.Limits, out.Limits}} {
		for name, q := range list.with {
			if mine := list.out[name]; q.Cmp(mine) > 0 {
				list.out[name] = q
			}
		}
	}
	return out
}

// Smaller is of each quantity that both have the smaller one.
func Smaller(a, b size.Resources) size.Resources {
	out := size.Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	for _, list := range []struct{ a, b, out map[string]resource.Quantity }{{a.Requests, b.Requests, out.Requests}, {a.Limits, b.Limits, out.Limits}} {
		for name, q := range list.a {
			other, both := list.b[name]
			if both && other.Cmp(q) < 0 {
				q = other
			}
			if both {
				list.out[name] = q
			}
		}
	}
	return out
}

// The most that a plan may hold a container at.
const (
	mostCores  = 1_000_000
	MostMemory = 1 << 50
)

// Resources is a size as the plan has it, in Kubernetes' own way of writing.
func Resources(r size.Resources) plan.Resources {
	texts := func(list map[string]resource.Quantity) map[string]string {
		var out map[string]string
		for name, q := range list {
			if q.Sign() <= 0 {
				continue
			}
			if out == nil {
				out = map[string]string{}
			}
			out[name] = Text(name, q)
		}
		return out
	}
	return plan.Resources{Requests: texts(r.Requests), Limits: texts(r.Limits)}
}

// Text writes a quantity: cores in thousandths, memory in bytes.
func Text(name string, q resource.Quantity) string {
	if name == size.CPU {
		if q.CmpInt64(mostCores) > 0 {
			return resource.NewQuantity(mostCores, resource.DecimalSI).String()
		}
		return resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI).String()
	}
	if q.CmpInt64(MostMemory) > 0 {
		return resource.NewQuantity(MostMemory, resource.BinarySI).String()
	}
	return resource.NewQuantity(q.Value(), resource.BinarySI).String()
}

// levels is into how many levels a quantity is rounded up for people, at least: what they read must not change with
// every sample.
const levels = 16

// Rounded is a quantity as people are told of a wish: no more than a sixteenth above, and of a round number.
func Rounded(name string, q resource.Quantity) resource.Quantity {
	value, unit := q.Value(), int64(1)
	if name == size.CPU {
		value = q.MilliValue()
	}
	for unit*2 <= value/levels {
		unit *= 2
	}
	if name == size.CPU {
		for unit = 1; unit*5 <= value/levels; unit *= 5 {
			if unit*10 <= value/levels {
				unit *= 2
			}
		}
	}
	value = (value + unit - 1) / unit * unit
	if name == size.CPU {
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	}
	return *resource.NewQuantity(value, resource.BinarySI)
}

// Planned are what a plan holds these ordinals at, in either way; what it does not size is left out.
func Planned(p plan.Plan, ordinals []int, uniform bool) map[int]plan.Resources {
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

// Leading is the quantity by which a change of a resource is judged, and what stands of it: the request, and where that
// stays or is nobody's the limit.
func Leading(now, want size.Resources, name string) (lead, stands resource.Quantity, wanted bool) {
	if RequestLeads(now, want, name) {
		return want.Requests[name], now.Requests[name], true
	}
	limit, limited := want.Limits[name]
	return limit, now.Limits[name], limited
}

// RequestLeads reports whether a change is judged by the request.
func RequestLeads(now, want size.Resources, name string) bool {
	request, ruled := want.Requests[name]
	_, limited := want.Limits[name]
	stands := now.Requests[name]
	return ruled && (request.Cmp(stands) != 0 || !limited)
}

// Composed is one resource of a size whose leading quantity is got. The limit does not shrink where that grows, nor
// where it shrinks less far than is wanted; it does not grow where that shrinks, and is never below the request.
func Composed(now, want size.Resources, name string, got resource.Quantity, grows bool) size.Resources {
	out := size.Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	request, ruled := want.Requests[name]
	limit, limited := want.Limits[name]
	wanted, _, _ := Leading(now, want, name)
	if RequestLeads(now, want, name) || !limited {
		request = got
	} else {
		limit = got
	}
	was, had := now.Limits[name]
	shrinks, whole := was.Cmp(limit) > 0, got.Cmp(wanted) == 0
	stays := shrinks && (grows || !whole)
	waits := !shrinks && !grows && RequestLeads(now, want, name)
	if had && (stays || waits) {
		limit = was
	}
	if ruled {
		out.Requests[name] = request
	}
	if limited {
		if ruled && limit.Cmp(request) < 0 {
			limit = request
		}
		out.Limits[name] = limit
	}
	return out
}

// LimitAlone keeps a request that is to shrink as it stands where its limit must grow: the whole would wait for the
// shrinking.
func LimitAlone(now, want size.Resources, name string) size.Resources {
	limit, limited := want.Limits[name]
	was, had := now.Limits[name]
	request, requested := want.Requests[name]
	stands, stood := now.Requests[name]
	if !limited || !had || limit.Cmp(was) <= 0 {
		return want
	}
	if !requested || !stood || request.Cmp(stands) >= 0 {
		return want
	}
	out := Over(want, size.Resources{})
	out.Requests[name] = stands
	return out
}

// LimitAhead keeps a request as it stands whose change is less than the least one, or that is to shrink, where the
// limit grows by the least change or more: it would wait for the request. Where no limit may grow the request shrinks
// alone.
func LimitAhead(now, want size.Resources, name string, rules change.Rules) size.Resources {
	request, requested := want.Requests[name]
	stands, stood := now.Requests[name]
	limit, was := want.Limits[name], now.Limits[name]
	if !requested || !stood || was.IsZero() {
		return want
	}
	by := limit.MilliValue() - was.MilliValue()
	if by <= 0 || by < rules.Up.MinChange.Threshold(was.MilliValue()) {
		return want
	}
	changes := request.MilliValue() - stands.MilliValue()
	large := changes >= rules.Up.MinChange.Threshold(stands.MilliValue())
	if shrinks := changes < 0; shrinks {
		large = rules.Up.Mode == change.Off && -changes >= rules.Down.MinChange.Threshold(stands.MilliValue())
	}
	if large {
		return want
	}
	out := Over(want, size.Resources{})
	out.Requests[name] = stands
	return out
}

// Take writes one resource of a size.
func Take(next, want size.Resources, name string) {
	for _, list := range []struct{ want, to map[string]resource.Quantity }{{want.Requests, next.Requests}, {want.Limits, next.Limits}} {
		if q, is := list.want[name]; is && q.Sign() > 0 {
			list.to[name] = q
		}
	}
	request := next.Requests[name]
	if limit, limited := next.Limits[name]; limited && limit.Cmp(request) < 0 { // held from before: no rule makes one any more
		next.Limits[name] = request
	}
}

// Same reports whether a resource's request and limit are the same in both.
func Same(a, b size.Resources, name string) bool {
	equal := func(a, b map[string]resource.Quantity) bool {
		x, xs := a[name]
		y, ys := b[name]
		return xs == ys && x.Cmp(y) == 0
	}
	return equal(a.Requests, b.Requests) && equal(a.Limits, b.Limits)
}

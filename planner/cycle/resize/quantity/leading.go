package quantity

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/size"
)

// Leading is the quantity by which a change of a resource is judged, and what stands of it: the request, and where that stays or
// is nobody's the limit.
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

// Composed is one resource of a size whose leading quantity is got. The limit does not shrink where that grows, nor where it
// shrinks less far than is wanted; it does not grow where that shrinks, and is never below the request.
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

// LimitAlone keeps a request that is to shrink as it stands where its limit must grow: the whole would wait for the shrinking.
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

// LimitAhead keeps a request as it stands whose change is less than the least one, or that is to shrink, where the limit grows by the
// least change or more: it would wait for the request. Where no limit may grow the request shrinks alone.
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

package resize

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/cycle/memory"
	"ballast/planner/size"
)

// remembered is the history of one resource of one replica. Changes are the resource's, and stand with the wishes for its request;
// the wishes for its limit stand apart: where one of the two is at rest the other must not take its wishes for its own.
type remembered struct {
	request, limit change.Past
}

// remembered is what the memory has of a resource, with what it does not know of: a size that another leader gave the replica
// since counts as a change that was made just now, and as what was wanted.
func (j *judge) remembered(replica int, name string) remembered {
	all, rules := j.Memory.Changes[replica], j.Rules(name)
	m := remembered{all[name], all[memory.LimitOf(name)]}
	if !j.Overtaken[replica][name] {
		return m
	}
	m = m.wish(j.Now, j.Current[replica], j.Current[replica], name, rules)
	m.request = m.request.Changed(j.Now, 1, rules.Up, rules.Down)
	return m
}

// wish remembers what is wanted of request and limit. What stands was wanted until now where nothing is remembered.
func (m remembered) wish(at time.Time, now, want size.Resources, name string, rules change.Rules) remembered {
	for _, list := range []struct {
		h         *change.Past
		has, asks map[string]resource.Quantity
	}{{&m.request, now.Requests, want.Requests}, {&m.limit, now.Limits, want.Limits}} {
		q, wanted := list.asks[name]
		if !wanted {
			continue
		}
		stands := list.has[name]
		if len(list.h.Wishes) == 0 {
			*list.h = list.h.Wish(at, stands.MilliValue(), rules.Up, rules.Down)
		}
		*list.h = list.h.Wish(at, q.MilliValue(), rules.Up, rules.Down)
	}
	return m
}

// leading is the history by which a change is judged: that of the quantity that leads, with the resource's changes.
func (m remembered) leading(request bool) change.Past {
	h := m.request
	if !request {
		h.Wishes = m.limit.Wishes
	}
	return h
}

// stableLimit is a size whose limit grows no further than what was wanted of it within the window, where its request does not
// grow as far as it is to.
func (m remembered) stableLimit(at time.Time, now, got size.Resources, name string, window time.Duration) size.Resources {
	limit, limited := got.Limits[name]
	was, had := now.Limits[name]
	if !limited || !had || limit.Cmp(was) <= 0 {
		return got
	}
	stable := max(change.Stabilize(was.MilliValue(), limit.MilliValue(), m.limit.Wishes, window, 0, at), was.MilliValue())
	q := *resource.NewMilliQuantity(stable, limit.Format)
	if request, ruled := got.Requests[name]; ruled && q.Cmp(request) < 0 {
		q = request
	}
	got.Limits[name] = q
	return got
}

// keep puts the history back where there is any.
func (m remembered) keep(all map[string]change.Past, name string) {
	for key, h := range map[string]change.Past{name: m.request, memory.LimitOf(name): m.limit} {
		if h.Last != 0 || len(h.Wishes)+len(h.Events) > 0 {
			all[key] = h
		}
	}
}

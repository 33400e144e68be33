package plan

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The classes of a pod's quality of service, by Kubernetes' names. A pod's class is decided when it is made.
const (
	guaranteed = "Guaranteed"
	burstable  = "Burstable"
	bestEffort = "BestEffort"
)

// PodSize is what a pod's containers ask for, those that initialise it among them, with the place of the controller's.
type PodSize struct {
	Containers []Resources
	At         int
	Whole      bool // the pod asks for something as a whole (spec.resources)
}

// With is a container's resources with those of a size in their places. Others stay.
func (r Resources) With(size Resources) Resources {
	return Resources{Requests: overlaid(r.Requests, size.Requests), Limits: overlaid(r.Limits, size.Limits)}
}

func overlaid(values, over map[string]string) map[string]string {
	all := make(map[string]string, len(values)+len(over))
	maps.Copy(all, values)
	maps.Copy(all, over)
	return all
}

// Misfit says why the controller's container cannot be given a size, and what to do; empty: it can. Kubernetes would
// refuse the pod, or the change of it: a pod keeps its quality of service for as long as it lives, and no request is
// above its limit. Webhook and planner both ask here.
func (p PodSize) Misfit(size Resources) string {
	if p.Whole {
		return "the pod has resources as a whole (spec.resources): take them out of the pod template"
	}
	sized := p.Containers[p.At].With(size)
	requests, limits := asked(sized)
	for _, name := range []string{"cpu", "memory"} {
		limit, limited := limits[name]
		if request := requests[name]; limited && request.Cmp(limit) > 0 {
			return fmt.Sprintf("its request of %s would be above its limit: let the size name limits.%s, too", name, name)
		}
	}
	after := make([]Resources, len(p.Containers))
	copy(after, p.Containers)
	after[p.At] = sized
	was, is := class(p.Containers), class(after)
	if was == is {
		return ""
	}
	mend := "let the pod template ask for something of what the size names"
	switch {
	case was == guaranteed:
		mend = "let the size name requests and limits of what it changes, and the same of both"
	case is == guaranteed:
		mend = "let the size leave a limit above its request"
	}
	return fmt.Sprintf("its quality of service would be %s and no longer %s: %s", is, was, mend)
}

// asked are a container's requests and limits of what decides about a pod's class. A limit without a request is one.
func asked(r Resources) (requests, limits map[string]resource.Quantity) {
	requests, limits = map[string]resource.Quantity{}, map[string]resource.Quantity{}
	for _, name := range []string{"cpu", "memory"} {
		limit, limited := quantity(r.Limits[name])
		if limited {
			limits[name] = limit
		}
		request, ok := quantity(r.Requests[name])
		if _, said := r.Requests[name]; !said {
			request, ok = limit, limited
		}
		if ok {
			requests[name] = request
		}
	}
	return requests, limits
}

func quantity(text string) (resource.Quantity, bool) {
	if text == "" {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil && q.Sign() > 0
}

// class is a pod's quality of service as the API server works it out.
func class(containers []Resources) string {
	requests, limits := map[string]resource.Quantity{}, map[string]resource.Quantity{}
	all := true
	for _, c := range containers {
		r, l := asked(c)
		all = all && len(l) == len(mostSize)
		add(requests, r)
		add(limits, l)
	}
	if len(requests) == 0 && len(limits) == 0 {
		return bestEffort
	}
	for name, request := range requests {
		if limit, limited := limits[name]; !limited || limit.Cmp(request) != 0 {
			all = false
		}
	}
	if all && len(requests) == len(limits) {
		return guaranteed
	}
	return burstable
}

func add(to, values map[string]resource.Quantity) {
	for name, q := range values {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

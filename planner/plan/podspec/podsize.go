// Package podspec says of a pod's containers which is the application-controller, and which sizes it can be given.
// Webhook and planner ask the same questions here.
package podspec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/plan"
)

// The classes of a pod's quality of service, by Kubernetes' names. A pod's class is decided when it is made.
const (
	guaranteed = "Guaranteed"
	burstable  = "Burstable"
	bestEffort = "BestEffort"
)

// deciding are the resources that decide about the class.
var deciding = []string{"cpu", "memory"}

// Size is what a pod asks for: its controller's container, and the others.
type Size struct {
	Controller plan.Resources   `json:"controller,omitzero"`
	Others     []plan.Resources `json:"others,omitempty"` // as NewSize sums them up
	Whole      bool             `json:"whole,omitempty"`  // the pod asks for something as a whole (spec.resources)
}

// NewSize sums up a pod's other containers, those that initialise it among them, however many somebody gave it: what
// they ask for together, and nothing for those that have no limit of cpu or memory.
func NewSize(controller plan.Resources, others []plan.Resources, whole bool) Size {
	p := Size{Controller: controller, Whole: whole}
	requests, limits := map[string]resource.Quantity{}, map[string]resource.Quantity{}
	unlimited := false
	for _, c := range others {
		r, l := asked(c)
		add(requests, r)
		add(limits, l)
		unlimited = unlimited || len(l) < len(deciding)
	}
	if len(requests)+len(limits) > 0 {
		p.Others = append(p.Others, plan.Resources{Requests: texts(requests), Limits: texts(limits)})
	}
	if unlimited {
		p.Others = append(p.Others, plan.Resources{})
	}
	return p
}

func texts(quantities map[string]resource.Quantity) map[string]string {
	m := make(map[string]string, len(quantities))
	for name, q := range quantities {
		m[name] = q.String()
	}
	return m
}

// containers are all of them, the controller's of that size.
func (p Size) containers(controller plan.Resources) []plan.Resources {
	return append([]plan.Resources{controller}, p.Others...)
}

// Misfit says why the controller's container cannot be given a size, and what to do; empty: it can. Kubernetes would
// refuse the pod, or the change of it: a pod keeps its quality of service for as long as it lives, and no request is
// above its limit. Webhook and planner both ask here.
func (p Size) Misfit(size plan.Resources) string {
	if p.Whole {
		return "the pod has resources as a whole (spec.resources): take them out of the pod template"
	}
	sized := p.Controller.With(size)
	requests, limits := asked(sized)
	for _, name := range deciding {
		limit, limited := limits[name]
		if request := requests[name]; limited && request.Cmp(limit) > 0 {
			return fmt.Sprintf("its request of %s would be above its limit: let the size name limits.%s, too", name,
				name)
		}
	}
	was, is := class(p.containers(p.Controller)), class(p.containers(sized))
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
func asked(r plan.Resources) (requests, limits map[string]resource.Quantity) {
	requests, limits = map[string]resource.Quantity{}, map[string]resource.Quantity{}
	for _, name := range deciding {
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
	q, err := plan.ReadQuantity(text)
	return q, err == nil && q.Sign() > 0
}

// class is a pod's quality of service as the API server works it out.
func class(containers []plan.Resources) string {
	requests, limits := map[string]resource.Quantity{}, map[string]resource.Quantity{}
	all := true
	for _, c := range containers {
		r, l := asked(c)
		all = all && len(l) == len(deciding)
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

package resize

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Evidence is what a container may be held at, whatever a plan says: the configuration, and what stands.
type Evidence struct {
	Size     config.Size
	Template *plan.Resources
	Pods     []observed.Pod
	Memory   memory.Sizes
}

// Bound cuts a plan's sizes, in place, to size.nodeCap as it is written, or to what stands where that is more. A limit
// may be above the cap: as far as people's own is above its request, by size.limits, and by its rules.
func (e Evidence) Bound(p plan.Plan) {
	var all []plan.Resources
	if p.Resources != nil {
		all = append(all, *p.Resources)
	}
	if p.Sizes != nil {
		all = append(all, p.Sizes.Default)
		for _, own := range p.Sizes.Replicas {
			all = append(all, own)
		}
	}
	for name, most := range e.Size.Cap() {
		request := greater(most, e.stands(name))
		limit, bounded := e.mostLimit(name, request)
		for _, r := range all {
			equal := r.Requests[name] == r.Limits[name] // stays equal: another class is no size in place
			cut(r.Requests, name, request)
			switch {
			case equal:
				cut(r.Limits, name, request)
			case bounded:
				cut(r.Limits, name, limit)
			}
		}
	}
}

// cut lowers one quantity of a size, where there is one and it is more.
func cut(list map[string]string, name string, most resource.Quantity) {
	if text, is := list[name]; is {
		if q, err := size.ParseQuantity(text); err == nil && q.Cmp(most) > 0 {
			list[name] = quantity.Text(name, most)
		}
	}
}

// stands is the most of a resource that the template had or has, a pod has or was seen to use, or a person went back
// to.
func (e Evidence) stands(name string) (most resource.Quantity) {
	all := []*plan.Resources{e.Template, e.Memory.Found}
	if name == size.Memory {
		for _, peak := range e.Memory.Peaks {
			most = greater(most, *resource.NewQuantity(peak.Bytes, resource.BinarySI))
		}
	}
	for _, pod := range e.Pods {
		if name == size.Memory {
			most = greater(most, *resource.NewQuantity(pod.MemoryLimit, resource.BinarySI))
		}
		if pod.Size != nil {
			all = append(all, &pod.Size.Has)
		}
	}
	if back := e.Memory.Back; back != nil {
		for _, r := range back.Of {
			all = append(all, &r)
		}
	}
	for _, r := range all {
		q := quantity.Of(r)
		most = greater(greater(most, q.Requests[name]), q.Limits[name])
	}
	return most
}

// mostLimit is the most that a limit may be beside a request of that size; false: a rule without a max makes it.
func (e Evidence) mostLimit(name string, request resource.Quantity) (resource.Quantity, bool) {
	most := request
	for _, found := range []*plan.Resources{e.Template, e.Memory.Found} {
		was := quantity.Of(found)
		limit, had := was.Limits[name], was.Requests[name]
		if q := size.Limit(&limit, &had, request, e.Size.Headrooms()[name]); q != nil {
			most = greater(most, size.Whole(name, *q))
		}
	}
	var ruled resource.Quantity
	for _, r := range e.Size.Merged() {
		if r.List != size.Limits || r.Resource != name {
			continue
		}
		if r.Max == nil {
			return most, false
		}
		ruled.Add(*r.Max)
	}
	return greater(most, ruled), true
}

func greater(a, b resource.Quantity) resource.Quantity {
	if b.Cmp(a) > 0 {
		return b
	}
	return a
}

package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

// PatchPod gives the controller's container of a running pod its size, in place: nothing restarts. Size is what
// differs, Was what stands of it, for display. UID is of the pod that was looked at: another one of its name is not
// sized.
type PatchPod struct {
	Pod     string         `json:"pod"`
	UID     string         `json:"uid,omitempty"`
	Replica int            `json:"replica"`
	Size    plan.Resources `json:"size"`
	Was     plan.Resources `json:"was,omitzero"`
	Why     Why            `json:"why"`
}

func (PatchPod) step() {}

// String is the step in one line: `size of argocd-application-controller-3: requests.cpu=2 (Sized)`.
func (s PatchPod) String() string {
	return fmt.Sprintf("size of %s: %s (%s)", s.Pod, strings.Join(pairs(s.Size), " "), s.Why)
}

// MarshalJSON names the step in front of its fields.
func (s PatchPod) MarshalJSON() ([]byte, error) {
	type fields PatchPod
	return json.Marshal(struct {
		Step string `json:"step"`
		fields
	}{"PatchPod", fields(s)})
}

// pairs are a container's resources, each as section.name=quantity, in order.
func pairs(r plan.Resources) []string {
	var list []string
	for _, section := range []struct {
		name   string
		values map[string]string
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(section.values)) {
			list = append(list, section.name+"."+name+"="+section.values[name])
		}
	}
	return list
}

// templateResources is what the pod template gives the controller's container.
func templateResources(w *observed.Workload) plan.Resources {
	if w.Resources == nil {
		return plan.Resources{}
	}
	return *w.Resources
}

// lacking is what of a size a container does not have.
func lacking(has, size plan.Resources) plan.Resources {
	return plan.Resources{Requests: unlike(has.Requests, size.Requests), Limits: unlike(has.Limits, size.Limits)}
}

func unlike(has, want map[string]string) map[string]string {
	var m map[string]string
	for name, text := range want {
		if sameQuantity(has[name], text) {
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[name] = text
	}
	return m
}

func sameQuantity(a, b string) bool {
	if a == b {
		return true
	}
	x, err := plan.ReadQuantity(a)
	if err != nil {
		return false
	}
	y, err := plan.ReadQuantity(b)
	return err == nil && x.Cmp(y) == 0
}

// standing is what a container has of those resources.
func standing(has, of plan.Resources) plan.Resources {
	pick := func(has, of map[string]string) map[string]string {
		var m map[string]string
		for name := range of {
			text, there := has[name]
			if there && m == nil {
				m = map[string]string{}
			}
			if there {
				m[name] = text
			}
		}
		return m
	}
	return plan.Resources{Requests: pick(has.Requests, of.Requests), Limits: pick(has.Limits, of.Limits)}
}

// pods lists the pods whose container is not of its replica's size, those that the plan sizes but for what they ask for
// themselves. A change that the node has not made yet is its own business: it is asked for once.
func (a *Result) pods(p plan.Plan, seen observed.State, o Options) {
	if p.Sizes == nil {
		return
	}
	for _, pod := range seen.Pods {
		size, held := p.SizeOf(pod.Replica)
		if pod.Size == nil || !held {
			continue
		}
		lacks := lacking(pod.Size.Asks.Controller, size)
		switch {
		case len(pairs(lacks)) == 0:
			continue
		case seen.Workload.Unmanaged, pod.Size.Unmanaged:
			a.Held = append(a.Held, Held{Reason: HeldUnmanaged, Pod: pod.Name})
			continue
		}
		now, left := split(*pod.Size, lacks, o)
		for _, l := range left {
			l.Pod = pod.Name
			a.Held = append(a.Held, l)
		}
		if len(pairs(now)) > 0 {
			a.Steps = append(a.Steps, PatchPod{Pod: pod.Name, UID: pod.UID, Replica: pod.Replica, Size: now,
				Was: standing(pod.Size.Asks.Controller, now), Why: Sized})
		}
	}
}

// split is what of a size a running pod can be given now, and why it is left without the rest. One resource that waits
// for a new pod keeps no other from changing.
func split(has observed.Size, lacks plan.Resources, o Options) (now plan.Resources, left []Held) {
	if o.NoResize {
		return plan.Resources{}, []Held{{Reason: HeldNoResize,
			Words: "the API server is older than Kubernetes 1.33, and has no pods/resize: it gets its size when it is made anew, or set size.apply: template"}}
	}
	now = lacks
	for _, name := range has.Restarts {
		_, requested := now.Requests[name]
		if _, limited := now.Limits[name]; requested || limited {
			now = without(now, name)
			left = append(left, Held{Reason: HeldRestarts, Words: fmt.Sprintf(
				"its resizePolicy restarts the container for %s: take that out of the pod template; it gets its size when it is made anew", name)})
		}
	}
	if o.KeepsLimits && LowersMemory(has.Asks.Controller, now) {
		now = KeepingMemory(has.Asks, now)
		left = append(left, Held{Reason: HeldKeepsLimit,
			Words: "the API server lowers no memory limit of a running pod (Kubernetes 1.33): it gets the lower one when it is made anew"})
	}
	if words := has.Asks.Misfit(now); words != "" {
		return plan.Resources{}, append(left, Held{Reason: HeldMisfit, Words: words})
	}
	return now, left
}

// LowersMemory reports whether a container has a higher memory limit than a size.
func LowersMemory(has, size plan.Resources) bool {
	was, err := plan.ReadQuantity(has.Limits["memory"])
	if err != nil {
		return false
	}
	is, err := plan.ReadQuantity(size.Limits["memory"])
	return err == nil && is.Cmp(was) < 0
}

// KeepingMemory is what of a size a pod can be given that keeps its memory limit: all but that, and where its request
// would then make it another class of pod, no memory at all.
func KeepingMemory(asks podspec.Size, size plan.Resources) plan.Resources {
	kept := plan.Resources{Requests: size.Requests, Limits: but(size.Limits, "memory")}
	if asks.Misfit(kept) != "" {
		return without(kept, "memory")
	}
	return kept
}

// without is a size without one resource.
func without(r plan.Resources, name string) plan.Resources {
	return plan.Resources{Requests: but(r.Requests, name), Limits: but(r.Limits, name)}
}

func but(values map[string]string, name string) map[string]string {
	rest := maps.Clone(values)
	delete(rest, name)
	if len(rest) == 0 {
		return nil
	}
	return rest
}

package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// PatchPod gives the controller's container of a running pod its size, in place: nothing restarts. Size is what differs,
// Was what stands of it, for display.
type PatchPod struct {
	Pod     string         `json:"pod"`
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

// given is what the pod template gives the controller's container.
func given(w *observed.Workload) plan.Resources {
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
		if len(pairs(lacks)) == 0 {
			continue
		}
		unmanaged := seen.Workload.Unmanaged || pod.Size.Unmanaged
		if why, words := leftAlone(*pod.Size, size, lacks, o); unmanaged || why != "" {
			if unmanaged {
				why, words = HeldUnmanaged, ""
			}
			a.Held = append(a.Held, Held{Reason: why, Pod: pod.Name, Words: words})
			continue
		}
		a.Steps = append(a.Steps, PatchPod{Pod: pod.Name, Replica: pod.Replica, Size: lacks, Was: standing(pod.Size.Asks.Controller, lacks), Why: Sized})
	}
}

// leftAlone says why a pod is left at its size; without a reason it is not.
func leftAlone(has observed.Size, size, lacks plan.Resources, o Options) (why HeldReason, words string) {
	if o.NoResize {
		return HeldNoResize, "the API server is older than Kubernetes 1.33, and has no pods/resize: it gets its size when it is made anew, or set size.apply: template"
	}
	if words := has.Asks.Misfit(size); words != "" {
		return HeldMisfit, words
	}
	for _, name := range has.Restarts {
		_, requested := lacks.Requests[name]
		if _, limited := lacks.Limits[name]; requested || limited {
			return HeldRestarts, fmt.Sprintf("its resizePolicy restarts the container for %s: take that out of the pod template; it gets its size when it is made anew", name)
		}
	}
	return "", ""
}

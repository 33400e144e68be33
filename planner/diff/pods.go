package diff

import (
	"encoding/json"
	"fmt"
	"strings"

	"ballast/planner/observed"
	"ballast/planner/plan"
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

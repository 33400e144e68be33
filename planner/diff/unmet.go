package diff

import (
	"fmt"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// PodState is what became of the size that the plan holds a pod at. The set is closed: these, and the HeldReasons of
// pods.
type PodState string

// The states of a pod that has not got its size.
const (
	PodAsked      PodState = "Asked"      // its node has not said that the container has it
	PodInProgress PodState = "InProgress" // its node is at it
	PodFailed     PodState = "Failed"     // its node is at it, and something went wrong
	PodDeferred   PodState = "Deferred"   // its node has no room for it now, and tries again
	PodInfeasible PodState = "Infeasible" // its node never has room for it
	PodRefused    PodState = "Refused"    // the API server lets nobody of ballast change it
)

// Unmet is a pod that has not got the size that the plan holds it at. Short says that it has less; Since is the node's
// word. Left is what of the size it is not even asked for while it runs, and Stands what it has of that.
type Unmet struct {
	Replica int            `json:"replica"`
	Pod     string         `json:"pod"`
	State   PodState       `json:"state"`
	Short   bool           `json:"short,omitempty"`
	Words   string         `json:"words,omitempty"`
	Since   time.Time      `json:"since,omitzero"`
	Left    plan.Resources `json:"left,omitzero"`
	Stands  plan.Resources `json:"stands,omitzero"`
}

// NoRoom reports whether the pod is to grow and its node has no room for that.
func (u Unmet) NoRoom() bool { return u.Short && (u.State == PodDeferred || u.State == PodInfeasible) }

// Coming reports whether the pod is to grow and may yet do so while it runs. What only a new pod mends nobody waits
// for.
func (u Unmet) Coming() bool {
	asked := u.State == PodAsked || u.State == PodInProgress || u.State == PodFailed
	return u.NoRoom() || u.Short && asked
}

// String is the state in words.
func (u Unmet) String() string {
	said := fmt.Sprintf("pod %q has not got its size: %s", u.Pod, u.State)
	if u.Words != "" {
		said += " (" + u.Words + ")"
	}
	return said
}

// Unmets lists the pods that have not got the size that the plan holds them at, in their order. What a node rounds is
// none.
func Unmets(p plan.Plan, pods []observed.Pod, unmanaged bool, o Options) (all []Unmet) {
	for _, pod := range pods {
		size, held := p.SizeOf(pod.Replica)
		if p.Sizes == nil || pod.Size == nil || !held {
			continue
		}
		if u, unmet := unmetOf(pod, size, unmanaged || pod.Size.Unmanaged, o); unmet {
			all = append(all, u)
		}
	}
	return all
}

func unmetOf(pod observed.Pod, size plan.Resources, unmanaged bool, o Options) (Unmet, bool) {
	u := Unmet{Replica: pod.Replica, Pod: pod.Name, State: PodAsked, Words: pod.Size.Message, Since: pod.Size.Since,
		Short: short(*pod.Size, size)}
	lacks := lacking(pod.Size.Asks.Controller, size)
	if len(pairs(lacks)) == 0 {
		if pod.Size.Resize != "" {
			u.State = PodState(pod.Size.Resize)
		}
		return u, u.Short || pod.Size.Resize != ""
	}
	u.Words, u.Since = "", time.Time{} // the node speaks of another size
	now, held := split(*pod.Size, lacks, o)
	switch {
	case unmanaged:
		u.State, now = PodState(HeldUnmanaged), plan.Resources{}
	case len(held) > 0:
		u.State, u.Words = PodState(held[0].Reason), held[0].Words
	case o.Refused[pod.Name] != "" && o.Roomless[pod.Name]:
		u.State, u.Words, now = PodInfeasible, o.Refused[pod.Name], plan.Resources{}
	case o.Refused[pod.Name] != "":
		u.State, u.Words, now = PodRefused, o.Refused[pod.Name], plan.Resources{}
	}
	u.Left = lacking(now, lacks)
	u.Stands = standing(pod.Size.Asks.Controller, u.Left)
	return u, true
}

// tolerated is how much less cpu a node may tell than was asked for, in percent: it works it out of shares.
const tolerated = 2

// short reports whether a container has less than a size, by its node's account, and where that says nothing by what it
// asks for.
func short(has observed.Size, size plan.Resources) bool {
	stands := has.Has
	if len(stands.Requests)+len(stands.Limits) == 0 {
		stands = has.Asks.Controller
	}
	return less(stands.Requests, size.Requests, true) || less(stands.Limits, size.Limits, false)
}

// less reports whether one list has less than another; absent says that what is not there is 0, and otherwise it is no
// bound.
func less(has, want map[string]string, absent bool) bool {
	for name, text := range want {
		wanted, err := plan.ReadQuantity(text)
		if err != nil {
			continue
		}
		stands, there := has[name]
		if !there {
			if absent {
				return true
			}
			continue
		}
		q, err := plan.ReadQuantity(stands)
		if err != nil {
			continue
		}
		least := wanted.MilliValue()
		if name == "cpu" {
			least -= least * tolerated / 100
		}
		if q.MilliValue() < least {
			return true
		}
	}
	return false
}

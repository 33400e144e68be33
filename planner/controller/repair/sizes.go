package repair

import (
	"errors"

	"ballast/planner/apply"
	"ballast/planner/controller/wiring"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/telemetry"
)

// mostSizesTold is how many pods one event names that are left at their size.
const mostSizesTold = 5

// mostSizesRefused bounds what is kept of refusals: a Deployment's pods have new names each time.
const mostSizesRefused = 1000

// sizeNews tells people once of pods that are left at their size, and of those whose size the API server refuses. Only
// repairs call it, one call at a time.
type sizeNews struct {
	*wiring.Options
	held    map[string]string // words by pod
	refused map[string]string
}

// tell tells of the pods, and of the pod template, that are held back for another reason than before.
func (n *sizeNews) tell(w discover.Workload, held []diff.Held) {
	now, news := map[string]string{}, []string(nil)
	for _, h := range held {
		if h.Pod == "" && h.Reason != diff.HeldMisfit { // of the pod template there is one at most
			continue
		}
		now[h.Pod] = h.Message()
		if n.held[h.Pod] != now[h.Pod] && h.Reason != diff.HeldUnmanaged {
			news = append(news, h.Message())
		}
	}
	n.held = now
	if len(news) > 0 {
		n.Emit(w, telemetry.SizeHeld(news[:min(len(news), mostSizesTold)]))
	}
}

// note tells of a size that is refused, once for the same words.
func (n *sizeNews) note(w discover.Workload, result apply.Result) {
	step, ok := result.Step.(diff.PatchPod)
	if !ok || result.Outcome == apply.Deferred {
		return
	}
	why, refused := apply.Refusal(result.Err)
	if errors.Is(result.Err, apply.ErrNoResize) {
		why, refused = apply.ErrNoResize.Error(), true
	}
	if !refused {
		delete(n.refused, step.Pod)
		return
	}
	if n.refused[step.Pod] == why {
		return
	}
	if n.refused == nil || len(n.refused) >= mostSizesRefused {
		n.refused = map[string]string{}
	}
	n.refused[step.Pod] = why
	n.Emit(w, telemetry.SizeRefused(step.Pod, why))
}

package repair

import (
	"errors"
	"maps"
	"sync"
	"time"

	"ballast/planner/apply"
	"ballast/planner/controller/wiring"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/telemetry"
)

const (
	// barredFrom is after how many refusals in a row a Secret counts as one that cannot be written: an admission
	// webhook that restarts refuses some.
	barredFrom = 3
	// barredFor is for how long after the last one: longer than the longest wait between two writes of one value (10
	// min), or each would begin the count anew. Then a change that needs it tries again.
	barredFor = 25 * time.Minute
	// unsizedFor is the same for a pod's size, of which one refusal is enough.
	unsizedFor = 10 * time.Minute
)

// refusedWrites are of one Secret, by the API server in a row, the last one at that time.
type refusedWrites struct {
	times int
	at    time.Time
	why   string

	roomless bool // of a pod: its node has less to give
}

// refusals are the Secrets and pods whose writes the API server refuses; repairs note them, and cycles ask.
type refusals struct {
	*wiring.Options
	mu      sync.Mutex
	refused map[string]refusedWrites // by Secret
	unsized map[string]refusedWrites // by pod
}

func newRefusals(o *wiring.Options) *refusals {
	return &refusals{Options: o, refused: map[string]refusedWrites{}, unsized: map[string]refusedWrites{}}
}

// note remembers what became of a write to a Secret or a pod.
func (r *refusals) note(result apply.Result) {
	of, name := r.refused, ""
	switch step := result.Step.(type) {
	case diff.PatchShard:
		name = step.Secret
	case diff.PatchPod:
		of, name = r.unsized, step.Pod
	}
	if name == "" || result.Outcome == apply.Deferred {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	why, refused := apply.Refusal(result.Err)
	switch {
	case refused:
		of[name] = refusedWrites{times: of[name].times + 1, at: r.Clock.Now(), why: why,
			roomless: apply.RefusedForRoom(result.Err)}
	case result.Err == nil, result.Outcome == apply.Refused: // gone, or people's meanwhile: discovery sees that, and it may come back
		delete(of, name)
	}
}

// Now are the Secrets that cannot be written now, with the API server's words.
func (r *refusals) Now() map[string]string { return r.of(r.refused, barredFrom, barredFor) }

// Pods are those whose size cannot be changed now, with the API server's words.
func (r *refusals) Pods() map[string]string { return r.of(r.unsized, 1, unsizedFor) }

// Roomless are those of them whose nodes have less to give.
func (r *refusals) Roomless() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pods map[string]bool
	for name, b := range r.unsized {
		if b.roomless && pods == nil {
			pods = map[string]bool{}
		}
		if b.roomless {
			pods[name] = true
		}
	}
	return pods
}

func (r *refusals) of(refused map[string]refusedWrites, from int, during time.Duration) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.Clock.Now()
	maps.DeleteFunc(refused, func(_ string, b refusedWrites) bool { return at.Sub(b.at) >= during || at.Before(b.at) })
	var who map[string]string
	for name, b := range refused {
		if b.times < from {
			continue
		}
		if who == nil {
			who = map[string]string{}
		}
		who[name] = b.why
	}
	return who
}

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

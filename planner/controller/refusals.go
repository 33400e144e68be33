package controller

import (
	"maps"
	"sync"
	"time"

	"ballast/planner/apply"
	"ballast/planner/diff"
)

const (
	// barredFrom is after how many refusals in a row a Secret counts as one that cannot be written: an admission webhook
	// that restarts refuses some.
	barredFrom = 3
	// barredFor is for how long after the last one. Then a change that needs it tries again.
	barredFor = 10 * time.Minute
)

// refusedWrites are of one Secret, by the API server in a row, the last one at that time.
type refusedWrites struct {
	times int
	at    time.Time
	why   string
}

// refusals are the Secrets and pods whose writes the API server refuses; repairs note them, and cycles ask.
type refusals struct {
	*Options
	mu      sync.Mutex
	refused map[string]refusedWrites // by Secret
	unsized map[string]refusedWrites // by pod
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
		of[name] = refusedWrites{times: of[name].times + 1, at: r.Clock.Now(), why: why}
	case result.Err == nil, result.Outcome == apply.Refused: // gone, or people's meanwhile: discovery sees that, and it may come back
		delete(of, name)
	}
}

// now are the Secrets that cannot be written now, with the API server's words.
func (r *refusals) now() map[string]string { return r.of(r.refused, barredFrom) }

// pods are those whose size cannot be changed now, with the API server's words.
func (r *refusals) pods() map[string]string { return r.of(r.unsized, 1) }

func (r *refusals) of(refused map[string]refusedWrites, from int) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.Clock.Now()
	maps.DeleteFunc(refused, func(_ string, b refusedWrites) bool { return at.Sub(b.at) >= barredFor || at.Before(b.at) })
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

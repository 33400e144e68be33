package controller

import (
	"maps"
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

// bar is a Secret whose writes the API server refused, the last one at that time.
type bar struct {
	times int
	at    time.Time
	why   string
}

// noteBarred remembers what became of a write to a Secret.
func (l *Loop) noteBarred(result apply.Result) {
	step, ok := result.Step.(diff.PatchShard)
	if !ok || result.Outcome == apply.Deferred {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	why, refused := apply.Refusal(result.Err)
	switch {
	case refused:
		l.barred[step.Secret] = bar{times: l.barred[step.Secret].times + 1, at: l.Clock.Now(), why: why}
	case result.Err == nil, result.Outcome == apply.Refused: // gone, or people's meanwhile: discovery sees that, and it may come back
		delete(l.barred, step.Secret)
	}
}

// whoIsBarred are the Secrets that cannot be written now, with the API server's words.
func (l *Loop) whoIsBarred() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.Clock.Now()
	maps.DeleteFunc(l.barred, func(_ string, b bar) bool { return now.Sub(b.at) >= barredFor || now.Before(b.at) })
	var who map[string]string
	for name, b := range l.barred {
		if b.times < barredFrom {
			continue
		}
		if who == nil {
			who = map[string]string{}
		}
		who[name] = b.why
	}
	return who
}

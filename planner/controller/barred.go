package controller

import (
	"errors"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// noteBarred remembers what became of a write to a Secret. Timeouts and an API server that is away say nothing of it; a
// conflict is one of all attempts of a write.
func (l *Loop) noteBarred(result apply.Result) {
	step, ok := result.Step.(diff.PatchShard)
	if !ok || result.Outcome == apply.Deferred {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var status apierrors.APIStatus
	reasons := []metav1.StatusReason{metav1.StatusReasonInvalid, metav1.StatusReasonForbidden, metav1.StatusReasonConflict}
	refused := errors.As(result.Err, &status) && slices.Contains(reasons, apierrors.ReasonForError(result.Err))
	switch {
	case refused:
		l.barred[step.Secret] = bar{times: l.barred[step.Secret].times + 1, at: l.Clock.Now(), why: string(status.Status().Reason) + ": " + status.Status().Message}
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

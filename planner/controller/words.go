package controller

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// heard is what people's words on the plan ConfigMap were when somebody saw it last: the watch, or who read or wrote it.
// A cycle alone sees them too seldom: whoever deletes the ConfigMap between two of them would undo a freeze, or its end.
type heard struct {
	known   bool
	version uint64 // the object's, which grows
	words   []byte
}

// hear takes the words of a plan ConfigMap, unless later ones are known.
func (l *Loop) hear(cm *corev1.ConfigMap) {
	words, err := store.Words(cm)
	if err != nil {
		l.Log.Error(err, "what people wrote into the plan ConfigMap is not kept")
		return
	}
	version, _ := strconv.ParseUint(cm.ResourceVersion, 10, 64)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.heard.known || version >= l.heard.version {
		l.heard = heard{true, version, words}
	}
}

// lastWords are the latest that are known: the history's are those of the last leader.
func (l *Loop) lastWords() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard.known {
		return l.heard.words
	}
	return l.history.Parts[store.PartWords]
}

// PlanGone takes the plan ConfigMap as it was when somebody deleted it.
func (l *Loop) PlanGone(cm *corev1.ConfigMap) {
	defer func() {
		_ = l.caught(telemetry.PhaseWatch, recover()) // it is told of there
		l.Changed()
	}()
	l.hear(cm)
}

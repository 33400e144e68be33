package controller

import (
	"fmt"
	"runtime/debug"

	"ballast/planner/discover"
	"ballast/planner/telemetry"
)

// caught makes a panic an error, which names its type alone: its value may have been read from a Secret. People hear
// of it once, until the phase ends well. It is called with what recover answers, nil where nothing panicked.
func (l *Loop) caught(phase string, panicked any) error {
	l.mu.Lock()
	news := panicked != nil && !l.panicking[phase]
	if l.panicking == nil {
		l.panicking = map[string]bool{}
	}
	l.panicking[phase] = panicked != nil
	l.mu.Unlock()
	if panicked == nil {
		return nil
	}
	err := fmt.Errorf("a panic of type %T in phase %q", panicked, phase)
	l.Metrics.Panics.WithLabelValues(phase).Inc()
	l.Log.V(1).Info("stack of the panic", "phase", phase, "stack", string(debug.Stack()))
	if news {
		l.Emit(discover.Workload{}, telemetry.PanickedEvent(err))
	}
	return err
}

// calm says that a cycle ended well: what panics next is news again.
func (l *Loop) calm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for phase := range l.panicking {
		l.panicking[phase] = l.panicking[phase] && (phase == telemetry.PhaseRepair || phase == telemetry.PhaseWatch)
	}
}

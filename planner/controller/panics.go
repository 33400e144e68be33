package controller

import (
	"fmt"
	"runtime/debug"
	"sync"

	"ballast/planner/controller/wiring"
	"ballast/planner/discover"
	"ballast/planner/telemetry"
)

// panics are the phases that ended in one when they ran last.
type panics struct {
	*wiring.Options
	mu     sync.Mutex
	phases map[string]bool
}

// caught makes a panic an error, which names its type alone: its value may have been read from a Secret. People hear
// of it once, until the phase ends well. It is called with what recover answers, nil where nothing panicked.
func (p *panics) caught(phase string, panicked any) error {
	p.mu.Lock()
	news := panicked != nil && !p.phases[phase]
	if p.phases == nil {
		p.phases = map[string]bool{}
	}
	p.phases[phase] = panicked != nil
	p.mu.Unlock()
	if panicked == nil {
		return nil
	}
	err := fmt.Errorf("a panic of type %T in phase %q", panicked, phase)
	p.Metrics.Panics.WithLabelValues(phase).Inc()
	p.Log.V(1).Info("stack of the panic", "phase", phase, "stack", string(debug.Stack()))
	if news {
		p.Emit(discover.Workload{}, telemetry.PanickedEvent(err))
	}
	return err
}

// calm says that a cycle ended well: what panics next is news again.
func (p *panics) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for phase := range p.phases {
		p.phases[phase] = p.phases[phase] && (phase == telemetry.PhaseRepair || phase == telemetry.PhaseWatch)
	}
}

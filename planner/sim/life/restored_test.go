package life

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/cycle/memory"
	"ballast/planner/plan"
)

// backup is what a tool that backs up Argo CD's namespace has of ballast: the plan with its history, and what people wrote
// beside it.
type backup struct {
	plan    plan.Plan
	history []plan.Plan
	parts   map[string][]byte

	pins            plan.Pins
	paused, glass   bool
	tripped, cordon string
}

func (l *Life) backup() (backup, error) {
	parts, stale := l.memory.Parts(l.parts)
	if len(stale) > 0 {
		return backup{}, fmt.Errorf("packing the memory: %w", stale[0])
	}
	return backup{plan: l.Plan.Clone(), history: slices.Clone(l.History), parts: parts,
		pins: maps.Clone(l.Pins), paused: l.Paused, glass: l.Glass, tripped: l.Tripped, cordon: l.Cordon}, nil
}

// restore puts all of it back under a new leader, which knows nothing else.
func (l *Life) restore(b backup) error {
	m, dropped := memory.Of(b.parts)
	if len(dropped) > 0 {
		return fmt.Errorf("reading the memory: %w", dropped[0])
	}
	p := b.plan.Clone()
	l.Plan, l.History, l.memory, l.parts = &p, slices.Clone(b.history), m, b.parts
	l.Pins, l.Paused, l.Glass, l.Tripped, l.Cordon, l.Rollback = maps.Clone(b.pins), b.paused, b.glass, b.tripped, b.cordon, nil
	l.begunAnew()
	return nil
}

// lose takes the plan and its history away together, with what people wrote beside them.
func (l *Life) lose() {
	l.Plan, l.History, l.memory, l.parts = nil, nil, memory.Memory{}, nil
	l.Pins, l.Paused, l.Glass, l.Tripped, l.Cordon, l.Rollback = nil, false, false, "", "", nil
	l.begunAnew()
}

// begunAnew has a new leader decide before anything is repaired.
func (l *Life) begunAnew() {
	l.given, l.nudged = map[string]bool{}, map[string]time.Time{}
	l.next = l.Now
	l.Counts["elections"]++
	l.Counts["begun anew"]++
}

// saves takes a backup.
func (l *luck) saves() error {
	if l.Plan == nil {
		return nil
	}
	b, err := l.backup()
	l.saved, l.later = &b, false
	l.note("a backup of plan %d, rollout %+v", b.plan.Revision, b.plan.Rollout)
	return err
}

// savesLater takes the one that is to be of the middle of a rollout.
func (l *luck) savesLater() error {
	if !l.later || l.Plan == nil || l.Plan.Rollout == nil {
		return nil
	}
	return l.saves()
}

// anew is when everything was put back or lost together, and how many replicas there were.
type anew struct {
	times    int // of Counts["begun anew"]
	at       time.Time
	replicas int
}

// soon is how long nothing is decided after that: ten votes take longer.
const soon = 8 * time.Minute

// begunAnew forgets what the leader forgot: what moved since the backup, and the plan of before. It stops no fleet that runs.
func (j *judge) begunAnew() {
	if n := j.Counts["begun anew"]; n != j.anew.times {
		j.anew = anew{n, j.Now, j.Replicas}
		j.before, j.receivers = nil, receivers{}
		j.budget = budget{counted: j.budget.counted, looked: j.budget.looked}
	}
	if stops := j.anew.replicas > 0 && j.Replicas == 0; stops && j.Now.Sub(j.anew.at) < soon {
		j.fail("%d replicas were stopped %s after the plan and its history were put back or lost", j.anew.replicas, j.Now.Sub(j.anew.at))
	}
}

// Package controller is the loop around the decision: it gathers what a cycle needs, writes what it decided, repairs
// what drifts from the plan, and tells people. The leader alone runs it.
package controller

import (
	"ballast/planner/controller/archive"
	"ballast/planner/controller/gather"
	"ballast/planner/controller/inforce"
	"ballast/planner/controller/repair"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/telemetry"
)

// Loop is the leader's work: a cycle at each interval and after changes, and, beside it, repairs as soon as something
// drifts. Neither waits for the other: a slow Prometheus must not put off a repair. What both know has locks of its
// own.
type Loop struct {
	wiring.Options
	changed, drifted signal

	looker  *gather.Looker
	plan    *inforce.Known
	panics  *panics
	repairs *repair.Repairs
	*health

	// What only the goroutine of Run touches.
	asker     *gather.Asker
	status    *publisher
	leading   bool
	phase     string   // of the cycle under way
	repaired  []string // clusters that repairs brought back, which this cycle counts
	memory    memory.Memory
	archive   *archive.Archive
	writes    *writer
	keyless   *keyless
	news      telemetry.News
	blocked   telemetry.BlockedNews
	onSecrets telemetry.SecretNews
}

// NewLoop makes a loop; Run starts it.
func NewLoop(options wiring.Options) *Loop {
	options.Emit = telemetry.PrintableEvents(options.Emit)
	l := &Loop{Options: options, changed: newSignal(), drifted: newSignal()}
	o := &l.Options
	l.looker, l.plan, l.panics = &gather.Looker{Options: o}, &inforce.Known{Options: o}, &panics{Options: o}
	l.repairs = repair.New(o, l.looker, l.plan, &l.onSecrets, l.drifted, l.panics.caught)
	l.archive = &archive.Archive{Options: o, Known: l.plan}
	l.asker, l.status, l.health = &gather.Asker{Options: o}, &publisher{Options: o}, &health{Options: o}
	l.keyless = &keyless{Options: o, looker: l.looker, plan: l.plan, repairs: l.repairs, archive: l.archive,
		drifted: l.drifted}
	l.writes = &writer{Options: o, plan: l.plan, archive: l.archive, keyless: l.keyless, changed: l.changed}
	return l
}

// Changed says that Secrets, the workload or the plan changed: repairs look at once, a cycle after a second of quiet.
func (l *Loop) Changed() {
	l.drifted.raise()
	l.changed.raise()
}

// ConfigChanged says that the configuration file has a new text: taken over, or refused with an error.
func (l *Loop) ConfigChanged(refused error) {
	l.Metrics.ConfigError.Set(telemetry.BoolGauge(refused != nil))
	if refused != nil {
		l.Emit(discover.Workload{}, telemetry.ConfigRefused(refused))
		return
	}
	l.changed.raise()
}

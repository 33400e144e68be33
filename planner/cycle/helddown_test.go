package cycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ballast/planner/plan"
)

// TestAPinThatWaitsForADeadReplicaNamesWhatCannotLeaveIt, with the mend: nothing but a person ends that wait.
func TestAPinThatWaitsForADeadReplicaNamesWhatCannotLeaveIt(t *testing.T) {
	for name, test := range map[string]struct {
		hold func(w *liveWorld, cluster string)
		says string // behind the wait; %q is the cluster
	}{
		"nothing holds them": {func(*liveWorld, string) {}, ""},
		"pinned there": {func(w *liveWorld, c string) { w.in.Pins[c] = 1 },
			"; %q cannot leave replica 1: it is pinned there: unpin it, or pin it to another"},
		"immutable": {func(w *liveWorld, c string) { w.secret(c).Immutable = true },
			"; %q cannot leave replica 1: its Secret cannot be written: make it anew"},
		"nobody can write it": {func(w *liveWorld, c string) { w.in.Barred = map[string]string{c: "a policy refuses it"} },
			"; %q cannot leave replica 1: its Secret cannot be written: a policy refuses it"},
		"a pin that is refused holds nothing": {func(w *liveWorld, c string) { w.in.Pins[c] = 99 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(40)...)
			pinned, cluster := w.on(0)[0], w.on(1)[0]
			w.in.Pins = plan.Pins{pinned: 5}
			test.hold(w, cluster)
			w.down[1] = true
			w.step(time.Minute)
			wait := fmt.Sprintf("PinWaits: %q is pinned to replica 5, and there are 3: "+
				"it waits until what is on a replica that does not work has left it", pinned)
			if test.says != "" {
				wait += fmt.Sprintf(test.says, cluster)
			}
			if !slices.Contains(messages(w.last), wait) {
				t.Errorf("people are told %q, want %q", messages(w.last), wait)
			}
		})
	}
}

// TestAPinThatWaitsUnderAFreezeNamesItsEnd: under one no failover empties the dead replica, for which the pin was said to wait.
func TestAPinThatWaitsUnderAFreezeNamesItsEnd(t *testing.T) {
	w := undecided(t, skewed(40)...)
	pinned := w.on(0)[0]
	w.in.Paused, w.in.Pins, w.down[1] = true, plan.Pins{pinned: 5}, true
	w.step(time.Minute)
	want := fmt.Sprintf("PinWaits: %q is pinned to replica 5, and there are 3: it waits while nothing scales (frozen, or stopped after a wave "+
		`that did harm): "ballast resume" ends that`, pinned)
	if !slices.Contains(messages(w.last), want) {
		t.Errorf("people are told %q, want among them %q", messages(w.last), want)
	}
}

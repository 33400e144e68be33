package cycle

import (
	"slices"
	"testing"
	"time"

	"ballast/planner/cycle/outcome"
	"ballast/planner/plan"
)

// TestAPinThatDoesNotHoldKeepsNoClusterOnADeadReplica: one beyond maxReplicas is refused, and one beyond the replicas that there are waits
// until what is on the dead replica has left it. Each cluster would be without an owner for good.
func TestAPinThatDoesNotHoldKeepsNoClusterOnADeadReplica(t *testing.T) {
	for name, test := range map[string]struct {
		pin  func(w *liveWorld, cluster string)
		told string // what people are told of the pin
		ends int    // the replica that it has in the end; -1: any that works
	}{
		"in data.pins, beyond maxReplicas":   {func(w *liveWorld, c string) { w.in.Pins = plan.Pins{c: 99} }, "partition/PinRefused/", -1},
		"by its Secret, beyond maxReplicas":  {func(w *liveWorld, c string) { w.secret(c).Pin = "99" }, "partition/PinRefused/", -1},
		"in data.pins, beyond the replicas":  {func(w *liveWorld, c string) { w.in.Pins = plan.Pins{c: 5} }, "partition/PinWaits/", 5},
		"by its Secret, beyond the replicas": {func(w *liveWorld, c string) { w.secret(c).Pin = "5" }, "partition/PinWaits/", 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 30)
			w.cycles(120, func(int) {}) // nothing that moved lately is to blame for the death
			cluster := w.on(2)[0]
			w.down[2] = true
			w.step(time.Minute)
			test.pin(w, cluster)
			out := w.step(time.Minute)
			if told := test.told + cluster; !slices.Contains(problems(out), told) {
				t.Errorf("people are told %v, want %s", problems(out), told)
			}
			w.until(t, "replica 2 is empty", 30*time.Minute, func(outcome.Outcome) bool { return len(w.on(2)) == 0 })
			for range 120 {
				if w.step(time.Minute); w.secret(cluster).Shard.N == 2 {
					t.Fatalf("%s is on the dead replica; %v", cluster, messages(w.last))
				}
			}
			if at := w.secret(cluster).Shard.N; test.ends >= 0 && at != test.ends {
				t.Errorf("%s is on replica %d, want %d; %v", cluster, at, test.ends, messages(w.last))
			}
		})
	}
}

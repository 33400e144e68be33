package cycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/explain"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// TestExplainSaysThatAPinDoesNotCount, why, and by what the replica is chosen instead.
func TestExplainSaysThatAPinDoesNotCount(t *testing.T) {
	tooHigh := "its pin to replica 99 is refused (maxReplicas is 16: pin it lower, or raise partition.maxReplicas); "
	chosen := "the partition chooses its replica, and the plan in force has it there"
	noPin := "Leave it: the partition relieves replica 0 by 2 moves of others."
	for name, test := range map[string]struct {
		pin     func(w *world, s *discover.Secret)
		because string
		answer  string
	}{
		"it holds": {func(w *world, _ *discover.Secret) { w.in.Pins = plan.Pins{"a": 0} }, "it is pinned to replica 0",
			"Leave it: it is pinned to replica 0."},
		"beyond maxReplicas": {func(w *world, _ *discover.Secret) { w.in.Pins = plan.Pins{"a": 99} },
			tooHigh + chosen, noPin},
		"by its Secret, beyond maxReplicas": {func(_ *world, s *discover.Secret) { s.Pin = "99" },
			tooHigh + chosen, noPin},
		"a line that is no number": {func(w *world, _ *discover.Secret) {
			w.in.Pins, w.in.PinProblems = people.ParsePins("b: 0\na: two\n", 0)
		}, "its pin in data.pins is refused (pins line 2: a: a replica is a whole number, like 3); " + chosen, noPin},
		"pins that are not YAML": {func(w *world, _ *discover.Secret) {
			w.in.Pins, w.in.PinProblems = people.ParsePins("a: [", 0)
		}, "a pin of it in data.pins counts for nothing " +
			"(pins line 1: is not YAML; write one `cluster-secret: replica` a line); " + chosen, noPin},
		"pinned twice": {func(w *world, _ *discover.Secret) {
			w.in.Pins, w.in.PinProblems = people.ParsePins("a: 0\na: 1\n", 0)
		}, "it is pinned to replica 0", "Leave it: it is pinned to replica 0."},
		"an annotation that is no number": {func(_ *world, s *discover.Secret) { s.Pin = discover.ParsePin("two", true) },
			`its pin is refused (the annotation ballast.argoproj.io/pin of Secret "a" ` +
				`is not a replica's number and is ignored: ` +
				`write digits only, as in "3", without zeros before them); ` + chosen, noPin},
		"its Secret opted out": {func(w *world, s *discover.Secret) { w.in.Pins, s.Unmanaged = plan.Pins{"a": 1}, true },
			"its pin to replica 1 is refused " +
				"(its Secret opted out of ballast by the annotation ballast.argoproj.io/unmanaged); " +
				"data.shard of its Secret decides, by which Argo CD has it on replica 0", ""},
		"nobody can write its Secret": {func(w *world, _ *discover.Secret) {
			w.in.Pins, w.in.Barred = plan.Pins{"a": 1}, map[string]string{"a": "a policy refuses it"}
		}, "its pin to replica 1 is refused (its Secret cannot be written: a policy refuses it); " +
			"data.shard of its Secret decides, by which Argo CD has it on replica 0", "Leave it: its Secret cannot be written."},
		"its Secret is immutable": {func(w *world, s *discover.Secret) {
			w.in.Pins, s.Immutable, s.Shard = plan.Pins{"a": 2}, true, discover.ShardValue{}
		}, "its pin to replica 2 is refused (its Secret cannot be written: make it anew, or take the pin away); " +
			"Argo CD's algorithm decides, by which it is on replica 1", "Leave it: its Secret cannot be written."},
		"it waits for Enforce": {func(w *world, _ *discover.Secret) {
			w.in.Pins, w.in.Config.Mode = plan.Pins{"a": 5}, plan.Hold
		}, `its pin to replica 5 waits ("a" is pinned to replica 5, and there are 3: ` +
			"it waits for mode Enforce, since Hold scales nothing); until then " + chosen,
			"Do not leave it: the partition has it on replica 5; the plan: nothing begins while the mode is Hold."},
		"it waits a day": {func(w *world, s *discover.Secret) {
			s.Pin, w.in.Memory.Changes.PinFailed = "5", w.in.Now.Add(-time.Hour)
		},
			"its pin to replica 5 waits (it waits until 2026-11-21T08:00:00Z, " +
				"since the last rollout that a Secret's pin asked for failed; " +
				"a pin in data.pins of the plan ConfigMap waits for nothing); until then " + chosen, noPin},
	} {
		t.Run(name, func(t *testing.T) {
			w := lopsided()
			w.cycle()
			test.pin(w, w.secret("a"))
			w.in.Now = w.in.Now.Add(time.Minute)
			in := w.in
			w.last = Run(in)
			e, err := explain.Cluster(in, w.last, "a")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.because, e.Because); diff != "" {
				t.Errorf("it is there, because (-want +got):\n%s", diff)
			}
			if m := e.Moving; m != nil && m.Answer != test.answer {
				t.Errorf("%q, want %q", m.Answer, test.answer)
			}
		})
	}
}

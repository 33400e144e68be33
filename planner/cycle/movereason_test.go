package cycle

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/plan"
)

// reasonsOf are the moves of a candidate with their reasons.
func reasonsOf(out outcome.Outcome) map[string]outcome.MoveReason {
	reasons := map[string]outcome.MoveReason{}
	for _, m := range out.Candidate.Moves {
		reasons[m.Cluster] = m.Reason
	}
	return reasons
}

func TestEachMoveHasItsReason(t *testing.T) {
	two := map[string]int{"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}
	for name, test := range map[string]struct {
		on       map[string]int
		labelled map[string][]string
		groups   []config.Group
		change   func(*world) // once the plan is in force
		want     map[string]outcome.MoveReason
	}{
		"kept apart: the second makes room": {
			on: two, labelled: map[string][]string{"a": {"hubs"}, "b": {"hubs"}, "c": {"hubs"}}, groups: []config.Group{apart("hubs")},
			want: map[string]outcome.MoveReason{"a": outcome.MoveApart, "e": outcome.MoveOverload}},
		"kept together: the others join": {
			on:       map[string]int{"a": 0, "b": 1, "c": 1, "d": 0, "e": 2, "f": 2},
			labelled: map[string][]string{"a": {"pay"}, "b": {"pay"}, "c": {"pay"}}, groups: []config.Group{together("pay")},
			want: map[string]outcome.MoveReason{"a": outcome.MoveTogether}},
		"too many clusters": {
			on:     map[string]int{"a": 0, "b": 0, "c": 0, "d": 1, "e": 2, "f": 2},
			change: func(w *world) { w.in.Config.Partition.MaxClustersPerReplica = 2 },
			want:   map[string]outcome.MoveReason{"a": outcome.MoveCapped}},
		"too much load": {
			on:   map[string]int{"a": 0, "b": 0, "c": 0, "d": 0, "e": 1, "f": 2},
			want: map[string]outcome.MoveReason{"a": outcome.MoveOverload, "d": outcome.MoveOverload}},
		"too much load that no few moves relieve": {
			on: two, change: func(w *world) { w.setLoad("a", 10); w.setLoad("b", 3) },
			want: map[string]outcome.MoveReason{"b": outcome.MoveLevelled}},
		"a replica without clusters, of a fixed number": {
			on:     map[string]int{"a": 0, "b": 0, "c": 0, "d": 1, "e": 1, "f": 1},
			change: func(w *world) { w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3} },
			want:   map[string]outcome.MoveReason{"a": outcome.MoveOverload, "d": outcome.MoveOverload}},
		"fewer replicas": {
			on: two, change: func(w *world) { w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 2} },
			want: map[string]outcome.MoveReason{"e": outcome.MoveGone, "f": outcome.MoveGone}},
		"dealt anew, without sticky": {
			on: map[string]int{"a": 0, "b": 0, "c": 0, "d": 1, "e": 1, "f": 2},
			change: func(w *world) {
				w.in.Config.Partition.Sticky, w.in.Config.Partition.LPT = nil, &config.LPT{}
			},
			want: map[string]outcome.MoveReason{"b": outcome.MoveLevelled, "c": outcome.MoveLevelled, "d": outcome.MoveLevelled}},
	} {
		t.Run(name, func(t *testing.T) {
			w := grouped(test.on, test.labelled, test.groups...)
			w.in.Config.Mode = plan.Observe
			w.cycle()
			if test.change != nil {
				test.change(w)
				w.run(1)
			}
			if diff := cmp.Diff(test.want, reasonsOf(w.last)); diff != "" {
				t.Errorf("(-want +got), moves %v of %v:\n%s", w.last.Candidate.Moves, w.rows(), diff)
			}
		})
	}
}

// Whatever moves does so for a reason of the closed set; only those that stay together with others go for their sake.
func TestEveryMoveHasAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		on, labelled := map[string]int{}, map[string][]string{}
		sets := rapid.SampledFrom([][]string{nil, {"hubs"}, {"pay"}})
		for i := range rapid.IntRange(1, 9).Draw(t, "clusters") {
			name := fmt.Sprintf("c%d", i)
			on[name], labelled[name] = rapid.IntRange(0, 3).Draw(t, "on"), sets.Draw(t, "labels")
		}
		w := grouped(on, labelled, apart("hubs"), together("pay"))
		w.cycle()
		for _, name := range slices.Sorted(maps.Keys(on)) {
			w.setLoad(name, float64(rapid.IntRange(0, 20).Draw(t, "load")))
		}
		if rapid.Bool().Draw(t, "pinned") {
			w.in.Pins = plan.Pins{"c0": rapid.IntRange(0, 3).Draw(t, "pin")}
		}
		w.run(1)
		if w.last.Candidate == nil {
			return
		}
		for _, m := range w.last.Candidate.Moves {
			if !slices.Contains(outcome.MoveReasons(), m.Reason) {
				t.Errorf("%+v has no reason of the closed set", m)
			}
			if alone := !slices.Contains(labelled[m.Cluster], "pay"); alone && m.Reason == outcome.MoveTogether {
				t.Errorf("%+v stays together with nothing", m)
			}
		}
	})
}

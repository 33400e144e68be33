package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/planner/diff"
	"ballast/planner/status"
)

// TestTheExitCodeSaysWhetherAPersonIsNeeded, and the error what for.
func TestTheExitCodeSaysWhetherAPersonIsNeeded(t *testing.T) {
	turns := func(kind status.Type, to status.State, reason status.ConditionReason) func(*fixture.World) {
		return func(w *fixture.World) { w.Turns(kind, to, reason, "why") }
	}
	for name, test := range map[string]struct {
		change func(*fixture.World)
		want   string // empty: all is well
	}{
		"a quiet fleet":                   {change: func(*fixture.World) {}},
		"one that only watches":           {change: turns(status.Enforced, status.False, status.Observing)},
		"a freeze":                        {change: turns(status.Planning, status.False, status.Paused)},
		"a hold-off":                      {change: turns(status.Planning, status.False, status.HeldOff)},
		"a rollout in its time":           {change: liveWave},
		"a webhook that nobody could ask": {change: turns(status.Enforced, status.Unknown, status.NotAsked)},
		"before the first word":           {change: func(w *fixture.World) { w.Said, w.Lease = nil, nil }},
		"a rollout that is late":          {liveGrows, "the rollout is past its deadline"},
		"a webhook that does not hold":    {turns(status.Enforced, status.False, status.NotHeld), "Enforced is False: NotHeld"},
		"break-glass":                     {turns(status.Enforced, status.False, status.BreakGlass), "Enforced is False: BreakGlass"},
		"metrics that nobody believes":    {turns(status.Planning, status.False, "LowCoverage"), "Planning is False: LowCoverage"},
		"an orphan":                       {turns(status.Degraded, status.True, status.Orphaned), "Degraded is True: Orphaned"},
		"a leader that is away":           {leaderIsAway, "no leader has looked for 3h"},
		"a leader whose clock is ahead":   {func(w *fixture.World) { w.Said.LookedAt = fixture.Noon.Add(time.Hour) }, "the leader's clock is 1h ahead of this machine's"},
		"a pin":                           {func(w *fixture.World) { w.Pins = "dev: x\n" }, "1 pin cannot be read"},
		"drift":                           {func(w *fixture.World) { w.Shards["dev"], w.Shards["lab"] = 1, 1 }, "2 differences from the plan"},
		"another installation":            {ownedByAnother, "another installation plans for this workload"},
		"two at once": {func(w *fixture.World) {
			w.Shards["dev"] = 1
			w.Turns(status.Planning, status.False, status.Tripped, "why")
		},
			"Planning is False: Tripped; 1 difference from the plan"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fixture.QuietWorld()
			test.change(w)
			s := look(t, w)
			got, code := "", 0
			if err := s.Needed(); err != nil {
				got, code = err.Error(), say.ExitCode(err)
			}
			want := 0
			if test.want != "" {
				want = 2
			}
			if diff := cmp.Diff(test.want, got); diff != "" || code != want {
				t.Errorf("exit code %d, want %d (-want +got):\n%s", code, want, diff)
			}
		})
	}
	s := (&observation{now: fixture.Noon.Add(time.Second)}).overview()
	if diff := cmp.Diff([]string{"there is no plan in force"}, s.Needs); diff != "" {
		t.Errorf("without a plan (-want +got):\n%s", diff)
	}
}

// TestASizeThatNoRunningPodCanBeGivenIsNoDifference: the leader found that the API server changes the size of none, and holds it.
func TestASizeThatNoRunningPodCanBeGivenIsNoDifference(t *testing.T) {
	for name, test := range map[string]struct {
		resizes     *bool
		sized, held int
	}{"resized": {ptr.To(true), 1, 0}, "not known": {nil, 1, 0}, "held": {ptr.To(false), 0, 1}} {
		w := fixture.QuietWorld()
		sizesAndOwners(w)
		w.Said.Resizes = test.resizes
		got, sized := look(t, w), 0
		for _, step := range got.Drift {
			if _, is := step.(diff.PatchPod); is {
				sized++
			}
		}
		if sized != test.sized || len(got.Held) != test.held {
			t.Errorf("%s: pods to be resized: %d, held: %q; want %d and %d", name, sized, got.Held, test.sized, test.held)
		}
	}
}

package changerules

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"ballast/planner/change"
	"ballast/planner/config"
)

func TestRulesSayWhatIsConfigured(t *testing.T) {
	paces, pace := []config.Pace{{Replicas: 2, Percent: 30, Period: config.Duration(time.Hour)}}, []change.Pace{{Count: 2, Percent: 30, Period: time.Hour}}
	timing := config.Timing{Mode: change.Maintenance, Cooldown: config.Duration(time.Minute), Windows: []config.Window{{Begin: "no time", End: "02:00"}}}
	c := config.PlannerConfig{Change: config.Change{Moves: config.Moves{Timing: timing},
		Up: config.Resizing{Timing: timing, StabilizationWindow: config.Duration(time.Second), Rate: paces,
			MinChange: &config.SizeSteps{CPU: &config.SizeStep{Value: "1500m", Percentage: 20}}},
		Out: config.Scaling{Timing: timing, MinChange: &config.CountStep{Value: 3, Percentage: 40}, Rate: paces},
		In:  config.Scaling{StabilizationWindow: ptr.To(config.Duration(time.Hour))},
	}}
	weighed := c
	weighed.Size.Weights, weighed.Change.In.StabilizationWindow = []config.WeightInterval{{From: "0"}}, nil
	sticky := weighed
	sticky.Partition.Sticky = &config.Sticky{DownWindow: config.Duration(5 * time.Minute)}
	base := change.Policy{Mode: change.Maintenance, Cooldown: time.Minute} // what is no window is left out
	up, memory, down, out := base, base, change.Policy{MinChange: change.MinChange{Percent: ptr.To(10)}}, base
	up.Stabilization, up.Rate, up.MinChange = time.Second, pace, change.MinChange{Value: ptr.To(int64(1500)), Percent: ptr.To(20)}
	memory.Stabilization, memory.Rate, memory.MinChange = time.Second, pace, change.MinChange{Percent: ptr.To(10)}
	out.Rate, out.MinChange = pace, change.MinChange{Value: ptr.To(int64(3)), Percent: ptr.To(40)}
	for name, tc := range map[string]struct{ got, want change.Rules }{
		"moves":                             {OfMoves(c.Change), change.Rules{Moves: base}},
		"a size by its step":                {OfSize(c.Change, "cpu"), change.Rules{Up: up, Down: down}},
		"a size without one: a tenth":       {OfSize(c.Change, "memory"), change.Rules{Up: memory, Down: down}},
		"the number by its window":          {OfCount(c), change.Rules{Out: out, In: change.Policy{Stabilization: time.Hour}}},
		"the number by weights":             {OfCount(weighed), change.Rules{Out: out, In: change.Policy{Stabilization: 30 * time.Minute}}},
		"the number by weights, and sticky": {OfCount(sticky), change.Rules{Out: out, In: change.Policy{Stabilization: 5 * time.Minute}}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

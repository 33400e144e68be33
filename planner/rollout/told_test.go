package rollout

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/observed/fixture"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// told is an answer of Begin or Advance in one line: what it did, what the plan holds then, and why.
func told(p plan.Plan, progress Progress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", progress.Outcome)
	if r := p.Rollout; r != nil {
		fmt.Fprintf(&b, " %s", r.Stage)
		if r.Wave > 0 {
			fmt.Fprintf(&b, " %d/%d", r.Wave, r.Waves)
		}
	}
	fmt.Fprintf(&b, " %d/%d", p.Replicas, p.ControllerReplicas)
	shards := map[string]int{}
	for name, row := range p.Clusters {
		shards[name] = row.Replica
	}
	fmt.Fprintf(&b, " rows %s", listed(shards))
	if r := p.Rollout; r != nil && len(r.Moves)+len(r.Was) > 0 {
		fmt.Fprintf(&b, " moves %s was %s", listed(r.Moves), listed(r.Was))
	}
	if progress.Why != "" {
		fmt.Fprintf(&b, "; %s", progress.Why)
	}
	return b.String()
}

func listed(shards map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(shards)) {
		parts = append(parts, fmt.Sprintf("%s%d", name, shards[name]))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

type shards = fixture.Shards

// The fleets and plans of the cases.
var (
	start                       = fixture.Start
	two, three                  = fixture.Two, fixture.Three
	old, grown                  = fixture.Old, fixture.Grown
	shrunken, before            = fixture.Shrunken, fixture.Before
	ptr, rows, newPlan          = fixture.Ptr, fixture.Rows, fixture.Plan
	standing, carried, fit, but = fixture.Standing, fixture.Carried, fixture.Fit, fixture.But
	stands, none                = fixture.Stands, fixture.None
	during, inWave, moved       = fixture.During, fixture.Wave, fixture.Moved
	growing, shrinking, stopped = fixture.Growing, fixture.Shrinking, fixture.Stopped
)

type liveCase struct {
	plan   plan.Plan
	pins   plan.Pins
	seen   observed.State
	target shards
	budget int // 0 = no limit, -1 = none
	late   bool
	ends   string
	closed map[int]bool
	unwell map[int]bool
	person bool // who asked for it
	rescue bool
	want   string
}

func (c liveCase) run(t *testing.T) {
	t.Helper()
	o := basis.Options{Mode: plan.ModeLive, StageTimeout: 10 * time.Minute, MaxMovesPerWave: 5, Budget: c.budget, EndsBecause: c.ends, Closed: c.closed, Unwell: c.unwell, Insists: c.person, Rescue: c.rescue}
	switch c.budget {
	case 0:
		o.Budget = math.MaxInt
	case -1:
		o.Budget = 0
	}
	at := start.Add(9 * time.Minute)
	if c.late {
		at = start.Add(10 * time.Minute)
	}
	p, progress := Advance(plan.NewView(c.plan, c.pins), c.seen, c.target, o, at)
	if diff := cmp.Diff(c.want, told(p, progress)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

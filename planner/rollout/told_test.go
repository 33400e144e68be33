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
	"ballast/planner/plan"
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

// fit is a fleet in which all is well: every pod ready, every Secret with its shard, every cluster with its one owner.
func fit(replicas, env int, shards map[string]int) observed.State {
	s := observed.State{Workload: standing(replicas, ptr(env)), Asked: true, Owned: map[string]observed.Owned{}}
	for _, name := range slices.Sorted(maps.Keys(shards)) {
		stamp := carried(name, shards[name])
		stamp.Server = "https://" + name
		s.Secrets = append(s.Secrets, stamp)
		s.Owned[name] = observed.Owned{Owners: []int{shards[name]}, Live: []int{shards[name]}}
	}
	for i := range replicas {
		s.Pods = append(s.Pods, observed.Pod{Replica: i, Ready: true, Claimed: true, Memory: 100 << 20, MemoryLimit: 1 << 30})
	}
	return s
}

// but is a fleet in which something is not as it should be.
func but(s observed.State, change func(*observed.State)) observed.State {
	change(&s)
	return s
}

// during is a live rollout of a:0 b:1 c:1 in the middle of a stage.
func during(from, to plan.Count, stage plan.Stage, shards map[string]int, change func(*plan.Plan)) plan.Plan {
	p := newPlan(from.Replicas, to.ControllerReplicas, shards)
	p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: stage, Since: start, From: from, Replicas: to.Replicas, ControllerReplicas: to.ControllerReplicas}
	if change != nil {
		change(&p)
	}
	return p
}

func wave(p *plan.Plan, moves, was map[string]int) {
	p.Rollout.Wave, p.Rollout.Waves, p.Rollout.Moves, p.Rollout.Was = 1, 1, moves, was
}

type shards = map[string]int

var (
	two, three = plan.Count{Replicas: 2, ControllerReplicas: 16}, plan.Count{Replicas: 3, ControllerReplicas: 16}
	old        = shards{"a": 0, "b": 1, "c": 1}
	grown      = shards{"a": 0, "b": 2, "c": 1}
	shrunken   = shards{"a": 0, "b": 1, "c": 0}
	before     = shards{"a": 0, "b": 1, "c": 2} // of shrinking
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
	o := Options{Mode: plan.ModeLive, StageTimeout: 10 * time.Minute, MaxMovesPerWave: 5, Budget: c.budget, Ends: c.ends, Closed: c.closed, Unwell: c.unwell, Insists: c.person, Rescue: c.rescue}
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

func growing(stage plan.Stage, change func(*plan.Plan)) plan.Plan {
	return during(two, three, stage, old, func(p *plan.Plan) {
		p.Replicas = 3
		if change != nil {
			change(p)
		}
	})
}

func shrinking(stage plan.Stage, rows shards, change func(*plan.Plan)) plan.Plan {
	return during(three, two, stage, rows, change)
}

// moved is the growing rollout in its one wave: b goes from 1 to 2.
func moved(p *plan.Plan) {
	p.Clusters = rows(grown)
	wave(p, shards{"b": 2}, shards{"b": 1})
}

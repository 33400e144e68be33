package transitions

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/rollout"
	"ballast/planner/rollout/basis"
)

// life is a fleet under ballast: transition after transition.
type life struct {
	*fleet
	plan     plan.Plan
	pins     plan.Pins
	o        basis.Options
	now      time.Time
	target   map[string]int // where the rollout goes; nil: the leader died, and the next one does not know
	past     observed.State
	constant bool // the environment is what mode live holds it at
	made     int  // Secrets that were created on the way
}

// cycle is one of the planner's: look, advance, write the plan, write what differs, one thing at a time. What is seen may be
// a cycle old, the plan's write may be lost, and any other write refused.
func (l *life) cycle() {
	l.know()
	seen := l.seen()
	if l.past.Workload != nil && l.oneIn(6, "stale") {
		seen = l.past
	}
	l.past = l.seen()
	next, progress := rollout.Advance(plan.NewView(l.plan, l.pins), seen, l.target, l.o, l.now)
	if !l.oneIn(6, "lost") && !next.SameEnforced(l.plan) {
		l.plan = l.stored(next)
		l.figures.outcomes[progress.Outcome]++
	}
	steps := diff.Between(plan.NewView(l.plan, l.pins), seen, diff.Options{Nudge: true}).Steps
	if len(steps) > 1 {
		steps = rapid.Permutation(steps).Draw(l.T, "order")
	}
	for _, step := range steps {
		if !l.oneIn(8, "refused") {
			l.do(step)
		}
		l.meanwhile(0, 2)
	}
	l.meanwhile(2, 16)
	l.now = l.now.Add(time.Duration(rapid.IntRange(5, 25).Draw(l.T, "seconds")) * time.Second)
}

func (l *life) do(step diff.Step) {
	switch s := step.(type) {
	case diff.PatchShard:
		if !l.secrets[s.Secret].stands().gone { // it may have gone since it was seen
			l.write(s.Secret, s.Shard)
			l.ask(step.String())
		}
	case diff.PatchWorkload:
		if s.ControllerReplicas != nil && l.constant {
			l.Fatalf("%s, though mode live holds the environment at %d", s, l.env)
		}
		if s.Replicas != nil {
			l.leaving = l.plan.Rollout != nil && l.plan.Rollout.Stage == plan.Shrinking
		}
		l.patch(s)
	case diff.Nudge:
		l.apps.nudged[s.Cluster] = s.Shard
	}
}

// meanwhile is what happens between two writes: so many things.
func (f *fleet) meanwhile(least, most int) {
	for range rapid.IntRange(least, most).Draw(f.T, "events") {
		if f.oneIn(3, "act") || !f.deliverAny() {
			f.act()
		}
	}
}

func (f *fleet) deliverAny() bool {
	pending := f.pending()
	if len(pending) == 0 {
		return false
	}
	f.deliver(pending[rapid.IntRange(0, len(pending)-1).Draw(f.T, "seen")])
	return true
}

func (f *fleet) oneIn(n int, label string) bool {
	return rapid.IntRange(1, n).Draw(f.T, label) == n
}

// stored sends the plan through its document, as the next leader reads it.
func (l *life) stored(p plan.Plan) plan.Plan {
	text, err := codec.Encode(p)
	if err != nil {
		l.Fatal(err)
	}
	if p, err = codec.Decode(text); err != nil {
		l.Fatal(err)
	}
	return p
}

// know is what the planner does before it advances: a new Secret has a row, one that opted out none, a pin that holds is one.
func (l *life) know() {
	p, v := l.plan.Clone(), plan.NewView(l.plan, l.pins)
	arrivals := placement.NewArrivals(v)
	for _, name := range l.names() {
		stamp := l.secrets[name].stamp
		row, known := p.Clusters[name]
		if stamp.Unmanaged {
			delete(p.Clusters, name)
			continue
		}
		if !known {
			row = plan.Row{Replica: arrivals.Place(stamp.Server, stamp.Shard, nil), Server: plan.ServerHash(stamp.Server)}
		}
		if replica, why, _ := v.Effective(name); why == plan.Pinned {
			row.Replica = replica
		}
		p.Clusters[name] = row
	}
	if !p.SameEnforced(l.plan) {
		l.plan = l.stored(p)
	}
}

// settled reports whether the plan holds, every pod is up, and has seen all.
func (l *life) settled() bool {
	if l.plan.Rollout != nil || len(l.pending()) > 0 || l.replicas != l.plan.Replicas || len(l.pods) != l.replicas {
		return false
	}
	up := func(p *pod) bool { return p.runs && p.ready && p.generation == l.generation }
	if slices.ContainsFunc(l.pods, func(p *pod) bool { return !up(p) }) {
		return false
	}
	agenda := diff.Between(plan.NewView(l.plan, l.pins), l.seen(), diff.Options{})
	return len(agenda.Steps) == 0 && len(agenda.Held) == 0
}

// forgetRows drops those of clusters that are gone, as the planner does after an hour.
func (l *life) forgetRows() {
	maps.DeleteFunc(l.plan.Clusters, func(name string, _ plan.Row) bool { return l.secrets[name].stands().gone })
}

// forget drops what every pod has seen go.
func (l *life) forget() {
	for name, s := range l.secrets {
		if s.stands().gone {
			delete(l.secrets, name)
			for _, p := range l.pods {
				delete(p.sees, name)
			}
		}
	}
}

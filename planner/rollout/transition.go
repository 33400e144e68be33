package rollout

import (
	"fmt"
	"maps"
	"time"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// transition is one call of Advance: the ground that it stands on, what changes the plan and answers questions there, and what it
// answers itself. The stages of the modes are restarts', live's and x0y's.
type transition struct {
	*ground
	rows     layout
	answers  answers
	waves    chooser
	progress Progress
}

func newTransition(g ground) *transition {
	rows, said := layout{&g}, answers{&g}
	return &transition{ground: &g, rows: rows, answers: said, waves: chooser{&g, rows, said}}
}

// ground is what a stage stands on: what Advance was given, and the plan as it is by now.
type ground struct {
	v        *plan.View
	p        plan.Plan
	seen     observed.State
	target   map[string]int
	o        Options
	at       time.Time
	beside   *placement.Servers // what stays together; made when it is asked for
	disputes map[string]bool    // by Secret; made when it is asked for
}

// together is what a cluster has in common with those that it stays together with, by the Secrets that are seen.
func (g *ground) together(name string) string {
	return g.groups().Of(name, g.hash(name))
}

// servers is how many servers the plan's clusters have.
func (g *ground) servers() int { return g.groups().Count(maps.Keys(g.p.Clusters), g.hash) }

func (g *ground) hash(name string) string { return g.p.Clusters[name].Server }

func (g *ground) groups() *placement.Servers {
	if g.beside == nil {
		g.beside = placement.NewServers(len(g.seen.Secrets))
		for _, s := range g.seen.Secrets {
			switch {
			case s.Alone:
				g.beside.Add(s.Name, "")
			case s.Server != "":
				g.beside.Add(s.Name, s.Server)
				if s.Bound != "" {
					g.beside.Bind(s.Server, s.Bound)
				}
			}
		}
	}
	return g.beside
}

func (t *transition) wait(why string) { t.progress.Why = "waiting: " + why }

// enter begins a stage, or the same one anew, with a deadline of its own.
func (t *transition) enter(stage plan.Stage, outcome Outcome, why string) {
	r := t.p.Rollout
	r.Stage, r.Since = stage, t.at.UTC().Truncate(time.Second)
	t.progress.Outcome, t.progress.Why = outcome, why
}

func (t *transition) end(outcome Outcome, why string) {
	t.p.Rollout = nil
	t.progress.Outcome, t.progress.Why = outcome, why
}

// hold makes a count the one that is in force.
func (t *transition) hold(c plan.Count) {
	t.p.Replicas, t.p.ControllerReplicas = c.Replicas, c.ControllerReplicas
}

// late words a reason for what is done at a stage's deadline.
func (t *transition) late(why string) string {
	return fmt.Sprintf("not done after %s: %s", t.deadline(), why)
}

// deadline is how long the stage may take.
func (t *transition) deadline() time.Duration { return deadline(*t.p.Rollout, t.o) }

// elapsed is how long the stage has lasted; a deadline that passed counts as that.
func (t *transition) elapsed() time.Duration { return t.deadline() - max(t.progress.Left, 0) }

// replaced reports whether the workload is as the plan holds it, every pod at the newest template and ready. Replicas
// that people hold count as they are, where the stage asks for no others.
func (t *transition) replaced() (bool, string) {
	p, w := t.held(), t.seen.Workload
	if r := p.Rollout; w != nil && p.FreeReplicas && r.Mode == plan.ModeLive && p.Replicas == r.From.Replicas {
		p.Replicas = w.Replicas
	}
	done := w.Settled(p) && (!p.Restarts() || w.RestartedSince(p.Rollout.Since, t.at))
	if kept := t.kept(); !done && kept != "" {
		return false, kept
	}
	return done, replicasSeen(p, w)
}

// held is the plan, with as many replicas as people have where those are more than it may ever have: nothing waits for
// them to go.
func (g *ground) held() plan.Plan {
	p := g.p
	beyond := p.FreeReplicas && p.Rollout.Mode != plan.ModeX0Y && g.seen.Workload.Count().Replicas > p.MaxReplicas
	if beyond && p.Replicas == p.MaxReplicas {
		p.Replicas = g.seen.Workload.Replicas
	}
	return p
}

// kept says what keeps a workload from being made smaller.
func (g *ground) kept() string {
	w := g.seen.Workload
	if g.p.FreeReplicas || w == nil || w.Replicas <= g.p.Replicas {
		return ""
	}
	next := plan.Count{Replicas: g.p.Replicas, ControllerReplicas: g.p.ControllerReplicas}.Reach(g.p.Target.Kind)
	now := w.Count().Reach(g.p.Target.Kind)
	stray := strays(g.seen, next, now)
	switch unseen := next < now && g.seen.Blind(g.p); {
	case w.Unmanaged:
		return fmt.Sprintf("the workload is annotated as unmanaged, and stays at %d replicas", w.Replicas)
	case unseen || len(stray) > 0:
		return fmt.Sprintf("the workload is not made smaller while %s", waitsFor(nil, stray, unseen))
	}
	return fmt.Sprintf("the workload still asks for %d replicas", w.Replicas)
}

// setRow gives a cluster a replica; whether that is a person's pin goes with it.
func (l layout) setRow(name string, replica int) {
	row := l.p.Clusters[name]
	pin, pinned := l.v.Pin(name)
	row.Replica, row.Pinned = replica, pinned && pin == replica
	l.p.Clusters[name] = row
}

package rollout

import (
	"fmt"
	"maps"
	"time"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// transition is one call of Advance in the modes live and x0y: what it was given, the plan it changes, and what it
// answers.
type transition struct {
	v        *plan.View
	p        plan.Plan
	seen     observed.State
	target   map[string]int
	o        Options
	at       time.Time
	progress Progress
	beside   *placement.Servers // what stays together; made when it is asked for
	disputes map[string]bool    // by Secret; made when it is asked for
}

// together is what a cluster has in common with those that it stays together with, by the Secrets that are seen.
func (t *transition) together(name string) string {
	return t.groups().Of(name, t.hash(name))
}

// servers is how many servers the plan's clusters have.
func (t *transition) servers() int { return t.groups().Count(maps.Keys(t.p.Clusters), t.hash) }

func (t *transition) hash(name string) string { return t.p.Clusters[name].Server }

func (t *transition) groups() *placement.Servers {
	if t.beside == nil {
		t.beside = placement.NewServers(len(t.seen.Secrets))
		for _, s := range t.seen.Secrets {
			switch {
			case s.Alone:
				t.beside.Add(s.Name, "")
			case s.Server != "":
				t.beside.Add(s.Name, s.Server)
				if s.Bound != "" {
					t.beside.Bind(s.Server, s.Bound)
				}
			}
		}
	}
	return t.beside
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
	done := w.Settled(p) && (!p.Restarts() || w.RestartedSince(p.Rollout.Since))
	if kept := t.kept(); !done && kept != "" {
		return false, kept
	}
	return done, replicasSeen(p, w)
}

// held is the plan, with as many replicas as people have where those are more than it may ever have: nothing waits for
// them to go.
func (t *transition) held() plan.Plan {
	p := t.p
	beyond := p.FreeReplicas && p.Rollout.Mode != plan.ModeX0Y && t.seen.Workload.Count().Replicas > p.MaxReplicas
	if beyond && p.Replicas == p.MaxReplicas {
		p.Replicas = t.seen.Workload.Replicas
	}
	return p
}

// kept says what keeps a workload from being made smaller.
func (t *transition) kept() string {
	w := t.seen.Workload
	if t.p.FreeReplicas || w == nil || w.Replicas <= t.p.Replicas {
		return ""
	}
	next := plan.Count{Replicas: t.p.Replicas, ControllerReplicas: t.p.ControllerReplicas}.Reach(t.p.Target.Kind)
	now := w.Count().Reach(t.p.Target.Kind)
	stray := strays(t.seen, next, now)
	switch unseen := next < now && t.seen.Blind(t.p); {
	case w.Unmanaged:
		return fmt.Sprintf("the workload is annotated as unmanaged, and stays at %d replicas", w.Replicas)
	case unseen || len(stray) > 0:
		return fmt.Sprintf("the workload is not made smaller while %s", waitsFor(nil, stray, unseen))
	}
	return fmt.Sprintf("the workload still asks for %d replicas", w.Replicas)
}

// setRow gives a cluster a replica; whether that is a person's pin goes with it.
func (t *transition) setRow(name string, replica int) {
	row := t.p.Clusters[name]
	pin, pinned := t.v.Pin(name)
	row.Replica, row.Pinned = replica, pinned && pin == replica
	t.p.Clusters[name] = row
}

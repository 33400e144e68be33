package rollout

import (
	"cmp"
	"fmt"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/answers"
	"ballast/planner/rollout/basis"
	"ballast/planner/rollout/layout"
	"ballast/planner/rollout/wave"
)

// transition is one call of Advance: the ground that it stands on, what changes the plan and answers questions there,
// and what it answers itself. The stages of the modes are restarts', live's and x0y's.
type transition struct {
	*basis.Basis
	rows     layout.Layout
	answers  answers.Answers
	waves    wave.Chooser
	progress Progress
}

func newTransition(g basis.Basis) *transition {
	rows, said := layout.Layout{Basis: &g}, answers.Answers{Basis: &g}
	return &transition{Basis: &g, rows: rows, answers: said, waves: wave.Chooser{Basis: &g, Rows: rows, Answers: said}}
}

func (t *transition) wait(why string) { t.progress.Why = "waiting: " + why }

// enter begins a stage, or the same one anew, with a deadline of its own.
func (t *transition) enter(stage plan.Stage, outcome Outcome, why string) {
	r := t.Plan.Rollout
	r.Stage, r.Since = stage, t.At.UTC().Truncate(time.Second)
	t.progress.Outcome, t.progress.Why = outcome, why
}

func (t *transition) end(outcome Outcome, why string) {
	t.Plan.Rollout = nil
	t.progress.Outcome, t.progress.Why = outcome, why
}

// hold makes a count the one that is in force.
func (t *transition) hold(c plan.Count) {
	t.Plan.Replicas, t.Plan.ControllerReplicas = c.Replicas, c.ControllerReplicas
}

// late words a reason for what is done at a stage's deadline.
func (t *transition) late(why string) string {
	return fmt.Sprintf("not done after %s: %s", t.deadline(), why)
}

// deadline is how long the stage may take.
func (t *transition) deadline() time.Duration { return deadline(*t.Plan.Rollout, t.Options) }

// elapsed is how long the stage has lasted; a deadline that passed counts as that.
func (t *transition) elapsed() time.Duration { return t.deadline() - max(t.progress.Left, 0) }

// replaced reports whether the workload is as the plan holds it, every pod at the newest template and ready. Replicas
// that people hold count as they are, where the stage asks for no others.
func (t *transition) replaced() (bool, string) {
	p, w := t.Held(), t.Seen.Workload
	if r := p.Rollout; w != nil && p.FreeReplicas && r.Mode == plan.ModeLive && p.Replicas == r.From.Replicas {
		p.Replicas = w.Replicas
	}
	done := w.Settled(p) && (!p.Restarts() || w.RestartedSince(p.Rollout.Since, t.At))
	if kept := t.Kept(); !done && kept != "" {
		return false, kept
	}
	return done, replicasSeen(p, w)
}

// defaultDrain is how long pods may take to stop where nobody said: their grace period is 30 s, and a node that is gone
// holds its pods for 5 minutes.
const defaultDrain = 5 * time.Minute

// deadline is how long a stage may take.
func deadline(r plan.Rollout, o basis.Options) time.Duration {
	if r.Stage == plan.Draining {
		return cmp.Or(o.DrainTimeout, defaultDrain)
	}
	return o.StageTimeout
}

func replicasSeen(p plan.Plan, w *observed.Workload) string {
	if w == nil {
		return "the workload was not found"
	}
	text := fmt.Sprintf("of %d replicas %d are updated and %d ready", p.Replicas, min(w.Updated, p.Replicas),
		min(w.Ready, p.Replicas))
	if rest := w.Current - p.Replicas; rest > 0 && !p.FreeReplicas {
		return fmt.Sprintf("%s; still there and to go: %d", text, rest)
	}
	return text
}

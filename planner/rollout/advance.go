package rollout

import (
	"cmp"
	"fmt"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// Outcome says what Advance did. The set is closed.
type Outcome string

// The outcomes.
const (
	Idle       Outcome = "Idle"       // no rollout is under way
	Waiting    Outcome = "Waiting"    // the stage goes on
	Advanced   Outcome = "Advanced"   // the next stage begins
	Finished   Outcome = "Finished"   // the plan holds as wanted
	TurnedBack Outcome = "TurnedBack" // the stage passed its deadline, and the way back begins
	Reverted   Outcome = "Reverted"   // the way back ended: the count is what it was
	GaveUp     Outcome = "GaveUp"     // the rollout ended where it was
)

// Progress is what Advance did, for events, logs and metrics. Stage is the one that was under way; Why is a sentence
// for people; Left is the time until its deadline; Late says that it had passed. An Outcome but Idle and Waiting means
// that the plan changed and is to be written; with Waiting it may have, for a cluster that appeared meanwhile.
type Progress struct {
	Outcome Outcome       `json:"outcome"`
	Stage   plan.Stage    `json:"stage,omitempty"`
	Why     string        `json:"why,omitempty"`
	Left    time.Duration `json:"left,omitempty"`
	Late    bool          `json:"late,omitempty"`
}

// Advance answers the plan that holds next. It is a function of the plan and of what stands: called again, or by
// another leader after a crash, it answers the same. The doc of the package has its table. target is where a rollout in
// mode live goes, a replica for each cluster; nil = nobody knows any more: then what is under way ends safely.
func Advance(v *plan.View, seen observed.State, target map[string]int, o basis.Options, at time.Time) (plan.Plan, Progress) {
	p := v.Plan.Clone()
	if p.Rollout == nil {
		return p, Progress{Outcome: Idle}
	}
	progress := Progress{Outcome: Waiting, Stage: p.Rollout.Stage}
	if frozen(p) {
		progress.Why = fmt.Sprintf("the mode is %s, so the rollout stays where it is", p.Mode)
		return p, progress
	}
	elapsed, most := max(at.Sub(p.Rollout.Since), 0), deadline(*p.Rollout, o)
	progress.Left = max(most-elapsed, 0)
	progress.Late = elapsed >= most
	t := newTransition(basis.Basis{View: v, Plan: p, Seen: seen, Target: target, Options: o, At: at})
	t.progress = progress
	t.run()
	return t.Plan, t.progress
}

// frozen reports whether the mode stops a rollout where it is: Hold lets x0y go on, which may have stopped the
// workload.
func frozen(p plan.Plan) bool {
	return !p.Mode.Enforced() || p.Mode == plan.Hold && p.Rollout.Mode != plan.ModeX0Y
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

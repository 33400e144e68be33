package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ballast/planner/plan"
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

// Progress is what Advance did, for events, logs and metrics. Stage is the one that was under way; Why is a sentence for
// people; Left is the time until its deadline; Late says that it had passed. An Outcome but Idle and Waiting means that
// the plan changed and is to be written; with Waiting it may have, for a cluster that appeared meanwhile.
type Progress struct {
	Outcome Outcome       `json:"outcome"`
	Stage   plan.Stage    `json:"stage,omitempty"`
	Why     string        `json:"why,omitempty"`
	Left    time.Duration `json:"left,omitempty"`
	Late    bool          `json:"late,omitempty"`
}

// Advance answers the plan that holds next. It is a function of the plan and of what stands: called again, or by another
// leader after a crash, it answers the same. The doc of the package has its table. target is where a rollout in mode live
// goes, a replica for each cluster; nil = nobody knows any more: then what is under way ends safely.
func Advance(v *plan.View, seen Seen, target map[string]int, o Options, at time.Time) (plan.Plan, Progress) {
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
	switch t := (turn{v: v, p: p, seen: seen, target: target, o: o, at: at, progress: progress}); p.Rollout.Mode {
	case plan.ModeLive:
		return t.live()
	case plan.ModeX0Y:
		return t.x0y()
	case plan.ModeDefault:
	default:
		return unknown(p, progress)
	}
	switch p.Rollout.Stage {
	case plan.Assigning:
		return assigning(v, p, seen, o, at, progress)
	case plan.Scaling, plan.Restarting, plan.Reverting:
		return replacing(p, seen, o, at, progress)
	}
	return unknown(p, progress)
}

// frozen reports whether the mode stops a rollout where it is: Hold lets x0y go on, which may have stopped the workload.
func frozen(p plan.Plan) bool {
	return !p.Mode.Enforced() || p.Mode == plan.Hold && p.Rollout.Mode != plan.ModeX0Y
}

// defaultDrain is how long pods may take to stop where nobody said: their grace period is 30 s, and a node that is gone
// holds its pods for 5 minutes.
const defaultDrain = 5 * time.Minute

// deadline is how long a stage may take.
func deadline(r plan.Rollout, o Options) time.Duration {
	if r.Stage == plan.Draining {
		return cmp.Or(o.DrainTimeout, defaultDrain)
	}
	return o.StageTimeout
}

// unknown ends a rollout that another version began: what the plan holds is what stands, but for a workload at 0.
func unknown(p plan.Plan, progress Progress) (plan.Plan, Progress) {
	progress.Outcome = GaveUp
	progress.Why = fmt.Sprintf("this version knows no rollout in mode %q with stage %q", p.Rollout.Mode, p.Rollout.Stage)
	return Abandon(p), progress
}

// assigning waits until every managed Secret carries its replica and, before the workload shrinks, until no Secret at all
// carries one that goes.
func assigning(v *plan.View, p plan.Plan, seen Seen, o Options, at time.Time, progress Progress) (plan.Plan, Progress) {
	behind := laggards(v, seen)
	var stray []string
	if shrinks(p) {
		limit := reach(p.Target.Kind, target(p.Rollout))
		t := turn{v: v, p: p, seen: seen, o: o}
		t.settleBelow(limit)
		stray = strays(seen, limit, present(p, seen, limit, reach(p.Target.Kind, p.Rollout.From)))
	}
	unseen := !o.Rescue && blind(p, seen) || o.Partial && shrinks(p)
	switch {
	case len(behind) == 0 && len(stray) == 0 && !unseen && v.Plan.SameEnforced(p):
		return next(p, seen, o, at, progress, "every cluster Secret carries its replica")
	case !progress.Late:
		progress.Why = waitsFor(behind, stray, unseen)
		return p, progress
	case shrinks(p) && (len(stray) > 0 || unseen):
		progress.Outcome = GaveUp
		progress.Why = fmt.Sprintf("the workload stays at %d replicas after %s: %s", p.Replicas, o.StageTimeout, waitsFor(behind, stray, unseen))
		p.Rollout = nil
		return p, progress
	}
	return next(p, seen, o, at, progress, fmt.Sprintf("going on after %s, though %s", o.StageTimeout, waitsFor(behind, stray, unseen)))
}

// present is below which shard a replica is there that may have what carries it: one that people took away is gone, whoever carries it.
func present(p plan.Plan, seen Seen, limit, from int) int {
	if !p.FreeReplicas {
		return from
	}
	return min(from, max(limit, seen.Workload.count().Replicas))
}

// replacing waits until every pod runs the newest template and is ready.
func replacing(p plan.Plan, seen Seen, o Options, at time.Time, progress Progress) (plan.Plan, Progress) {
	done := seen.Workload.settled(p) && (!restarts(p) || seen.Workload.restartedSince(p.Rollout.Since))
	why := replicasSeen(p, seen.Workload)
	if !done && !progress.Late {
		progress.Why = "waiting: " + why
		return p, progress
	}
	if !done {
		why = fmt.Sprintf("not done after %s: %s", o.StageTimeout, why)
	}
	switch p.Rollout.Stage {
	case plan.Reverting:
		progress.Outcome, progress.Why, p.Rollout = Reverted, why, nil
		return p, progress
	case plan.Scaling:
		if !done && p.FreeReplicas { // there is no way back to replicas that are people's; the next decision follows them
			progress.Outcome, progress.Why, p.Rollout = GaveUp, why, nil
			return p, progress
		}
		if !done {
			progress.Outcome, progress.Why = TurnedBack, why
			return enter(p, plan.Reverting, seen, at), progress
		}
	}
	return next(p, seen, o, at, progress, why)
}

// next goes on to the stage that follows, or ends the rollout.
func next(p plan.Plan, seen Seen, o Options, at time.Time, progress Progress, why string) (plan.Plan, Progress) {
	progress.Why = why
	following := plan.Restarting
	switch stage := p.Rollout.Stage; {
	case stage == plan.Assigning && shrinks(p):
		following = plan.Scaling
	case stage == plan.Scaling && !shrinks(p):
		following = plan.Assigning
	case stage == plan.Restarting || !o.RolloutRestart:
		progress.Outcome, p.Rollout = Finished, nil
		return p, progress
	}
	progress.Outcome = Advanced
	return enter(p, following, seen, at), progress
}

// enter writes a stage into the plan: its count, its rows, and since when. Since has whole seconds, as the restart
// annotation that repeats it.
func enter(p plan.Plan, stage plan.Stage, seen Seen, at time.Time) plan.Plan {
	r := p.Rollout
	r.Stage, r.Since = stage, at.UTC().Truncate(time.Second)
	switch stage {
	case plan.Scaling:
		p.Replicas, p.ControllerReplicas = r.Replicas, r.ControllerReplicas
	case plan.Reverting:
		p.Replicas, p.ControllerReplicas, r.Moves = r.From.Replicas, r.From.ControllerReplicas, nil
	case plan.Assigning:
		t := turn{v: plan.NewView(p, nil), p: p, seen: seen}
		t.move(r.Moves)
	case plan.Restarting:
		r.Moves = nil
	}
	if stage == plan.Scaling && shrinks(p) {
		r.Moves = nil
	}
	return p
}

// laggards are the managed Secrets that do not carry their replica yet, by name.
func laggards(v *plan.View, seen Seen) []string {
	var names []string
	for _, s := range seen.Secrets {
		if replica, _, ok := v.Effective(s.Name); ok && s.managed() && !s.carries(replica) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// strays are the Secrets that carry a shard between two reaches, by name.
func strays(seen Seen, low, high int) []string {
	var names []string
	for _, s := range seen.Secrets {
		if s.Valid && s.Shard >= low && s.Shard < high {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// serverHash is what a row carries of the server; a broken Secret has none.
func serverHash(s Stamp) string {
	if s.Server == "" {
		return ""
	}
	return plan.ServerHash(s.Server)
}

func waitsFor(behind, stray []string, unseen bool) string {
	switch {
	case unseen:
		return "most of the plan's Secrets are not seen"
	case len(behind) > 0:
		return fmt.Sprintf("%d Secrets do not carry their replica yet, the first is %q", len(behind), behind[0])
	case len(stray) > 0:
		return fmt.Sprintf("%d Secrets carry a replica that is to go, the first is %q", len(stray), stray[0])
	}
	return "the plan changed meanwhile"
}

func replicasSeen(p plan.Plan, w *Workload) string {
	if w == nil {
		return "the workload was not found"
	}
	return fmt.Sprintf("of %d replicas %d are updated and %d ready", p.Replicas, min(w.Updated, p.Replicas), min(w.Ready, p.Replicas))
}

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ballast/planner/plan"
	"ballast/planner/rollout/answers"
	"ballast/planner/rollout/wave"
)

// live are the stages of mode live: clusters move in waves, and no pod restarts for them.
type live struct{ *transition }

// begin begins with the env, where it is another one: setting it is the one announced restart, and the replicas
// stay as they are meanwhile.
func (t live) begin() {
	r := t.Plan.Rollout
	switch {
	case t.Plan.ControllerReplicas != r.ControllerReplicas:
		t.enter(plan.Scaling, Advanced, "")
		t.Plan.ControllerReplicas = r.ControllerReplicas
	case grows(r):
		t.enter(plan.Scaling, Advanced, "")
		t.Plan.Replicas = r.Replicas
	default:
		t.enter(plan.Moving, Advanced, "")
	}
}

func grows(r *plan.Rollout) bool { return r.Replicas > r.From.Replicas }

// renews reports whether the env's one restart is still to be done: then the way back is to the old env.
func renews(r *plan.Rollout) bool { return r.From.ControllerReplicas != r.ControllerReplicas }

// scaling waits for the env's restart, and then for the replicas that come. Nothing moves meanwhile.
func (t live) scaling() {
	r := t.Plan.Rollout
	done, why := t.replaced()
	switch {
	case done && t.Plan.Replicas < r.Replicas && t.Options.EndsBecause != "":
		t.end(Finished, fmt.Sprintf("%s; the workload stays at %d replicas: %s", why, t.Plan.Replicas, t.Options.EndsBecause))
	case done && t.Plan.Replicas < r.Replicas:
		r.From.ControllerReplicas, t.Plan.Replicas = r.ControllerReplicas, r.Replicas
		t.enter(plan.Scaling, Advanced, why)
	case done:
		r.From.ControllerReplicas = r.ControllerReplicas
		t.enter(plan.Moving, Advanced, why)
	case !t.progress.Late:
		t.wait(why)
	case t.Plan.FreeReplicas && !renews(r): // there is no way back to replicas that are people's, nor can those be relied on
		late := t.late(why)
		t.hold(r.From)
		t.end(GaveUp, late)
	default:
		late := t.late(why)
		t.hold(r.From)
		t.enter(plan.Reverting, TurnedBack, late)
	}
}

// moving waits for the present wave and begins the next one.
func (t live) moving() {
	if len(t.Plan.Rollout.Moves) == 0 {
		t.nextWave("")
		return
	}
	if trouble := t.answers.Trouble(); trouble != "" {
		t.turnBack(trouble)
		return
	}
	rest, unconnected := t.answers.Unfinished()
	switch {
	case rest == "":
		t.nextWave(fmt.Sprintf("wave %d is done; ", t.Plan.Rollout.Wave))
	case !t.progress.Late && (!unconnected || !t.rescued()):
		t.wait(rest)
	case unconnected:
		t.nextWave(fmt.Sprintf("going on after %s, though %s; ", min(t.deadline(), t.elapsed()), rest))
	default:
		t.turnBack(t.late(rest))
	}
}

// connecting is how long a wave off replicas that nobody works for waits for its clusters to be connected. They have an
// owner, whom the next ones have not; and whoever has clusters that cannot be connected must not have each wave wait
// for its deadline.
const connecting = 2 * time.Minute

func (t live) rescued() bool {
	if !t.Options.Rescue || t.elapsed() < connecting {
		return false
	}
	for _, was := range t.Plan.Rollout.Was {
		if !t.Unserved(was) {
			return false
		}
	}
	return true
}

// nextWave enters the next wave, or what comes after the last one.
func (t live) nextWave(done string) {
	r := t.Plan.Rollout
	left := t.waves.Remaining()
	if len(left) == 0 && !t.Unseen() {
		t.rows.SettleGone()
		r.Moves, r.Was = nil, nil
		t.enter(plan.Verifying, Advanced, done+"every cluster has its replica")
		return
	}
	why := t.Options.EndsBecause
	if len(left) > 0 {
		why = cmp.Or(why, t.Options.NoMoreWaves)
	}
	if why != "" {
		t.end(Finished, fmt.Sprintf("%s%s: where the other clusters go is decided anew", done, why))
		return
	}
	wave, blocked, spent := t.waves.Choose(left)
	switch {
	case len(wave) > 0:
		t.enterWave(wave, left, done)
	case len(r.Moves) > 0:
		r.Moves, r.Was = nil, nil
		t.enter(plan.Moving, Advanced, done+"the next wave waits: "+blocked)
	case !t.progress.Late:
		t.wait(blocked)
	case spent:
		t.end(Finished, fmt.Sprintf("%s after %s: where the other clusters go is decided anew", blocked, t.deadline()))
	default:
		t.turnBack(t.late(blocked))
	}
}

// turnBack takes the present wave back: to where its clusters came from, but for those that somebody decided about
// meanwhile, and those that came from replicas that people took away, or for which nobody works.
func (t live) turnBack(why string) {
	r := t.Plan.Rollout
	back, forth := map[string]int{}, map[string]int{}
	for name, to := range r.Moves {
		row, known := t.Plan.Clusters[name]
		was, moved := r.Was[name]
		now, _, _ := t.View.Effective(name)
		gone := t.Plan.FreeReplicas && was >= t.Seen.Workload.Count().Replicas
		if !known || !moved || gone || t.Unserved(was) {
			continue
		}
		if decided := row.Replica != to || now != to; decided || t.PinnedTo(name, to) {
			continue
		}
		back[name] = was
	}
	t.rows.Reassign(t.Plan.Replicas, back)
	for name, was := range back {
		if forth[name] = r.Moves[name]; t.Plan.Clusters[name].Replica != was { // another Secret of its server stays
			delete(back, name)
			delete(forth, name)
		}
	}
	r.Moves, r.Was = back, forth
	if len(back) > 0 {
		t.enter(plan.Reverting, TurnedBack, why)
		return
	}
	t.retreat(TurnedBack, GaveUp, why)
}

// retreat brings the count back where replicas came and nothing is on them, and otherwise ends the rollout.
func (t live) retreat(back, end Outcome, why string) {
	r := t.Plan.Rollout
	r.Moves, r.Was = nil, nil
	if !grows(r) || t.Plan.FreeReplicas || t.Plan.Replicas == r.From.Replicas || t.rows.Occupied(r.From.Replicas) {
		t.end(end, why)
		return
	}
	t.hold(r.From)
	t.enter(plan.Reverting, back, why)
}

// reverting waits for a wave that was turned back, and then for the count.
func (t live) reverting() {
	if len(t.Plan.Rollout.Moves) == 0 {
		done, why := t.replaced()
		switch {
		case done:
			t.end(Reverted, why)
		case t.progress.Late:
			t.end(Reverted, t.late(why))
		default:
			t.wait(why)
		}
		return
	}
	rest := t.answers.Unreturned()
	switch {
	case rest == "":
		t.retreat(Advanced, Reverted, "the wave's clusters are back where they were")
	case t.progress.Late:
		t.retreat(Advanced, Reverted, t.late(rest))
	default:
		t.wait(rest)
	}
}

// verifying looks whether every cluster has its one owner, and, before replicas go, whether nothing is left on them.
// They do not go while a cluster has several.
func (t live) verifying() {
	r := t.Plan.Rollout
	if answers.Falls(r) && slices.ContainsFunc(t.waves.Remaining(), func(u wave.Unit) bool { return u.Leaves }) {
		t.enter(plan.Moving, Advanced, "a cluster came to a replica that is to go")
		return
	}
	grave := cmp.Or(t.answers.Left(), t.answers.Several())
	switch why := cmp.Or(grave, t.answers.Disagreement()); {
	case why == "":
		t.verified("every cluster has its one owner")
	case !t.progress.Late:
		t.wait(why)
	case answers.Falls(r) && grave != "":
		t.end(GaveUp, fmt.Sprintf("the workload stays at %d replicas after %s: %s", t.Plan.Replicas, t.deadline(),
			grave))
	default:
		t.verified(fmt.Sprintf("going on after %s, though %s", t.deadline(), why))
	}
}

func (t live) verified(why string) {
	if !answers.Falls(t.Plan.Rollout) {
		t.end(Finished, why)
		return
	}
	if t.Options.EndsBecause != "" {
		t.end(Finished, fmt.Sprintf("%s; the workload stays at %d replicas: %s", why, t.Plan.Replicas, t.Options.EndsBecause))
		return
	}
	t.rows.SettleGone()
	t.rows.Reassign(t.Plan.Rollout.Replicas, nil) // what nobody may write stays where it is, and its row must not
	t.Plan.Replicas = t.Plan.Rollout.Replicas
	t.enter(plan.Shrinking, Advanced, why)
}

// shrinking waits until the replicas that were left are gone. A workload that could not be made smaller by then stays
// as it is: somebody carries a shard that goes, or it is unmanaged.
func (t live) shrinking() {
	r := t.Plan.Rollout
	done, why := t.replaced()
	if unclaimed := t.answers.Unclaimed(); done && unclaimed != "" && !t.progress.Late {
		done, why = false, unclaimed
	}
	switch {
	case done:
		t.end(Finished, why)
	case !t.progress.Late:
		t.wait(why)
	default:
		if w := t.Seen.Workload; !t.Plan.FreeReplicas && (w == nil || w.Replicas > r.Replicas) {
			t.Plan.Replicas = r.From.Replicas
		}
		t.end(GaveUp, t.late(why))
	}
}

// enterWave gives a wave's clusters their new rows.
func (t live) enterWave(wave, left []wave.Unit, done string) {
	r := t.Plan.Rollout
	moving, most := 0, max(t.Options.MaxMovesPerWave, 1)
	waits := -len(wave)
	for _, u := range left {
		waits += t.waves.Moves(u)
	}
	for _, u := range wave {
		moving += t.waves.Moves(u)
		waits += 1 - t.waves.Moves(u)
	}
	r.Wave++
	r.Waves = r.Wave + (waits+most-1)/most
	r.Moves, r.Was = map[string]int{}, map[string]int{}
	for _, u := range wave {
		for _, name := range u.Names {
			r.Was[name], _, _ = t.View.Effective(name)
			r.Moves[name] = u.Home
			t.rows.SetRow(name, u.Home)
		}
	}
	t.enter(plan.Moving, Advanced, fmt.Sprintf("%swave %d of %d moves %d of %d clusters", done, r.Wave, r.Waves, moving,
		t.Servers()))
}

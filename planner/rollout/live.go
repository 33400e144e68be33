package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// liveEnv is what mode live holds the env at: with every Secret explicit, an env at the largest number of replicas that
// may ever be never changes again, and so scaling restarts nothing. A Deployment has none.
func liveEnv(now plan.Plan, replicas int) int {
	if now.Target.Kind == plan.Deployment {
		return now.ControllerReplicas
	}
	return max(now.MaxReplicas, now.ControllerReplicas, replicas)
}

// live are the stages of mode live: clusters move in waves, and no pod restarts for them.
type live struct{ *transition }

// begin begins with the env, where it is another one: setting it is the one announced restart, and the replicas
// stay as they are meanwhile.
func (t live) begin() {
	r := t.p.Rollout
	switch {
	case t.p.ControllerReplicas != r.ControllerReplicas:
		t.enter(plan.Scaling, Advanced, "")
		t.p.ControllerReplicas = r.ControllerReplicas
	case grows(r):
		t.enter(plan.Scaling, Advanced, "")
		t.p.Replicas = r.Replicas
	default:
		t.enter(plan.Moving, Advanced, "")
	}
}

func grows(r *plan.Rollout) bool { return r.Replicas > r.From.Replicas }

func falls(r *plan.Rollout) bool { return r.Replicas < r.From.Replicas }

// renews reports whether the env's one restart is still to be done: then the way back is to the old env.
func renews(r *plan.Rollout) bool { return r.From.ControllerReplicas != r.ControllerReplicas }

// scaling waits for the env's restart, and then for the replicas that come. Nothing moves meanwhile.
func (t live) scaling() {
	r := t.p.Rollout
	done, why := t.replaced()
	switch {
	case done && t.p.Replicas < r.Replicas && t.o.Ends != "":
		t.end(Finished, fmt.Sprintf("%s; the workload stays at %d replicas: %s", why, t.p.Replicas, t.o.Ends))
	case done && t.p.Replicas < r.Replicas:
		r.From.ControllerReplicas, t.p.Replicas = r.ControllerReplicas, r.Replicas
		t.enter(plan.Scaling, Advanced, why)
	case done:
		r.From.ControllerReplicas = r.ControllerReplicas
		t.enter(plan.Moving, Advanced, why)
	case !t.progress.Late:
		t.wait(why)
	case t.p.FreeReplicas && !renews(r): // there is no way back to replicas that are people's, nor can those be relied on
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
	if len(t.p.Rollout.Moves) == 0 {
		t.nextWave("")
		return
	}
	if trouble := t.answers.trouble(); trouble != "" {
		t.turnBack(trouble)
		return
	}
	rest, unconnected := t.answers.unfinished()
	switch {
	case rest == "":
		t.nextWave(fmt.Sprintf("wave %d is done; ", t.p.Rollout.Wave))
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
	if !t.o.Rescue || t.elapsed() < connecting {
		return false
	}
	for _, was := range t.p.Rollout.Was {
		if !t.unserved(was) {
			return false
		}
	}
	return true
}

// nextWave enters the next wave, or what comes after the last one.
func (t live) nextWave(done string) {
	r := t.p.Rollout
	left := t.waves.remaining()
	if len(left) == 0 && !t.unseen() {
		t.rows.settleGone()
		r.Moves, r.Was = nil, nil
		t.enter(plan.Verifying, Advanced, done+"every cluster has its replica")
		return
	}
	if t.o.Ends != "" {
		t.end(Finished, fmt.Sprintf("%s%s: where the other clusters go is decided anew", done, t.o.Ends))
		return
	}
	wave, blocked, spent := t.waves.choose(left)
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
	r := t.p.Rollout
	back, forth := map[string]int{}, map[string]int{}
	for name, to := range r.Moves {
		row, known := t.p.Clusters[name]
		was, moved := r.Was[name]
		now, _, _ := t.v.Effective(name)
		gone := t.p.FreeReplicas && was >= t.seen.Workload.Count().Replicas
		if !known || !moved || gone || t.unserved(was) || row.Replica != to || now != to || t.pinnedTo(name, to) {
			continue
		}
		back[name] = was
	}
	t.rows.reassign(t.p.Replicas, back)
	for name, was := range back {
		if forth[name] = r.Moves[name]; t.p.Clusters[name].Replica != was { // another Secret of its server stays
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

// unserved reports whether nobody works for a replica's clusters, as far as is known: then they are to leave it, and
// nothing goes back to it.
func (g *ground) unserved(replica int) bool {
	return g.o.Unwell[replica] || len(g.seen.Pods) > 0 && g.seen.Asleep(replica) != ""
}

func (g *ground) pinnedTo(name string, replica int) bool {
	pin, pinned := g.v.Pin(name)
	return pinned && pin == replica
}

// retreat brings the count back where replicas came and nothing is on them, and otherwise ends the rollout.
func (t live) retreat(back, end Outcome, why string) {
	r := t.p.Rollout
	r.Moves, r.Was = nil, nil
	if !grows(r) || t.p.FreeReplicas || t.p.Replicas == r.From.Replicas || t.rows.occupied(r.From.Replicas) {
		t.end(end, why)
		return
	}
	t.hold(r.From)
	t.enter(plan.Reverting, back, why)
}

// occupied reports whether a row is at or above a number of replicas, or a Secret that ballast may not write. A pin
// there never holds before the rollout has ended, nor does it afterwards if they go.
func (l layout) occupied(replicas int) bool {
	for _, row := range l.p.Clusters {
		if row.Replica >= replicas {
			return true
		}
	}
	return slices.ContainsFunc(l.seen.Secrets, func(s observed.Secret) bool {
		return !s.Managed() && s.Valid && s.Shard >= replicas && s.Shard < l.p.Replicas
	})
}

// reverting waits for a wave that was turned back, and then for the count.
func (t live) reverting() {
	if len(t.p.Rollout.Moves) == 0 {
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
	rest := t.answers.unreturned()
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
	r := t.p.Rollout
	if falls(r) && slices.ContainsFunc(t.waves.remaining(), func(u unit) bool { return u.leaves }) {
		t.enter(plan.Moving, Advanced, "a cluster came to a replica that is to go")
		return
	}
	grave := cmp.Or(t.answers.left(), t.answers.several())
	switch why := cmp.Or(grave, t.answers.disagreement()); {
	case why == "":
		t.verified("every cluster has its one owner")
	case !t.progress.Late:
		t.wait(why)
	case falls(r) && grave != "":
		t.end(GaveUp, fmt.Sprintf("the workload stays at %d replicas after %s: %s", t.p.Replicas, t.deadline(), grave))
	default:
		t.verified(fmt.Sprintf("going on after %s, though %s", t.deadline(), why))
	}
}

func (t live) verified(why string) {
	if !falls(t.p.Rollout) {
		t.end(Finished, why)
		return
	}
	if t.o.Ends != "" {
		t.end(Finished, fmt.Sprintf("%s; the workload stays at %d replicas: %s", why, t.p.Replicas, t.o.Ends))
		return
	}
	t.rows.settleGone()
	if t.p.FreeReplicas {
		t.rows.reassign(t.p.Rollout.Replicas, nil) // what nobody may write stays on a replica that is gone, and its row must not
	}
	t.p.Replicas = t.p.Rollout.Replicas
	t.enter(plan.Shrinking, Advanced, why)
}

// shrinking waits until the replicas that were left are gone. A workload that could not be made smaller by then stays
// as it is: somebody carries a shard that goes, or it is unmanaged.
func (t live) shrinking() {
	r := t.p.Rollout
	done, why := t.replaced()
	if unclaimed := t.answers.unclaimed(); done && unclaimed != "" && !t.progress.Late {
		done, why = false, unclaimed
	}
	switch {
	case done:
		t.end(Finished, why)
	case !t.progress.Late:
		t.wait(why)
	default:
		if w := t.seen.Workload; !t.p.FreeReplicas && (w == nil || w.Replicas > r.Replicas) {
			t.p.Replicas = r.From.Replicas
		}
		t.end(GaveUp, t.late(why))
	}
}

package life

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// heard is how long a person's word takes at most: a cycle, and one that was lost.
const heard = 2*time.Minute + act

// still is since when ballast is to keep still; zero: it is not.
type still struct{ frozen, glass, held, observes time.Time }

// since notes since when.
func (j *judge) since() {
	note := func(since *time.Time, on bool) {
		if !on {
			*since = time.Time{}
		} else if since.IsZero() {
			*since = j.Now
		}
	}
	note(&j.still.frozen, j.Paused)
	note(&j.still.glass, j.Glass)
	note(&j.still.held, j.Config.Mode == plan.Hold)
	note(&j.still.observes, j.Config.Mode == plan.Observe)
}

// lasts reports whether something was said long enough ago that ballast goes by it.
func (j *judge) lasts(since time.Time) bool { return !since.IsZero() && j.Now.Sub(since) > heard }

// asked reports whether a person asks for moves of that cause, frozen or not: a drain, a rollback, or other replicas where
// those are people's. It is judged by what stood when the plan was decided, too: a wish that ends with the plan was one.
func (j *judge) asked(cause change.Cause) bool {
	return cause == change.Drain || cause == change.Rollback || cause == change.Pin && byPeople(j.Config)
}

// frozenPlan: while a person has frozen it nothing of ballast's moves, whoever's the replicas are. A wave that is under way
// ends, and what goes back goes back; what people ask for goes on; pins and Secrets that people write hold.
func (j *judge) frozenPlan() {
	observes := j.Plan.Mode == plan.Observe || j.before.Mode == plan.Observe // the plan follows what stands, and writes nothing
	if !j.lasts(j.still.frozen) || observes {
		return
	}
	since, cause := j.still.frozen, cmp.Or(j.memory.Changes.Cause, change.Balance)
	r, was := j.Plan.Rollout, j.before.Rollout
	switch {
	case r == nil && was == nil:
		j.nothingMoves("frozen", since)
	case j.asked(cause):
	case j.begins():
		j.fail("frozen since %s a rollout begins for %s", since.Sub(sim.Epoch), cause)
	case r == nil:
	case r.Stage == plan.Moving && r.Wave > was.Wave:
		j.fail("frozen since %s wave %d begins for %s", since.Sub(sim.Epoch), r.Wave, cause)
	case r.Stage == plan.Shrinking && was.Stage != plan.Shrinking && !byPeople(j.Config):
		j.fail("frozen since %s replicas go for %s", since.Sub(sim.Epoch), cause)
	}
}

// heldPlan: nothing begins in another mode than Enforce, nor under break-glass, and a rollout stays where it is, but for one
// that has stopped every replica. Under Observe the rows are what stands; under Hold they stay.
func (j *judge) heldPlan() {
	held, glass, observes := j.lasts(j.still.held), j.lasts(j.still.glass), j.lasts(j.still.observes)
	r, was := j.Plan.Rollout, j.before.Rollout
	stops := j.before.StopsAll() || j.Plan.StopsAll()
	switch {
	case !held && !glass && !observes || stops:
	case j.begins():
		j.fail("a rollout begins in mode %s, break-glass %t", j.Config.Mode, j.Glass)
	case r != nil && was != nil && (r.Wave != was.Wave || r.Stage != was.Stage):
		j.fail("a rollout goes on in mode %s, break-glass %t: from %s to %s", j.Config.Mode, j.Glass, was.Stage, r.Stage)
	case observes && r != nil:
		j.fail("a rollout is under way in mode Observe")
	case held && r == nil && was == nil:
		j.nothingMoves("held", j.still.held)
	}
}

// nothingMoves: outside a rollout rows change for people's words alone: pins, Secrets of their own, replicas of their own. Where
// such a word parted the Secrets of a server and ends, they go together again at once: apart the cluster may have no owner.
func (j *judge) nothingMoves(why string, since time.Time) {
	for _, name := range slices.Sorted(maps.Keys(j.Plan.Clusters)) {
		row, known := j.before.Clusters[name]
		if !known || row.Replica == j.Plan.Clusters[name].Replica || j.peoples(name) || j.rejoins(name) {
			continue
		}
		j.fail("%s since %s %s moves from %d to %d", why, since.Sub(sim.Epoch), name, row.Replica, j.Plan.Clusters[name].Replica)
	}
	if j.Plan.Replicas != j.before.Replicas && !byPeople(j.Config) {
		j.fail("%s since %s the plan has %d replicas instead of %d", why, since.Sub(sim.Epoch), j.Plan.Replicas, j.before.Replicas)
	}
}

// peoples reports whether a row is as people say: a Secret of its server is pinned, or not ballast's to write.
func (j *judge) peoples(name string) bool {
	return slices.ContainsFunc(j.SecretsOf(name), func(secret string) bool {
		_, pinned := j.Pins[secret]
		_, asks := plan.ParsePin(j.Asks[secret])
		own := j.OptedOut[secret] || j.Refused[secret]
		return pinned || asks || own
	})
}

// wrote: nothing is written under break-glass nor in mode Observe, but to bring back replicas that rollout.x0y stopped; under
// Hold no number is changed that was not the plan's.
func (j *judge) wrote(step diff.Step) {
	j.since() // people may have said otherwise since the last look
	glass, observes := j.lasts(j.still.glass), j.lasts(j.still.observes)
	if (glass || observes) && !j.Plan.StopsAll() {
		j.fail("%s is written in mode %s, break-glass %t", step, j.Config.Mode, j.Glass)
	}
	s, workload := step.(diff.PatchWorkload)
	if workload && s.RestartedAt != "" && j.lasts(j.still.held) && !j.Plan.StopsAll() {
		j.fail("%s restarts the workload in mode Hold", s)
	}
}

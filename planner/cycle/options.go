package cycle

import (
	"math"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// rolloutOptions are those of a rollout for that cause.
func (s *snapshot) rolloutOptions(cause change.Cause) rollout.Options {
	r := s.in.Config.Rollout
	o := rollout.Options{Mode: modeOf(r), StageTimeout: time.Duration(r.StageTimeout), DrainTimeout: drainTimeout,
		MaxClusters: s.mostClusters(), Memory: s.memoryRoom(), Bytes: s.byName, Budget: s.movesLeft(cause), Ends: s.ends(cause), TurnsBack: s.turnsBack}
	switch {
	case r.Live != nil:
		o.MaxMovesPerWave = r.Live.MaxMovesPerWave
	case r.Default != nil:
		o.RolloutRestart = r.Default.RolloutRestart
	}
	o.Rescue, o.Partial = empties(cause) || s.leavesTaken(cause), s.partial
	if empties(cause) && o.Mode != plan.ModeLive {
		// An unwell pod keeps all behind it from starting (OrderedReady): for its sake, or that of one replica that a person
		// wants empty, nobody else may stop.
		o.Mode, o.RolloutRestart = plan.ModeDefault, false
	}
	o.Unwell, o.Insists = s.unwell(), byPerson(cause)
	if cause != change.Pin { // that is a person's word, and where it says
		o.Closed = s.closed()
	}
	return o
}

// ends says why the rollout under way is to end where it may: what is left of it is decided anew when the reason is
// gone. One that waited instead would keep people's wishes and a failover waiting, too.
func (s *snapshot) ends(cause change.Cause) string {
	switch {
	case s.in.Paused && !byPerson(cause):
		return "a person paused it"
	case stopsFor(cause, s.in, s.changes) && !byPerson(cause):
		return "ballast stopped itself and nobody has cleared it"
	case s.partial && !empties(cause) && !s.leavesTaken(cause):
		return goneAtOnce
	case s.leavesTaken(cause) && s.next.Rollout != nil && standing.Replicas(s.in.Workload) >= s.next.Rollout.From.Replicas:
		return "the replicas that were taken away are back"
	case cause != change.Balance && cause != "":
	case len(s.closed()) > 0:
		return "a replica is unwell or cordoned"
	case s.in.Rollback != nil:
		return "a person asked for an earlier plan"
	}
	return ""
}

// movesLeft is how many clusters may change their replica now, for that cause. A person's own word
// waits neither for a pause nor for a trip to be cleared: to take a change back is what both are for.
func (s *snapshot) movesLeft(cause change.Cause) int {
	if stopsFor(cause, s.in, s.changes) && !byPerson(cause) {
		return 0 // a wave that is under way ends, and no other begins
	}
	if cause != "" && !cause.Limited() {
		return math.MaxInt
	}
	return s.budgetOf(cause).Left
}

// budgetOf is the move budget as moves of that cause have it.
func (s *snapshot) budgetOf(cause change.Cause) change.Budget {
	return change.Look(s.changes.Ledger.Before(cause), ratesOf(s.in), s.budget.Of, s.in.Now)
}

// empties reports whether a rollout for that cause empties a replica that is unwell or cordoned.
func empties(cause change.Cause) bool { return cause == change.Failover || cause == change.Drain }

// leavesTaken reports whether a rollout for that cause, under way or about to begin, has clusters leave replicas that
// people took away: nobody has those, as on a replica that is dead.
func (s *snapshot) leavesTaken(cause change.Cause) bool {
	if cause != change.Pin || !s.next.FreeReplicas {
		return false
	}
	if r := s.next.Rollout; r != nil {
		return r.Replicas < r.From.Replicas
	}
	return standing.Replicas(s.in.Workload) < s.next.Replicas
}

func byPerson(cause change.Cause) bool {
	return cause == change.Pin || cause == change.Rollback || cause == change.Drain
}

package snapshot

import (
	"math"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/safety"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// RolloutOptions are those of a rollout for that cause.
func RolloutOptions(s *Snapshot, cause change.Cause) basis.Options {
	r := s.In.Config.Rollout
	o := basis.Options{Mode: ModeOf(r), StageTimeout: time.Duration(r.StageTimeout), DrainTimeout: drainTimeout,
		MaxClusters: s.MostClusters(), Memory: s.InUse.Most(), Bytes: s.ByName, Budget: movesLeft(s, cause), Ends: ends(s, cause), TurnsBack: s.TurnsBack,
		Small: small(s, cause)}
	switch {
	case r.Live != nil:
		o.MaxMovesPerWave = r.Live.MaxMovesPerWave
	case r.Default != nil:
		o.RolloutRestart = r.Default.RolloutRestart
	}
	o.KeepEnv = s.Env().Awaits()
	o.Rescue, o.Partial = empties(cause) || leavesTaken(s, cause), s.Partial
	if empties(cause) && o.Mode != plan.ModeLive {
		// An unwell pod keeps all behind it from starting (OrderedReady): for its sake, or that of one replica that a person
		// wants empty, nobody else may stop.
		o.Mode, o.RolloutRestart = plan.ModeDefault, false
	}
	o.Unwell, o.Insists = s.unwell(), byPerson(cause)
	if cause != change.Pin { // that is a person's word, and where it says
		o.Closed = s.Closed()
	}
	return o
}

// ends says why the rollout under way is to end where it may: what is left of it is decided anew when the reason is
// gone. One that waited instead would keep people's wishes and a failover waiting, too.
func ends(s *Snapshot, cause change.Cause) string {
	switch {
	case s.In.Paused && !byPerson(cause):
		return "a person paused it"
	case safety.StopsFor(cause, s.In, s.Changes) && !byPerson(cause):
		return "ballast stopped itself and nobody has cleared it"
	case s.Partial && !empties(cause) && !leavesTaken(s, cause):
		return gate.GoneAtOnce
	case leavesTaken(s, cause) && s.Next.Rollout != nil && standing.Replicas(s.In.Workload) >= s.Next.Rollout.From.Replicas:
		return "the replicas that were taken away are back"
	case cause != change.Balance && cause != "":
	case len(s.Closed()) > 0:
		return "a replica is unwell or cordoned"
	case s.In.Rollback != nil:
		return "a person asked for an earlier plan"
	}
	if cause.Levels() {
		return tooLarge(s)
	}
	return ""
}

// movesLeft is how many clusters may change their replica now, for that cause. A person's own word
// waits neither for a pause nor for a trip to be cleared: to take a change back is what both are for.
func movesLeft(s *Snapshot, cause change.Cause) int {
	if safety.StopsFor(cause, s.In, s.Changes) && !byPerson(cause) {
		return 0 // a wave that is under way ends, and no other begins
	}
	if cause != "" && !cause.Limited() {
		return math.MaxInt
	}
	return BudgetOf(s, cause).Left
}

// BudgetOf is the move budget as moves of that cause have it.
func BudgetOf(s *Snapshot, cause change.Cause) change.Budget {
	return change.Look(s.Changes.Ledger.Before(cause), ledger.RatesOf(s.In), s.Budget.Of, s.In.Now)
}

// empties reports whether a rollout for that cause empties a replica that is unwell or cordoned.
func empties(cause change.Cause) bool { return cause == change.Failover || cause == change.Drain }

// leavesTaken reports whether a rollout for that cause, under way or about to begin, has clusters leave replicas that
// people took away: nobody has those, as on a replica that is dead.
func leavesTaken(s *Snapshot, cause change.Cause) bool {
	if cause != change.Pin || !s.Next.FreeReplicas {
		return false
	}
	if r := s.Next.Rollout; r != nil {
		return r.Replicas < r.From.Replicas
	}
	return standing.Replicas(s.In.Workload) < s.Next.Replicas
}

func byPerson(cause change.Cause) bool {
	return cause == change.Pin || cause == change.Rollback || cause == change.Drain
}

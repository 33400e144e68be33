package snapshot

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/config/changerules"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/safety"
	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/rollout/basis"
)

// RolloutOptions are those of a rollout for that cause.
func RolloutOptions(s *Snapshot, cause change.Cause) basis.Options {
	r := s.In.Config.Rollout
	o := basis.Options{Mode: ModeOf(r), StageTimeout: time.Duration(r.StageTimeout), DrainTimeout: drainTimeout,
		MaxClusters: s.MostClusters(), Memory: s.InUse.Most(), Bytes: s.ByName, Budget: movesLeft(s, cause),
		EndsBecause: ends(s, cause), TurnsBack: s.TurnsBack,
		AwaitSize: small(s, cause), NoMoreWaves: shut(s, cause)}
	switch {
	case r.Live != nil:
		o.MaxMovesPerWave = r.Live.MaxMovesPerWave
	case r.Default != nil:
		o.RolloutRestart = r.Default.RolloutRestart
	}
	o.KeepEnv = s.Env().Awaits()
	o.Rescue, o.Partial = empties(cause) || leavesTaken(s, cause), s.Partial
	if empties(cause) && o.Mode != plan.ModeLive {
		// An unwell pod keeps all behind it from starting (OrderedReady): for its sake, or that of one replica that a
		// person wants empty, nobody else may stop.
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
		return gate.PausedBy
	case stops(s, cause):
		return gate.StoppedItself
	case s.Partial && !empties(cause) && !leavesTaken(s, cause):
		return gate.GoneAtOnce
	case leavesTaken(s, cause) && s.Next.Rollout != nil && standing.Replicas(s.In.Workload) >= s.Next.Rollout.From.Replicas:
		return "the replicas that were taken away are back"
	case cause != change.Balance && cause != "":
	case s.UnwellOrCordoned():
		return "a replica is unwell or cordoned"
	case s.In.Rollback != nil:
		return "a person asked for an earlier plan"
	}
	if cause.Levels() {
		return tooLarge(s)
	}
	return ""
}

// stops reports whether a trip or a freeze keeps a rollout for that cause from moving more.
func stops(s *Snapshot, cause change.Cause) bool {
	if byPerson(cause) {
		return false
	}
	return safety.StopsFor(cause, s.In, s.Changes) || cause == change.Failover && handsOn(s)
}

// Held reports whether a trip for memory has a cluster stay on that replica. Where a person wants the replica empty, it
// has not. What proposes a failover and what ends one that is under way must agree in this: one would begin and end
// without an end.
func (s *Snapshot) HeldByTrip(name string, at int) bool {
	return s.Changes.Stay().Holds(name, at) && !slices.Contains(s.Cordoned, at)
}

// handsOn reports whether the rollout under way has yet to move what a trip for memory holds, or to move something to a
// replica that was killed. It ends, and what is left of it is proposed anew without those. A row without a Secret
// follows the others of its server, and hands on nothing.
func handsOn(s *Snapshot) bool {
	r, stay := s.Next.Rollout, s.Changes.Stay()
	if r == nil || len(stay.Replicas) == 0 {
		return false
	}
	for name, from := range r.Was {
		if s.HeldByTrip(name, from) && standing.Has(s.Fleet, name) {
			return true
		}
	}
	for name, to := range s.Changes.Target {
		_, moving := r.Was[name]
		row, planned := s.Next.Clusters[name]
		if pin, pinned := s.Pins[name]; moving || pinned && pin == to { // a person's word, and no wave moves it
			continue
		}
		if row.Replica == to || !planned || !standing.Has(s.Fleet, name) {
			continue
		}
		if stay.Killed(to) || s.HeldByTrip(name, row.Replica) {
			return true
		}
	}
	return false
}

// shut says why no further wave of what levels begins: change.moves is off by now, or its window is over. Its cooldown
// is of beginnings alone, for each wave is a move.
func shut(s *Snapshot, cause change.Cause) string {
	if cause != change.Balance {
		return ""
	}
	for _, b := range changerules.OfMoves(s.In.Config.Change).MayMove(s.In.Now, change.Past{}) {
		if b.Reason == change.UpdatePolicy || b.Reason == change.OutsideMaintenance {
			return worded(b)
		}
	}
	return ""
}

// movesLeft is how many clusters may change their replica now, for that cause. A person's own word
// waits neither for a pause nor for a trip to be cleared: to take a change back is what both are for.
func movesLeft(s *Snapshot, cause change.Cause) int {
	if stops(s, cause) {
		return 0 // a wave that is under way ends, and no other begins
	}
	if cause != "" && !cause.Limited() {
		return math.MaxInt
	}
	return BudgetOf(s, cause).Left
}

// BudgetOf is the move budget as moves of that cause have it.
func BudgetOf(s *Snapshot, cause change.Cause) change.Budget {
	return change.Look(before(s, cause), ledger.RatesOf(s.In), s.Budget.Of, s.In.Now)
}

// before is what moves of that cause wait for. Only failovers wait for those of clusters that are not known yet.
func before(s *Snapshot, cause change.Cause) change.Ledger {
	l := s.Changes.Ledger.Before(cause)
	if cause == change.Failover {
		return l.With(s.Changes.Unserved)
	}
	return l
}

// SpareOf is how many servers may move for what could as well wait, now and ever: half of what each rate lets others
// than it move.
func SpareOf(s *Snapshot) (now, ever int) {
	now, ever = math.MaxInt, math.MaxInt
	for _, w := range BudgetOf(s, change.Balance).Windows {
		now, ever = min(now, max(w.Allowed/2-w.Used, 0)), min(ever, w.Allowed/2)
	}
	return now, ever
}

// RescueOf is how many servers may leave a replica that does not work, beyond what the others take on freely: the share
// of each rate within an hour, whatever its period is. A day's budget that is spent keeps no cluster without an owner.
func RescueOf(s *Snapshot) int {
	rates := ledger.RatesOf(s.In)
	for i := range rates {
		rates[i].Period = min(rates[i].Period, time.Hour)
	}
	return change.Left(before(s, change.Failover), rates, s.Budget.Of, s.In.Now)
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

// small are the replicas that no wave moves clusters to yet, since they are to be larger than their pods are. A node
// that says nothing is waited for as long as package diff waits; one that has no room ends what levels, and holds up
// nobody who has to move.
func small(s *Snapshot, cause change.Cause) map[int]string {
	r := s.Next.Rollout
	if r == nil || s.Next.Sizes == nil || s.In.BreakGlass {
		return nil
	}
	patient := s.In.Now.Sub(r.Since) < min(diff.GrowsWithin, time.Duration(s.In.Config.Rollout.StageTimeout)/2)
	small := map[int]string{}
	for _, u := range sizing.Unmet(s.In, s.Next) {
		if u.Coming() && (patient || u.NoRoom() && cause.Levels()) {
			small[u.Replica] = u.String()
		}
	}
	return small
}

// tooLarge says why a rollout that levels is to end: a node has no room for what is to come to it. A node that may yet
// have room is given some time.
func tooLarge(s *Snapshot) string {
	r := s.Next.Rollout
	if r == nil {
		return ""
	}
	receivers := sizing.ReceiversOf(s.Next, s.Changes.Target)
	for _, u := range sizing.Unmet(s.In, s.Next) {
		lasts := u.State == diff.PodInfeasible || s.In.Now.Sub(r.Since) >= diff.GrowsWithin
		if u.NoRoom() && lasts && receivers[u.Replica] {
			return fmt.Sprintf("the node of replica %d has no room for the size that it needs (%s)", u.Replica, u.State)
		}
	}
	return ""
}

// drainTimeout is the deadline of the one stage in which nothing is reconciled.
const drainTimeout = 5 * time.Minute

// ModeOf is the rollout mode that the configuration names.
func ModeOf(r config.Rollout) string {
	switch {
	case r.Live != nil:
		return plan.ModeLive
	case r.X0Y != nil:
		return plan.ModeX0Y
	}
	return plan.ModeDefault
}

// Restarts reports whether what is wanted restarts the fleet in that mode.
func Restarts(s *Snapshot, w *rollout.Proposal, o basis.Options) bool {
	moves := len(rollout.Moves(s.Next, plan.Plan{Clusters: w.Rows})) > 0
	switch {
	case o.Mode == plan.ModeX0Y:
		return moves || w.Replicas != s.Next.Replicas || w.ControllerReplicas != s.Next.ControllerReplicas
	case ScalingRestarts(s, w):
		return true
	case s.Next.Target.Kind != plan.Deployment && w.ControllerReplicas != s.Next.ControllerReplicas:
		return true
	}
	return o.Mode == plan.ModeDefault && o.RolloutRestart && moves
}

// ScalingRestarts reports whether what is wanted scales a Deployment, whose pods read their number once.
func ScalingRestarts(s *Snapshot, w *rollout.Proposal) bool {
	return s.Next.Target.Kind == plan.Deployment && w.Replicas != s.Next.Replicas && !s.Next.FreeReplicas
}

// GoneBack reports whether a person went back to an earlier plan within the horizon of what is weighed: that is left
// alone.
func GoneBack(s *Snapshot) bool {
	weighs, back := s.In.Config.Evaluate.CostBenefit, s.In.Memory.Savings.Back
	return weighs != nil && !back.IsZero() && s.In.Now.Sub(back) < time.Duration(weighs.Horizon)
}

func worded(b change.Block) string {
	why := fmt.Sprintf("change.moves: %s (%s)", b.Why, b.Reason)
	if !b.Until.IsZero() {
		why += ", until " + b.Until.UTC().Format(time.RFC3339)
	}
	return why
}

// Package waiting says what a proposal waits for, and cuts what the move budget has no room for.
package waiting

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/proposal"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/rollout"
	"ballast/planner/rollout/basis"
)

// Limit leaves moves for later that the budget has no room for. It answers what all of it waits for, "" where it may
// begin: mode live, which looks at the budget before each wave, for room for one move; x0y, which stops every replica,
// for room for as many as there ever is room for, and what a person asked for, which should stop them once, for all.
// Where replicas that go restart the others, too, they do so at the end alone, and none of the steps before it is a
// restart.
func Limit(s *snapshot.Snapshot, w *rollout.Proposal, cause change.Cause, o basis.Options) (waits string, told []problem.Problem) {
	moves := rollout.Moves(s.Next, plan.Plan{Clusters: w.Rows})
	servers := Servers(s, moves)
	switch {
	case !cause.Limited() || servers <= o.Budget:
		return "", nil
	case o.Mode == plan.ModeX0Y:
		if most := mostAtOnce(s); cause == change.Balance && most > 0 && most < servers {
			cut(s, w, moves, most)
			servers = most
		}
		if servers <= o.Budget {
			return "", nil
		}
		return room(s, cause, servers, ", since every replica stops for it",
			", or set rollout.live, which moves some at a time")
	case o.Mode == plan.ModeLive:
		if o.Budget < 1 {
			return room(s, cause, 1, "", "")
		}
		if snapshot.ScalingRestarts(s, w) && w.Replicas < s.Next.Replicas {
			cut(s, w, moves, o.Budget)
		}
		return "", nil
	}
	cut(s, w, moves, o.Budget)
	if o.Budget < 1 && w.Replicas == s.Next.Replicas {
		return room(s, cause, 1, "", "")
	}
	return "", nil
}

// mostAtOnce is how many moves the rates ever have room for at once.
func mostAtOnce(s *snapshot.Snapshot) int {
	most := math.MaxInt
	for _, r := range ledger.RatesOf(s.In) {
		most = min(most, r.Allowed(s.Budget.Of))
	}
	return most
}

// room says when the budget has room for so many moves at once, and where it never has, with the mend.
func room(s *snapshot.Snapshot, cause change.Cause, moves int, since, mend string) (waits string, told []problem.Problem) {
	budget := snapshot.BudgetOf(s, cause)
	at, ok := change.When(s.Changes.Ledger.Before(cause), ledger.RatesOf(s.In), s.Budget.Of, s.In.Now, moves)
	switch {
	case moves == 1:
		return "waits for the move budget: " + budget.String(), nil
	case ok:
		return fmt.Sprintf("waits until %s for a move budget of %d at once%s: %s", at.UTC().Format(time.RFC3339), moves,
			since, budget), nil
	}
	never := fmt.Sprintf("waits for a move budget of %d at once%s, and change.moves.rate never has room for them: raise it%s: %s", moves, since, mend, budget)
	return never, []problem.Problem{{Phase: problem.PhaseRollout, Kind: "BudgetTooSmall", Message: "what is to move " +
		never}}
}

// cut takes moves out of what is wanted until the budget has room: those off replicas that go come first, then the
// heaviest, and the clusters of one server stay together. Replicas go only when all that is on them can leave at once;
// until then some of it leaves before.
func cut(s *snapshot.Snapshot, w *rollout.Proposal, moves []rollout.Move, budget int) {
	goes := func(m rollout.Move) bool { return m.From >= w.Replicas }
	slices.SortStableFunc(moves, func(x, y rollout.Move) int {
		return cmp.Or(discover.FalseFirst(!goes(x), !goes(y)), cmp.Compare(plan.LoadOf(y.Load), plan.LoadOf(x.Load)))
	})
	leaving := slices.DeleteFunc(slices.Clone(moves), func(m rollout.Move) bool { return !goes(m) })
	if Servers(s, leaving) > budget {
		w.Replicas, w.ControllerReplicas = s.Next.Replicas, s.Next.ControllerReplicas
	}
	for _, unit := range placement.Group(len(moves), func(i int) string { return s.Beside.Of(moves[i].Cluster, w.Rows[moves[i].Cluster].Server) }) {
		if budget > 0 {
			budget -= Servers(s, pick(moves, unit))
			continue
		}
		for _, i := range unit {
			row := w.Rows[moves[i].Cluster]
			row.Replica = moves[i].From
			w.Rows[moves[i].Cluster] = row
		}
	}
}

// Servers is how many moves those clusters' are: one for each server.
func Servers(s *snapshot.Snapshot, moves []rollout.Move) int {
	names := func(yield func(string) bool) {
		for _, m := range moves {
			if !yield(m.Cluster) {
				return
			}
		}
	}
	return ledger.ServersOf(s.Beside, names, s.Next)
}

func pick(moves []rollout.Move, unit []int) []rollout.Move {
	of := make([]rollout.Move, len(unit))
	for k, i := range unit {
		of[k] = moves[i]
	}
	return of
}

// SecretsPin is what replicas that a Secret's pin asks for wait for; empty: nothing, or nobody asks for them.
func SecretsPin(s *snapshot.Snapshot, p *proposal.Proposed) string {
	if !p.BySecret {
		return ""
	}
	return s.PinsWait(p.Want.Replicas)
}

// For is what a proposal waits for; empty: it may begin. Beside the gates it judges what follows from the target alone:
// the replicas that a Secret's pin asks for, and moves that the budget has no room for; Refused a plan that is too
// large.
func For(s *snapshot.Snapshot, p *proposal.Proposed, o basis.Options) (kind, waits string, told []problem.Problem) {
	if o.Mode == plan.ModeX0Y {
		if kind, waits = gate.Refuses(gate.Table(), s.Looked, gate.StopAll); waits != "" { // it would stop every replica again and again
			return kind, waits, nil
		}
	}
	if waits = SecretsPin(s, p); waits != "" {
		return "PinWaits", waits, nil
	}
	if waits, told = Limit(s, p.Want, p.Cause, o); waits != "" {
		return "BudgetWaits", waits, told
	}
	atOnce := p.AtOnce || p.Asked && p.Want.Replicas != s.Next.Replicas // which the budget may have put off
	if p.Cause == change.Balance && !atOnce && snapshot.Restarts(s, p.Want, o) {
		kind, waits = gate.Refuses(gate.Table(), s.Looked, gate.RestartAll)
	}
	return kind, waits, told
}

// Refused says why a rollout does not begin, and the kind of the problem; without a kind people are told otherwise.
func Refused(s *snapshot.Snapshot, next plan.Plan, o basis.Options) (kind, why string) {
	if room := codec.Room(next); room < 0 {
		return "PlanFull", fmt.Sprintf("what is to begin takes %d bytes more than a plan may have, so it does not (rollout.live writes some moves at a time)", -room)
	}
	var does gate.Action
	if needsWorkload(s.Next, next, o) {
		does |= gate.Workload
	}
	scales := next.Rollout != nil && next.Rollout.Replicas != s.Next.Replicas && !s.Next.FreeReplicas
	if stops := next.Rollout != nil && o.Mode == plan.ModeX0Y; scales || stops {
		does |= gate.Scale
	}
	return gate.Refuses(gate.Table(), s.Looked, does)
}

// needsWorkload reports whether a rollout writes to the workload: another number of replicas or another env, or a
// restart.
func needsWorkload(now, next plan.Plan, o basis.Options) bool {
	r := next.Rollout
	if r == nil {
		return false
	}
	scales := !now.FreeReplicas && r.Replicas != now.Replicas
	restarts := r.Mode == plan.ModeX0Y || r.Mode == plan.ModeDefault && o.RolloutRestart
	return scales || r.ControllerReplicas != now.ControllerReplicas || restarts
}

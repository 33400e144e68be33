package waiting

import (
	"strconv"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/proposal"
	"ballast/planner/cycle/resize"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/size"
)

// blockedMoves says which moves that level are wanted and do not happen for a rule of change.moves, and since when.
func blockedMoves(s *snapshot.Snapshot) (moves int, by change.Block) {
	switch {
	case s.Next.Rollout != nil:
		return wavesLeft(s)
	case s.In.InForce == nil:
		return 0, by
	case s.Paced.Reason != "":
		return s.PacedMoves, s.Paced
	}
	blocks := snapshot.MoveBlocks(s)
	alone := s.Next.Mode == plan.Enforce && s.Verdicts[gate.Balance] == snapshot.MoveBlock(s) // what else shuts it says so itself
	if len(blocks) == 0 || !alone {
		return 0, by
	}
	for _, made := range []func(*snapshot.Snapshot) *proposal.Proposed{proposal.MakeRoom, proposal.Level} {
		if p := made(s); p != nil && p.Want != nil {
			return Servers(s, rollout.Moves(s.Next, plan.Plan{Clusters: p.Want.Rows})), blocks[0]
		}
	}
	return 0, by
}

// wavesLeft are the moves of a rollout that levels which wait for the move budget, between two waves.
func wavesLeft(s *snapshot.Snapshot) (moves int, by change.Block) {
	r, budget := s.Next.Rollout, snapshot.BudgetOf(s, change.Balance)
	between := r.Mode == plan.ModeLive && r.Stage == plan.Moving && len(r.Moves) == 0
	if !between || !s.Changes.Cause.Levels() || budget.Left > 0 {
		return 0, by
	}
	names := func(yield func(string) bool) {
		for name, to := range s.Changes.Target {
			if row, planned := s.Next.Clusters[name]; planned && row.Replica != to && !yield(name) {
				return
			}
		}
	}
	return ledger.ServersOf(s.Beside, names, s.Next),
		change.Block{Reason: change.RateLimit, Until: budget.Next, Why: budget.String()}
}

// Paces remembers moves that level and wait for the move budget, or for change.restarts.every.
func Paces(s *snapshot.Snapshot, cause change.Cause, moves int, kind, waits string) {
	rate := kind == "BudgetWaits" || kind == "RestartWaits"
	if cause.Levels() && rate {
		s.PacedMoves, s.Paced = moves, change.Block{Reason: change.RateLimit, Why: strings.TrimPrefix(waits, "waits ")}
	}
}

// Tell tells of moves that wait, as of sizes and of the number of replicas.
func Tell(c *outcome.Draft, s *snapshot.Snapshot) {
	m := &c.Out.Memory.Changes
	before := m.Blocked
	m.Blocked = nil
	moves, by := blockedMoves(s)
	if moves == 0 {
		return
	}
	since, known := before[string(by.Reason)]
	if !known {
		since = c.In.Now
	}
	m.Blocked = map[string]time.Time{string(by.Reason): since}
	c.Out.Blocked = []resize.Blocked{{Replica: size.All, Resource: resize.ResourceClusters, Direction: change.Moves,
		Reason: by.Reason,
		From:   "0", To: strconv.Itoa(moves), Since: since, Until: by.Until, Why: by.Why}}
}

package cycle

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/size"
)

// moveBlocks is why change.moves lets nothing that levels begin now, beside its rates.
func moveBlocks(s *snapshot) []change.Block {
	var h change.Past
	if n := len(s.changes.Ledger); n > 0 {
		h.Last = s.changes.Ledger[n-1].At.Unix()
	}
	return s.In.Config.Change.MoveRules().MayMove(s.In.Now, h)
}

// moveBlock words the first of them; empty: there is none.
func moveBlock(s *snapshot) string {
	blocks := moveBlocks(s)
	if len(blocks) == 0 {
		return ""
	}
	why := fmt.Sprintf("change.moves: %s (%s)", blocks[0].Why, blocks[0].Reason)
	if until := blocks[0].Until; !until.IsZero() {
		why += ", until " + until.UTC().Format(time.RFC3339)
	}
	return why
}

// blockedMoves says which moves that level are wanted and do not happen for a rule of change.moves, and since when.
func blockedMoves(s *snapshot) (moves int, by change.Block) {
	switch {
	case s.Next.Rollout != nil:
		return wavesLeft(s)
	case s.In.InForce == nil:
		return 0, by
	case s.paced.Reason != "":
		return s.pacedMoves, s.paced
	}
	blocks := moveBlocks(s)
	alone := s.Next.Mode == plan.Enforce && s.verdicts[gate.Balance] == moveBlock(s) // what else shuts it says so itself
	if len(blocks) == 0 || !alone {
		return 0, by
	}
	for _, made := range []func(*snapshot) *proposed{makeRoom, level} {
		if p := made(s); p != nil && p.want != nil {
			return servers(s, rollout.Moves(s.Next, plan.Plan{Clusters: p.want.Rows})), blocks[0]
		}
	}
	return 0, by
}

// wavesLeft are the moves of a rollout that levels which wait for the move budget, between two waves.
func wavesLeft(s *snapshot) (moves int, by change.Block) {
	r, budget := s.Next.Rollout, budgetOf(s, change.Balance)
	between := r.Mode == plan.ModeLive && r.Stage == plan.Moving && len(r.Moves) == 0
	if !between || !s.changes.Cause.Levels() || budget.Left > 0 {
		return 0, by
	}
	names := func(yield func(string) bool) {
		for name, to := range s.changes.Target {
			if row, planned := s.Next.Clusters[name]; planned && row.Replica != to && !yield(name) {
				return
			}
		}
	}
	return ledger.ServersOf(s.Beside, names, s.Next), change.Block{Reason: change.RateLimit, Until: budget.Next, Why: budget.String()}
}

// paces remembers moves that level and wait for the move budget, or for change.restarts.every.
func (s *snapshot) paces(cause change.Cause, moves int, kind, waits string) {
	rate := kind == "BudgetWaits" || kind == "RestartWaits"
	if cause.Levels() && rate {
		s.pacedMoves, s.paced = moves, change.Block{Reason: change.RateLimit, Why: strings.TrimPrefix(waits, "waits ")}
	}
}

// blockMoves tells of moves that wait, as of sizes and of the number of replicas.
func (c *cycle) blockMoves(s *snapshot) {
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
	c.Out.Blocked = []resize.Blocked{{Replica: size.All, Resource: resize.ResourceClusters, Direction: change.Moves, Reason: by.Reason,
		From: "0", To: strconv.Itoa(moves), Since: since, Until: by.Until, Why: by.Why}}
}

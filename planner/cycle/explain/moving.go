package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// longestWait is more than anybody waits for a move to pay.
const longestWait = 10 * 365 * 24 * time.Hour

// moving weighs the move of an explained cluster; nil: it has no replica, or nothing is measured.
func (e *Explanation) moving(in input.Inputs, out outcome.Outcome, unit []int) *Moving {
	if e.Replica < 0 || e.Replica >= len(out.Now) || len(e.Choices) == 0 {
		return nil
	}
	own := out.Now[e.Replica]
	m := &Moving{To: e.bestOther(), Clusters: len(unit), Makespan: e.makespan(out, e.Replica)}
	m.After, m.Level = m.Makespan, e.Choices[e.Replica].Imbalance
	if m.To >= 0 {
		m.After, m.Level = e.makespan(out, m.To), e.with(out, m.To)
	}
	if c := out.Candidate; c != nil && c.High > 0 && m.To >= 0 {
		relieved := max(own.TotalLoad-c.High, 0) - max(own.TotalLoad-e.Load-c.High, 0)
		m.Saves = max(relieved-max(e.atOther(out, m.To)-c.High, 0), 0)
	}
	m.costs(in, e, unit)
	m.budgets(in, out, unit)
	m.Leave, m.Answer = e.leave(m, in, out)
	return m
}

// bestOther is the replica to which the candidate moves it, else that of which nothing speaks against it and where the
// fleet is most level; -1: there is none.
func (e *Explanation) bestOther() int {
	if e.To >= 0 {
		return e.To
	}
	var free []ChoiceOf
	for _, c := range e.Choices {
		if c.Replica != e.Replica && c.Against == "" {
			free = append(free, c)
		}
	}
	if len(free) == 0 {
		return -1
	}
	return slices.MinFunc(free, func(a, b ChoiceOf) int {
		return cmp.Or(cmp.Compare(a.Imbalance, b.Imbalance), cmp.Compare(a.With, b.With),
			cmp.Compare(a.Replica, b.Replica))
	}).Replica
}

// atOther is what another replica would carry with it, which may be one that there is not yet.
func (e *Explanation) atOther(out outcome.Outcome, replica int) plan.Load {
	if replica < len(out.Now) {
		return out.Now[replica].TotalLoad + e.Load
	}
	return e.Load
}

// costs adds what starts from an empty cache.
func (m *Moving) costs(in input.Inputs, e *Explanation, unit []int) {
	load := e.Load
	if m.Restarts = in.Config.Rollout.MovesRestart(); m.Restarts {
		load = e.total
	}
	m.LoadHours = load.Float() * evaluate.Cold.Hours()
	objects := loads.Objects(in.Config, e.table)
	if objects != nil {
		m.Objects = new(float64)
	}
	for i, n := range objects {
		if m.Restarts || slices.Contains(unit, i) {
			*m.Objects += n
		}
	}
	if m.Saves > 0 {
		lasts := load.Float() * float64(evaluate.Cold) / m.Saves.Float()
		m.PaysAfter = config.Duration(time.Duration(math.Ceil(min(lasts, float64(longestWait)))).Round(time.Second))
	}
}

// budgets says when the move budget has room.
func (m *Moving) budgets(in input.Inputs, out outcome.Outcome, unit []int) {
	names := func(yield func(string) bool) {
		for _, i := range unit {
			if !yield(out.Fleet.Clusters[i].Shard.ID) {
				return
			}
		}
	}
	rates := ledger.RatesOf(in)
	moves := ledger.ServersOf(standing.Servers(out.Fleet), names, out.Next)
	m.Limited = len(rates) > 0
	m.Done, _ = ledger.Soonest(in.Memory.Changes.Ledger, rates, out.Budget.Of, moves, in.Now)
}

// leave answers whether to leave it where it is, in one sentence.
func (e *Explanation) leave(m *Moving, in input.Inputs, out outcome.Outcome) (leave bool, answer string) {
	switch {
	case e.fixed != "" && e.To < 0:
		return true, "Leave it: " + e.fixed + "."
	case slices.Contains(out.Cordoned, e.Replica):
		return false, fmt.Sprintf("Do not leave it: a person wants replica %d empty, and it goes with the others there.", e.Replica)
	case e.unwell(out):
		return false, fmt.Sprintf("Do not leave it: replica %d is unwell, and failover moves what is on it.", e.Replica)
	case in.InForce != nil && in.InForce.Rollout != nil:
		return true, "Leave it for now: a rollout is under way, and nothing else is weighed before its end."
	case e.To >= 0:
		return false, fmt.Sprintf("Do not leave it: the partition has it on replica %d; the plan: %s.", e.To, e.Verdict)
	case m.To < 0 && len(out.Now) == 1:
		return true, "Leave it: there is no other replica."
	case m.To < 0:
		return true, "Leave it: every other replica is ruled out."
	}
	return true, e.stay(m, in, out)
}

func (e *Explanation) unwell(out outcome.Outcome) bool {
	for _, sick := range out.Replicas.Sick {
		if sick.Replica == e.Replica {
			return true
		}
	}
	return false
}

// stay is why a cluster stays that could go.
func (e *Explanation) stay(m *Moving, in input.Inputs, out outcome.Outcome) string {
	cost := fmt.Sprintf("%.3g load hours", m.LoadHours)
	carries, c := out.Now[e.Replica].TotalLoad, out.Candidate
	if c == nil {
		return "Leave it: no plan could be made for the fleet; the problems of ballast plan say why."
	}
	high := c.High
	if high == 0 {
		return fmt.Sprintf("Leave it: the partition does; the move would bring the fullest replica from %s to %s for %s.",
			m.Makespan.Display(), m.After.Display(), cost)
	}
	if e.Load == 0 {
		return "Leave it: it makes no load, so that its move mends nothing."
	}
	if m.Saves == 0 {
		return fmt.Sprintf("Leave it: replica %d carries %s and may carry %s, so that the move mends nothing and costs %s.",
			e.Replica, carries.Display(), high.Display(), cost)
	}
	mends := fmt.Sprintf("the move takes %s of what replica %d carries above %s, and costs %s", m.Saves.Display(),
		e.Replica, high.Display(), cost)
	if b := in.Config.Evaluate.CostBenefit; b != nil && m.PaysAfter > b.Horizon {
		return fmt.Sprintf("Leave it: %s, which pays only if that lasts longer than evaluate.costBenefit.horizon (%s).",
			mends, b.Horizon)
	}
	others := 0
	for _, move := range c.Moves {
		if move.From == e.Replica {
			others++
		}
	}
	if others > 0 {
		return fmt.Sprintf("Leave it: the partition relieves replica %d by %s of others.", e.Replica,
			plural.Of(others, "move"))
	}
	return fmt.Sprintf("Leave it for now: %s, which pays once that has lasted %s.", mends, m.PaysAfter)
}

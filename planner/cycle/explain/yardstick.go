package explain

import (
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/partition/exact"
	"ballast/planner/plan"
)

// Yardstick is how the fleet is divided beside what is possible by loads, and by what cannot move, alone: other rules
// may leave less. Of each Bound nothing is below Least, and Best was found.
type Yardstick struct {
	Replicas int       `json:"replicas"`
	Makespan plan.Load `json:"makespan"`

	Capacity   plan.Load `json:"capacity,omitempty"` // what a replica may carry, or is known to; 0: nothing says it
	Fewest     *Least    `json:"fewestReplicas,omitempty"`
	Level      LeastLoad `json:"leastMakespan"`   // of as many replicas as there are
	MovesUntil plan.Load `json:"movesUntil"`      // no replica of several carries more; 0: the partition knows no such line
	Moves      *Least    `json:"moves,omitempty"` // the fewest for that
	Stuck      bool      `json:"stuck,omitempty"` // no moves at all lead there
}

// Least is a bound of a count. Without Best nothing was found.
type Least struct {
	Least  int64  `json:"least"`
	Best   *int64 `json:"best,omitempty"`
	Proved bool   `json:"proved"`
}

// LeastLoad is a bound of a load.
type LeastLoad struct {
	Least  plan.Load `json:"least"`
	Best   plan.Load `json:"best"`
	Proved bool      `json:"proved"`
}

// yardstickSteps is how long each bound is looked for: some hundredths of a second.
const yardstickSteps = 200_000

// yardstick measures a fleet; nil: nothing is known of its loads.
func yardstick(g *ground.Ground, out outcome.Outcome) *Yardstick {
	s, all := exact.Standing{Replicas: len(out.Now)}, plan.Load(0)
	if out.Loads == nil || len(out.Now) == 0 {
		return nil
	}
	for _, u := range g.Units().All() {
		var load plan.Load
		for _, i := range u.Clusters {
			load += out.Loads[i]
		}
		all += load
		if at := g.Units().Home(u, out.Loads); at >= 0 && at < s.Replicas {
			s.Loads, s.Now, s.Fixed = append(s.Loads, load), append(s.Now, at),
				append(s.Fixed, !g.Movable(u) || g.Fixed().To(u.Clusters[0]).At >= 0)
		}
	}
	if all == 0 {
		return nil
	}
	y := &Yardstick{Replicas: s.Replicas}
	for _, r := range out.Now {
		y.Makespan = max(y.Makespan, r.TotalLoad)
	}
	level := exact.Makespan(s.Loads, s.Replicas, yardstickSteps)
	y.Level = LeastLoad{plan.Load(level.Least), plan.Load(level.Best), level.Proved()}
	if out.Line != nil && out.Line.Load > 0 {
		y.Capacity, y.Fewest = out.Line.Load, leastOf(exact.Replicas(s.Loads, out.Line.Load, yardstickSteps))
	}
	if c := out.Candidate; c != nil && c.Low > 0 {
		moves, possible := exact.Moves(s, c.Low, yardstickSteps)
		y.MovesUntil, y.Stuck = c.Low, !possible
		if possible {
			y.Moves = leastOf(moves)
		}
	}
	return y
}

func leastOf(b exact.Bound) *Least {
	l := &Least{Least: b.Least, Proved: b.Proved()}
	if b.Best != exact.None {
		l.Best = &b.Best
	}
	return l
}

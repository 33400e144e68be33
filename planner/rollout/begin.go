package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
	"ballast/planner/rollout/readiness"
)

// Proposal is where a rollout goes. A ControllerReplicas of 0 leaves an absent env to be set to Replicas.
type Proposal struct {
	Replicas           int                 `json:"replicas"`
	ControllerReplicas int                 `json:"controllerReplicas"`
	Rows               map[string]plan.Row `json:"rows"`
}

// Errors that refuse to begin a rollout.
var (
	ErrUnderWay     = errors.New("a rollout is under way")
	ErrFreeReplicas = errors.New("the replicas are people's (partition.replicas: workload) and mode x0y stops them all: " +
		"set rollout.live or rollout.default, or give partition.replicas a number")
)

// Begin answers the plan to write for a decision: the first stage of the rollout that leads there, or the new rows
// alone where no cluster moves and no count changes. The revision is left to the store. In mode live the env is what
// Begin holds it at, whatever next says, the rows wait for their waves, and readiness.Missing must have nothing to say.
func Begin(now plan.Plan, next Proposal, o basis.Options, at time.Time) (plan.Plan, error) {
	p := now.Clone()
	mode := cmp.Or(o.Mode, plan.ModeDefault)
	if mode == plan.ModeLive && !leavesEnv(now, next, o) {
		next.ControllerReplicas = readiness.LiveEnv(now, next.Replicas)
	}
	moves := Moves(now, plan.Plan{Clusters: next.Rows})
	from := plan.Count{Replicas: now.Replicas, ControllerReplicas: now.ControllerReplicas}
	stays := len(moves) == 0 && from == plan.Count{Replicas: next.Replicas, ControllerReplicas: next.ControllerReplicas}
	if now.Rollout == nil && stays {
		p.Clusters = maps.Clone(next.Rows)
		return p, nil
	}
	to, err := destination(now, next, mode)
	if err != nil {
		return p, fmt.Errorf("beginning a rollout to %d replicas: %w", next.Replicas, err)
	}
	p.Rollout = &plan.Rollout{Mode: mode, From: wayBack(now), Replicas: to.Replicas,
		ControllerReplicas: to.ControllerReplicas}
	p.Clusters = maps.Clone(next.Rows)
	t := newTransition(basis.Basis{Plan: p, At: at})
	switch mode {
	case plan.ModeLive:
		withhold(&t.Plan, now, next.Rows, moves)
		live{t}.begin()
	case plan.ModeX0Y:
		p.Rollout.Moves = withhold(&t.Plan, now, next.Rows, moves)
		x0y{t}.begin()
	default:
		p.Rollout.Moves = postpone(&t.Plan, now, next.Rows, moves)
		restarts{t}.enter(first(t.Plan), Advanced, "")
	}
	return t.Plan, nil
}

// leavesEnv reports whether a rollout in mode live takes the env as it was proposed: a workload that opted out is not
// written, a rescue waits for no restart, and one that is to keep its env keeps it while that suffices.
func leavesEnv(now plan.Plan, next Proposal, o basis.Options) bool {
	suffices := next.Replicas <= now.ControllerReplicas
	return now.Unmanaged || o.Rescue || o.KeepEnv && suffices
}

// destination checks a Proposal: at least one replica, an env that lets each of them own its shard, and no row beyond.
func destination(now plan.Plan, next Proposal, mode string) (plan.Count, error) {
	to := plan.Count{Replicas: next.Replicas, ControllerReplicas: next.ControllerReplicas}
	switch {
	case now.Rollout != nil:
		return to, ErrUnderWay
	case mode != plan.ModeLive && mode != plan.ModeX0Y && mode != plan.ModeDefault:
		return to, fmt.Errorf("this version knows no mode %q", mode)
	case mode == plan.ModeX0Y && now.FreeReplicas:
		return to, ErrFreeReplicas
	case to.Replicas < 1:
		return to, fmt.Errorf("%d replicas are fewer than one", to.Replicas)
	}
	if now.Target.Kind != plan.Deployment {
		to.ControllerReplicas = max(to.ControllerReplicas, to.Replicas)
	}
	for _, name := range slices.Sorted(maps.Keys(next.Rows)) {
		if r := next.Rows[name].Replica; r < 0 || r >= to.Replicas {
			return to, fmt.Errorf("cluster %q has replica %d of %d", name, r, to.Replicas)
		}
	}
	return to, nil
}

// wayBack is what a rollout returns to: the count in force, with an env that gives each cluster one owner where there
// was none.
func wayBack(now plan.Plan) plan.Count {
	c := plan.Count{Replicas: max(now.Replicas, 1), ControllerReplicas: now.ControllerReplicas}
	if now.Target.Kind != plan.Deployment && c.ControllerReplicas <= 1 {
		c.ControllerReplicas = c.Replicas
	}
	return c
}

// postpone answers the moves that are due, and withholds them where they wait for a growing workload.
func postpone(p *plan.Plan, now plan.Plan, rows map[string]plan.Row, moves []Move) map[string]int {
	if first(*p) != plan.Assigning {
		return withhold(p, now, rows, moves)
	}
	due := make(map[string]int, len(moves))
	for _, m := range moves {
		due[m.Cluster] = m.To
	}
	return due
}

// withhold gives the rows that move later their present replica, and answers the moves that are due: for a cluster that
// has no present replica in the plan, its row is left out until then, so that it keeps the shard it was given when it
// was created.
func withhold(p *plan.Plan, now plan.Plan, rows map[string]plan.Row, moves []Move) map[string]int {
	due := make(map[string]int, len(moves))
	for _, m := range moves {
		due[m.Cluster] = m.To
		row := rows[m.Cluster]
		row.Replica = m.From
		p.Clusters[m.Cluster] = row
	}
	safe := min(p.Rollout.From.Reach(now.Target.Kind), p.Rollout.To().Reach(now.Target.Kind))
	for name, row := range rows {
		if _, known := now.Clusters[name]; !known && row.Replica >= safe {
			due[name] = row.Replica
			delete(p.Clusters, name)
		}
	}
	return due
}

// Move is a cluster that changes its replica.
type Move struct {
	Cluster string `json:"cluster"`
	From    int    `json:"from"`
	To      int    `json:"to"`
	Load    string `json:"load,omitempty"`
}

// Moves lists by name the clusters that both plans know and that change their replica. A new cluster does not move, nor
// does one that is gone.
func Moves(now, next plan.Plan) []Move {
	var moves []Move
	for name, row := range next.Clusters {
		if old, known := now.Clusters[name]; known && old.Replica != row.Replica {
			moves = append(moves, Move{Cluster: name, From: old.Replica, To: row.Replica, Load: row.Load})
		}
	}
	slices.SortFunc(moves, func(a, b Move) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return moves
}

// first is the stage a rollout begins with, from a plan that still has its old count. A count that stays needs no
// scaling, but for an absent env, which then is set.
func first(p plan.Plan) plan.Stage {
	if shrinks(p) || p.Replicas == p.Rollout.Replicas && p.ControllerReplicas == p.Rollout.ControllerReplicas {
		return plan.Assigning
	}
	return plan.Scaling
}

package preview

import (
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/rollout/readiness"
)

// Forecast is what it takes to bring the candidate about.
type Forecast struct {
	Mode     string     `json:"mode"`
	From     plan.Count `json:"from"`
	To       plan.Count `json:"to"`
	Moves    int        `json:"moves"`
	PerWave  int        `json:"perWave,omitempty"`  // mode live: clusters in a wave at most
	Waves    int        `json:"waves,omitempty"`    // mode live: at least
	Once     bool       `json:"once,omitempty"`     // mode live: one restart, for the env alone, comes before everything else
	WithNext bool       `json:"withNext,omitempty"` // that restart waits for a change of the pod template that anybody makes
	Restarts bool       `json:"restarts,omitempty"` // pods that run restart for what is to be
	Limited  bool       `json:"limited,omitempty"`  // there is a move budget
	Done     time.Time  `json:"done,omitzero"`      // when the budget lets the last cluster move at the earliest; zero: never
	Missing  []string   `json:"missing,omitempty"`  // what must be mended first, a sentence each
}

// Foresee says it of an outcome; nil where there is no candidate, nothing to do for it, or a rollout under way, after
// which all is measured anew.
func Foresee(in input.Inputs, out outcome.Outcome) *Forecast {
	if out.Candidate == nil || in.InForce != nil && in.InForce.Rollout != nil {
		return nil
	}
	s := snapshot.Of(out, &ground.Ground{In: in, Next: out.Next, Fleet: out.Fleet, Pins: out.Pins,
		Beside: standing.Servers(out.Fleet)})
	replicas := len(out.Candidate.Replicas)
	v := &Forecast{From: plan.Count{Replicas: out.Next.Replicas, ControllerReplicas: out.Next.ControllerReplicas},
		To:    plan.Count{Replicas: replicas, ControllerReplicas: s.Env().Of(replicas)},
		Moves: ledger.ServersOf(s.Beside, outcome.ClustersOf(out.Candidate.Moves), out.Next),
		Once:  s.Env().Prepares(), WithNext: s.Env().Awaits()}
	if v.WithNext {
		v.To.ControllerReplicas = s.Env().Constant()
	}
	if out.Next.FreeReplicas {
		v.To.Replicas = v.From.Replicas
	}
	if out.Next.Target.Kind == plan.Deployment { // it has no env
		v.To.ControllerReplicas = v.From.ControllerReplicas
	}
	if v.Moves == 0 && v.From.Replicas == v.To.Replicas && !v.Once {
		return nil
	}
	addRollout(s, v)
	rates, clusters := ledger.RatesOf(in), s.Budget.Of
	v.Limited = len(rates) > 0
	if v.Mode == plan.ModeX0Y { // all at once
		v.Done, _ = change.When(in.Memory.Changes.Ledger, rates, clusters, in.Now, v.Moves)
		return v
	}
	v.Done, _ = ledger.Soonest(in.Memory.Changes.Ledger, rates, clusters, v.Moves, in.Now)
	return v
}

// addRollout adds what a rollout of the mode takes.
func addRollout(s *snapshot.Snapshot, v *Forecast) {
	o, next := snapshot.RolloutOptions(s, change.Balance), s.Next
	rereads := next.Target.Kind == plan.Deployment && v.From.Replicas != v.To.Replicas // its pods read their number once
	switch v.Mode = o.Mode; o.Mode {
	case plan.ModeLive:
		v.PerWave = max(o.MaxMovesPerWave, 1)
		v.Waves = (v.Moves + v.PerWave - 1) / v.PerWave
		v.Restarts = rereads
		v.Missing = readiness.Missing(next, s.Seen())
		if unknown := readiness.OwnersUnknown(s.Seen()); unknown != "" && s.In.Observed.Known {
			v.Missing = append(v.Missing, unknown)
		}
	case plan.ModeX0Y:
		if v.Restarts = true; next.FreeReplicas {
			v.Missing = []string{rollout.ErrFreeReplicas.Error()}
		}
	default:
		v.Restarts = o.RolloutRestart || rereads || v.From.ControllerReplicas != v.To.ControllerReplicas
	}
}

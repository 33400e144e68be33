package cycle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/rollout/basis"
)

// settle answers a replica below that number for every row: a pin's, else the decided one, else the one it has, and
// where none of them counts what placement answers. The Secrets of one server have one, and one that ballast may not
// write keeps its own. Parted are clusters that leave a group whose pin keeps it where nobody works.
func (s *snapshot) settle(replicas int, decided map[string]int, parted map[string]bool) map[string]int {
	clusters := make([]placement.Cluster, 0, len(s.Next.Clusters))
	var last map[string]plan.Load
	if s.Partial {
		last = loads.Last(s.Ground)
	}
	for i := range s.Fleet.Clusters {
		p := s.Cluster(i)
		if parted[p.Name] {
			p.Server = s.Fleet.Clusters[i].OfServer()
		}
		p.Load = last[p.Name]
		if s.loads != nil {
			p.Load = s.loads[i]
		}
		_, row := s.Next.Clusters[p.Name]
		pin, pinned := s.Pins[p.Name]
		to, chosen := decided[p.Name]
		switch {
		case row && pinned && pin < replicas:
			p.At, p.Claim = pin, placement.Pinned
		case chosen && p.Claim < placement.Decided:
			p.At, p.Claim = to, placement.Decided
		}
		clusters = append(clusters, p)
	}
	for _, name := range standing.RowsWithoutSecret(s.Next.Clusters, s.Fleet) {
		row := s.Next.Clusters[name]
		gone := placement.Cluster{Name: name, Server: s.Beside.Of(name, row.Server), At: row.Replica, Claim: placement.Follows, Load: last[name], Memory: s.ByName[name]}
		clusters = append(clusters, gone)
	}
	of := make(map[string]int, len(clusters))
	for i, to := range placement.Settle(clusters, s.bins(replicas), placement.Policy{MaxClusters: s.MostClusters(), Memory: s.InUse.Most()}) {
		of[clusters[i].Name] = to
	}
	return of
}

// wantOf words a target for the rollout: clusters whose replica was decided, and all others where they settle.
func (s *snapshot) wantOf(replicas int, decided map[string]int) *rollout.Proposal {
	return s.wantParted(replicas, decided, nil)
}

// wantParted is wantOf, where some clusters do not stay with their groups.
func (s *snapshot) wantParted(replicas int, decided map[string]int, parted map[string]bool) *rollout.Proposal {
	rows, of := make(map[string]plan.Row, len(s.Next.Clusters)), s.settle(replicas, decided, parted)
	for name, row := range s.Next.Clusters {
		if !staysAsItIs(s.Ground, name, row, of[name]) {
			row.Replica = of[name]
			pin, pinned := s.Pins[name]
			row.Pinned = pinned && pin == row.Replica
		}
		rows[name] = row
	}
	return &rollout.Proposal{Replicas: replicas, ControllerReplicas: s.Env().Of(replicas), Rows: rows}
}

// limit leaves moves for later that the budget has no room for. It answers what all of it waits for, "" where it may
// begin: mode live, which looks at the budget before each wave, for room for one move; x0y, which stops every replica,
// for room for as many as there ever is room for, and what a person asked for, which should stop them once, for all. Where
// replicas that go restart the others, too, they do so at the end alone, and none of the steps before it is a restart.
func limit(s *snapshot, w *rollout.Proposal, cause change.Cause, o basis.Options) (waits string, told []problem.Problem) {
	moves := rollout.Moves(s.Next, plan.Plan{Clusters: w.Rows})
	servers := servers(s, moves)
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
		return room(s, cause, servers, ", since every replica stops for it", ", or set rollout.live, which moves some at a time")
	case o.Mode == plan.ModeLive:
		if o.Budget < 1 {
			return room(s, cause, 1, "", "")
		}
		if scalingRestarts(s, w) && w.Replicas < s.Next.Replicas {
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
func mostAtOnce(s *snapshot) int {
	most := math.MaxInt
	for _, r := range ledger.RatesOf(s.In) {
		most = min(most, r.Allowed(s.budget.Of))
	}
	return most
}

// room says when the budget has room for so many moves at once, and where it never has, with the mend.
func room(s *snapshot, cause change.Cause, moves int, since, mend string) (waits string, told []problem.Problem) {
	budget := budgetOf(s, cause)
	at, ok := change.When(s.changes.Ledger.Before(cause), ledger.RatesOf(s.In), s.budget.Of, s.In.Now, moves)
	switch {
	case moves == 1:
		return "waits for the move budget: " + budget.String(), nil
	case ok:
		return fmt.Sprintf("waits until %s for a move budget of %d at once%s: %s", at.UTC().Format(time.RFC3339), moves, since, budget), nil
	}
	never := fmt.Sprintf("waits for a move budget of %d at once%s, and change.moves.rate never has room for them: raise it%s: %s", moves, since, mend, budget)
	return never, []problem.Problem{{Phase: problem.PhaseRollout, Kind: "BudgetTooSmall", Message: "what is to move " + never}}
}

// cut takes moves out of what is wanted until the budget has room: those off replicas that go come first, then the
// heaviest, and the clusters of one server stay together. Replicas go only when all that is on them can leave at once;
// until then some of it leaves before.
func cut(s *snapshot, w *rollout.Proposal, moves []rollout.Move, budget int) {
	goes := func(m rollout.Move) bool { return m.From >= w.Replicas }
	slices.SortStableFunc(moves, func(x, y rollout.Move) int {
		return cmp.Or(discover.FalseFirst(!goes(x), !goes(y)), cmp.Compare(plan.LoadOf(y.Load), plan.LoadOf(x.Load)))
	})
	leaving := slices.DeleteFunc(slices.Clone(moves), func(m rollout.Move) bool { return !goes(m) })
	if servers(s, leaving) > budget {
		w.Replicas, w.ControllerReplicas = s.Next.Replicas, s.Next.ControllerReplicas
	}
	for _, unit := range placement.Group(len(moves), func(i int) string { return s.Beside.Of(moves[i].Cluster, w.Rows[moves[i].Cluster].Server) }) {
		if budget > 0 {
			budget -= servers(s, pick(moves, unit))
			continue
		}
		for _, i := range unit {
			row := w.Rows[moves[i].Cluster]
			row.Replica = moves[i].From
			w.Rows[moves[i].Cluster] = row
		}
	}
}

// servers is how many moves those clusters' are: one for each server.
func servers(s *snapshot, moves []rollout.Move) int {
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

// restarts reports whether what is wanted restarts the fleet in that mode.
func restarts(s *snapshot, w *rollout.Proposal, o basis.Options) bool {
	moves := len(rollout.Moves(s.Next, plan.Plan{Clusters: w.Rows})) > 0
	switch {
	case o.Mode == plan.ModeX0Y:
		return moves || w.Replicas != s.Next.Replicas || w.ControllerReplicas != s.Next.ControllerReplicas
	case scalingRestarts(s, w):
		return true
	case s.Next.Target.Kind != plan.Deployment && w.ControllerReplicas != s.Next.ControllerReplicas:
		return true
	}
	return o.Mode == plan.ModeDefault && o.RolloutRestart && moves
}

// scalingRestarts reports whether what is wanted scales a Deployment, whose pods read their number once.
func scalingRestarts(s *snapshot, w *rollout.Proposal) bool {
	return s.Next.Target.Kind == plan.Deployment && w.Replicas != s.Next.Replicas && !s.Next.FreeReplicas
}

// secretsPinWaits is what replicas that a Secret's pin asks for wait for; empty: nothing, or nobody asks for them.
func (s *snapshot) secretsPinWaits(p *proposed) string {
	if !p.bySecret {
		return ""
	}
	return s.PinsWait(p.want.Replicas)
}

// waitsFor is what a proposal waits for; empty: it may begin.
func (s *snapshot) waitsFor(p *proposed, o basis.Options) (kind, waits string, told []problem.Problem) {
	if until := s.In.Memory.HeldUntil(s.In.Now); o.Mode == plan.ModeX0Y && !until.IsZero() { // it would stop every replica again and again
		return "HeldOff", fmt.Sprintf("waits until %s, since a rollout failed or went back to an earlier plan, and rollout.x0y stops every replica", until.UTC().Format(time.RFC3339)), nil
	}
	if waits = s.secretsPinWaits(p); waits != "" {
		return "PinWaits", waits, nil
	}
	if waits, told = limit(s, p.want, p.cause, o); waits != "" {
		return "BudgetWaits", waits, told
	}
	atOnce := p.atOnce || p.asked && p.want.Replicas != s.Next.Replicas // which the budget may have put off
	waitsItsTurn := p.cause == change.Balance && !atOnce
	if again := sizing.RestartAgain(s.In, s.changes); waitsItsTurn && !again.IsZero() && restarts(s, p.want, o) {
		return "RestartWaits", restartWaits(s, again), nil
	}
	return "", "", told
}

// restartWaits says until when a restart of every replica waits, and why.
func restartWaits(s *snapshot, again time.Time) string {
	every := time.Duration(s.In.Config.Change.Restarts.Every)
	if sizing.Blind(s.In, s.changes) {
		return fmt.Sprintf("waits until a pod is seen, since every replica restarts for it, and nobody saw whether they just did "+
			"(change.restarts.every is %s); rollout.live restarts none", every)
	}
	return fmt.Sprintf("waits until %s, since every replica restarts for it, and did so at %s "+
		"(change.restarts.every is %s); rollout.live restarts none",
		again.UTC().Format(time.RFC3339), s.changes.Restarted.UTC().Format(time.RFC3339), every)
}

// refuses says why a rollout does not begin, and the kind of the problem; without words people are told otherwise.
func (s *snapshot) refuses(next plan.Plan, o basis.Options) (kind, why string) {
	if room := plan.Room(next); room < 0 {
		return "PlanFull", fmt.Sprintf("what is to begin takes %d bytes more than a plan may have, so it does not (rollout.live writes some moves at a time)", -room)
	}
	if s.Next.Unmanaged && needsWorkload(s.Next, next, o) {
		return "WorkloadUnmanaged", fmt.Sprintf("the workload is annotated as unmanaged, and nothing begins that changes its replicas or its env or restarts it; "+
			"take the annotation %s off for what waits", plan.AnnotationUnmanaged)
	}
	if s.In.Workload.ContainerGone && needsWorkload(s.Next, next, o) {
		return "ContainerGone", "the pod template has no container that is the application-controller's, and nothing begins that changes its replicas or its env or restarts it until it has one again"
	}
	scales := next.Rollout != nil && next.Rollout.Replicas != s.Next.Replicas && !s.Next.FreeReplicas
	stops := next.Rollout != nil && o.Mode == plan.ModeX0Y
	down := s.In.Enforcement != nil && !*s.In.Enforcement
	if down && (scales || stops) {
		return "EnforcementDown", ""
	}
	return "", ""
}

// needsWorkload reports whether a rollout writes to the workload: another number of replicas or another env, or a
// restart.
func needsWorkload(now, next plan.Plan, o basis.Options) bool {
	r := next.Rollout
	if r == nil {
		return false
	}
	return !now.FreeReplicas && r.Replicas != now.Replicas || r.ControllerReplicas != now.ControllerReplicas ||
		r.Mode == plan.ModeX0Y || r.Mode == plan.ModeDefault && o.RolloutRestart
}

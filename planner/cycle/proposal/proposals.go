// Package proposal is what may begin: a function of the snapshot for each change that a cycle considers, most urgent
// first.
package proposal

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/cycle/standing"
	"ballast/planner/failover"
	"ballast/planner/failover/health"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// Proposed is what a proposal answers: a change that the cycle may begin, where it goes, why and for whose sake;
// without one, what people are to be told all the same.
type Proposed struct {
	Want    *rollout.Proposal // nil: nothing is to begin
	Why     string
	Cause   change.Cause
	Told    []problem.Problem
	Verdict string // of the candidate
	Done    bool   // what a person asked for holds, or is refused
	Holds   bool   // it holds: what is elected is left alone for a while

	AtOnce   bool           // clusters have several owners until then: no restart of before makes it wait
	Asked    bool           // a person wrote the number of replicas: nor does one make it wait where it comes about
	BySecret bool           // a Secret's annotation asks for it
	Follows  bool           // Argo CD has it so already
	Worth    snapshot.Worth // of moves that were weighed
	Last     *failover.Last // what counts as the last failover: if this one begins, or at once where nothing is failed over
}

// Level is what was elected.
func Level(s *snapshot.Snapshot) *Proposed {
	if s.Elected == nil {
		return nil
	}
	if waits := s.LevelWaits(); waits != "" {
		return &Proposed{Verdict: "waits: " + waits}
	}
	fixed, replicas := s.In.Config.Partition.Replicas, s.Elected.Replicas
	asked := fixed != nil && fixed.Fixed == replicas && replicas != s.Next.Replicas
	most := s.In.Config.Partition.MaxReplicas
	beyond := most != nil && s.Next.Replicas > *most && replicas < s.Next.Replicas
	insists := asked || beyond
	chosen, waits := withRoom(s, division.Chosen(s.Ground, *s.Elected), insists)
	if insists { // what stays may be on a replica that is to go: it goes where there is room
		maps.DeleteFunc(chosen, func(_ string, at int) bool { return at >= replicas })
	}
	w := s.WantOf(replicas, chosen)
	if insists {
		for name, row := range w.Rows {
			chosen[name] = row.Replica
		}
	}
	moves := s.Moves(chosen)
	if vain := s.Vain(w); len(vain) > 0 {
		return &Proposed{Verdict: "moves nothing but clusters whose Secrets ballast cannot write: " + problem.ClipList(vain)}
	}
	if waits := besideLongDown(s, w, moves); waits != "" {
		return &Proposed{Verdict: "waits: " + waits}
	}
	nothing := len(moves) == 0 && w.Replicas == s.Next.Replicas && w.ControllerReplicas == s.Next.ControllerReplicas
	switch {
	case waits != "" && (nothing || replicas < s.Next.Replicas && !insists):
		return &Proposed{Verdict: "waits: " + waits}
	case nothing:
		return nil
	}
	why := fmt.Sprintf("moves %d of %d clusters, %d replicas instead of %d",
		ledger.ServersOf(s.Beside, outcome.ClustersOf(moves), s.Next),
		ledger.ServersOf(s.Beside, maps.Keys(s.Next.Clusters), s.Next), w.Replicas, s.Next.Replicas)
	pays := s.Worth
	if waits == "" {
		why += fmt.Sprintf(": makespan over mean %.2f instead of %.2f", outcome.Imbalance(s.Candidate.Replicas),
			outcome.Imbalance(s.Now))
		if room := s.Line.Headroom(s.Now, s.Candidate.Replicas); room != "" {
			why += ", " + room
		}
	} else {
		why += "; other moves wait: " + waits
		pays = pays.Of(moves)
	}
	if s.Worth.Said != "" {
		why += "; " + s.Worth.Said
	}
	why += Bill(s, w, moves)
	if waits := restartPays(s, w); waits != "" {
		return &Proposed{Verdict: waits}
	}
	return &Proposed{Want: w, Cause: change.Balance, Asked: asked, Why: why, Worth: pays}
}

// besideLongDown says why what is wanted waits all the same for a replica that has not worked for long: one comes
// behind it, or goes before it, only where it starts, and the partition may have been asked without knowing of it.
func besideLongDown(s *snapshot.Snapshot, w *rollout.Proposal, moves []outcome.Move) string {
	for _, replica := range slices.Sorted(maps.Keys(s.LongDown())) {
		switch {
		case w.Replicas != s.Next.Replicas || w.ControllerReplicas != s.Next.ControllerReplicas:
			return fmt.Sprintf("replica %d has not worked for long: their number stays until it does", replica)
		case slices.ContainsFunc(moves, func(m outcome.Move) bool { return m.To == replica }):
			return fmt.Sprintf("replica %d has not worked for long, and clusters would go there", replica)
		}
	}
	return ""
}

// Rollback is the earlier plan that a person asks for: its rows for the clusters that are still there, its replicas
// within today's bounds. Once it holds, the balance is left alone for as long as after a rollout that failed, or
// ballast would undo at once what the person asked for.
func Rollback(s *snapshot.Snapshot) *Proposed {
	r := s.In.Rollback
	if r == nil || s.Done {
		return nil
	}
	if why := r.Refused(s.Next); why != "" {
		return &Proposed{Done: true, Told: []problem.Problem{{Phase: problem.PhaseRollout,
			Subject: plan.AnnotationRollback, Kind: "RollbackRefused", Message: why}}}
	}
	replicas := r.Plan.Replicas
	if least := s.In.Config.Partition.MinReplicas; least != nil {
		replicas = max(replicas, *least)
	}
	if replicas = max(replicas, s.ReplicasHeld(), s.ReplicasOwned()); s.Next.FreeReplicas {
		replicas = s.Next.Replicas
	}
	back, closed, stuck := map[string]int{}, s.Closed(), s.Stuck()
	var stay, stays []string
	for _, cl := range s.Fleet.Clusters {
		name := cl.Shard.ID
		now, present := s.Next.Clusters[name]
		if !present {
			continue
		}
		if row, known := r.Plan.Clusters[name]; known && row.Replica < replicas {
			switch goes := now.Replica != row.Replica; {
			case goes && closed[row.Replica]:
				stay = append(stay, name)
				continue
			case goes && stuck[name]: // adopt would take it back, and the rollback begin anew each time
				stays = append(stays, name)
				continue
			}
			back[name] = row.Replica
		}
		if pin, pinned := s.Pins[name]; pinned && s.Holds(name, pin) {
			replicas = max(replicas, pin+1)
		}
	}
	told := slices.Concat(
		skips(r, stay, "the replica is unwell or cordoned"),
		skips(r, stays, cannotWrite),
		skips(r, keepApart(s, back, replicas), "a group keeps them apart from what is there"),
		skips(r, KeepWithin(s, back, replicas), "the replica has not the memory"))
	w := s.WantOf(replicas, back)
	stands := len(rollout.Moves(s.Next, plan.Plan{Clusters: w.Rows})) == 0 && replicas == s.Next.Replicas
	vain := s.Vain(w)
	if told = append(told, skips(r, vain, cannotWrite)...); stands || len(vain) > 0 {
		return &Proposed{Done: true, Holds: true, Told: told}
	}
	return &Proposed{Want: w, Cause: change.Rollback, Told: told,
		Why: fmt.Sprintf("goes back to revision %d, as a person asked", r.Revision)}
}

// cannotWrite is why a rollback leaves some where they are.
const cannotWrite = "ballast cannot write their Secrets, or one that they stay together with"

// skips says what a rollback leaves where it is, and why.
func skips(r *input.Rollback, names []string, why string) []problem.Problem {
	if len(names) == 0 {
		return nil
	}
	return []problem.Problem{{Phase: problem.PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackSkips",
		Message: fmt.Sprintf("of what is to go back to revision %d, %s stay: %s", r.Revision, problem.ClipList(names), why)}}
}

// keepApart takes out of back what would share a replica with another one of its group, and names that.
func keepApart(s *snapshot.Snapshot, back map[string]int, replicas int) (stay []string) {
	for again := len(s.Groups) > 0; again; {
		again = false
		rows := s.WantOf(replicas, back).Rows
		for _, g := range s.Groups {
			for _, name := range crowded(s, g, rows) {
				if to, goes := back[name]; goes && to != s.Next.Clusters[name].Replica {
					delete(back, name)
					stay, again = append(stay, name), true
				}
			}
		}
	}
	slices.Sort(stay)
	return stay
}

// crowded are the clusters of a group that is kept apart which share a replica by those rows.
func crowded(s *snapshot.Snapshot, g ground.Group, rows map[string]plan.Row) (names []string) {
	if !g.Apart {
		return nil
	}
	on := map[int][]string{}
	for _, i := range g.Members {
		name, at := s.Fleet.Clusters[i].Shard.ID, s.Standing(i)
		if row, planned := rows[name]; planned {
			at = row.Replica
		}
		on[at] = append(on[at], name)
	}
	for _, sharing := range on {
		if len(sharing) > 1 {
			names = append(names, sharing...)
		}
	}
	slices.Sort(names)
	return names
}

// peoplesReplicas are replicas that people changed themselves, where they are the workload's. A freeze and a trip keep
// no replicas waiting that stand as they do; after a rollout that failed only those that people took away are urgent,
// for their clusters have no owner. Where nobody works for any that stays, nobody could take them: that waits for one.
func peoplesReplicas(s *snapshot.Snapshot) *Proposed {
	if !s.Next.FreeReplicas {
		return nil
	}
	found := s.HeldByPeople()
	fewer := found < s.Next.Replicas && s.May(gate.FollowOut)
	more := found > s.Next.Replicas && s.May(gate.FollowUp)
	if !fewer && !more {
		return nil
	}
	why := fmt.Sprintf("the workload has %d replicas instead of %d", standing.Replicas(s.In.Workload), s.Next.Replicas)
	if waits := leavingWaits(s, found); fewer && waits != "" {
		return &Proposed{Told: []problem.Problem{{Phase: problem.PhaseRollout, Subject: "partition.replicas",
			Kind: "ReplicasWait", Message: "clusters are left on replicas that people took away: " + waits}}}
	}
	return &Proposed{Want: s.WantOf(found, nil), Cause: change.Pin, Why: why}
}

// leavingWaits says why clusters do not leave yet what people took away; empty: they may.
func leavingWaits(s *snapshot.Snapshot, replicas int) string {
	if !oneWorks(s, replicas) {
		return "no pod works for a replica that stays; they leave once one does"
	}
	again := s.Changes.Failures.Again(s.In.Now, change.Pin, plan.FromTo(s.Next.Replicas, replicas))
	if again.IsZero() {
		return ""
	}
	return fmt.Sprintf("that failed again and again, and is tried next at %s; `ballast resume` does so at once",
		again.UTC().Format(time.RFC3339))
}

// oneWorks reports whether a pod works for one of so many replicas at least, as far as pods are seen.
func oneWorks(s *snapshot.Snapshot, replicas int) bool {
	seen := s.In.Observed
	return !seen.Known || slices.ContainsFunc(seen.Pods, func(p observed.Pod) bool {
		return p.Replica < replicas && standing.Works(seen.Pods, p.Replica)
	})
}

// pinsBeyond are the replicas that pins ask for, where they are ballast's to bring about: the modes x0y and default
// restart the others for replicas that come.
func pinsBeyond(s *snapshot.Snapshot) *Proposed {
	if s.Next.FreeReplicas || s.Next.Unmanaged || DownWithClusters(s.Next, s.Replicas) {
		return nil
	}
	byPlan := func(name string) bool { return !s.BySecret(name) }
	if replicas, why := pinnedBeyond(s, byPlan); why != "" { // what waits for a Secret's must not make these wait
		return &Proposed{Want: s.WantOf(replicas, nil), Cause: change.Pin, Why: why}
	}
	replicas, why := pinnedBeyond(s, s.BySecret)
	if why == "" {
		return nil
	}
	return &Proposed{Want: s.WantOf(replicas, nil), Cause: change.Pin, Why: why, BySecret: true}
}

// pinnedBeyond is how many replicas the pins of those clusters ask for, and why that is more than there are; empty: it
// is not.
func pinnedBeyond(s *snapshot.Snapshot, counts func(name string) bool) (replicas int, why string) {
	replicas = s.Next.Replicas
	for _, name := range slices.Sorted(maps.Keys(s.Pins)) {
		if _, known := s.Next.Clusters[name]; !known || !counts(name) {
			continue
		}
		if pin := s.Pins[name]; pin >= replicas && pin < s.Next.MaxReplicas {
			replicas, why = pin+1, fmt.Sprintf("%s is pinned to replica %d", name, pin)
		}
	}
	return replicas, why
}

// DownWithClusters reports whether a replica that does not work has clusters: they leave it before pods are added for a
// pin.
func DownWithClusters(p plan.Plan, v health.Verdict) bool {
	off := off(v)
	if len(off) == 0 || v.Held == health.WholeFleet {
		return false
	}
	for _, row := range p.Clusters {
		if slices.Contains(off, row.Replica) {
			return true
		}
	}
	return false
}

// off are the replicas that do not work.
func off(v health.Verdict) []int {
	off := slices.Clone(v.Down)
	for _, s := range v.Sick {
		off = append(off, s.Replica)
	}
	return off
}

// HeldOnDown says which cluster cannot leave a replica that does not work, why, and the mend; empty: each of them can.
// What waits for that replica waits until a person does something.
func HeldOnDown(g *ground.Ground, v health.Verdict) string {
	off := off(v)
	for _, u := range g.Fleet.Groups() {
		waited := slices.ContainsFunc(u.Clusters, func(i int) bool {
			row, planned := g.Next.Clusters[g.Fleet.Clusters[i].Shard.ID]
			return planned && slices.Contains(off, row.Replica)
		})
		for _, i := range u.Clusters {
			if mend := g.Fixed().Frees(i); waited && mend != "" && slices.Contains(off, g.Standing(i)) {
				return fmt.Sprintf("%q cannot leave replica %d: %s", g.Fleet.Clusters[i].Shard.ID, g.Standing(i), mend)
			}
		}
	}
	return ""
}

// prepare is the env that the mode live needs once, and in the others one that gives each cluster one owner.
func prepare(s *snapshot.Snapshot) *Proposed {
	if !s.Env().Prepares() {
		return nil
	}
	w := s.WantOf(s.Next.Replicas, nil)
	why := fmt.Sprintf("%s becomes %d instead of %s, which restarts the application-controller: below the number of replicas it gives clusters several owners",
		plan.EnvReplicas, w.ControllerReplicas, EnvFound(s.Next.ControllerReplicas))
	if s.In.Config.Rollout.Live != nil {
		why = fmt.Sprintf("prepares live rollouts: %s becomes %d for good, "+
			"which restarts the application-controller once, and scaling restarts nothing afterwards", plan.EnvReplicas,
			s.Env().Constant())
	}
	return &Proposed{Want: w, Cause: change.Balance, Why: why, AtOnce: s.Env().TooLow()}
}

// EnvFound is the env as it was found, in words.
func EnvFound(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

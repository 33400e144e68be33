// Package life runs whole lives of small fleets: the planner's decision, cycle after cycle, on the simulated fleet of
// package sim, with leaders that die, pods that fall, and people. Nothing but tests imports it.
package life

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/discover/labeltext"
	"ballast/planner/observed"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/sim"
	"ballast/planner/store/history"
)

// act is how often everything but the planner acts, and the planner too while a rollout goes on.
const act = 10 * time.Second

// Life is a fleet under ballast. It has no API server: a write is done or lost, and webhooks always hold the plan.
type Life struct {
	*sim.Fleet
	Now    time.Time
	Config config.PlannerConfig
	Loads  map[string]float64

	Plan     *plan.Plan
	Pins     plan.Pins
	Paused   bool
	Glass    bool // break-glass is on: nothing is enforced
	Tripped  string
	Rollback *input.Rollback
	Refused  map[string]bool              // Secrets that nobody may write
	Barred   map[string]bool              // those of them of which nothing says so but the API server, at each write
	Unheld   bool                         // the webhooks do not answer
	Labels   map[string]map[string]string // of Secrets
	Deaf     bool                         // Prometheus does not answer
	Lossy    bool                         // one write of ten is lost
	Hidden   bool                         // the env is by a reference, until somebody writes a number in its place
	Said     string                       // what that reference says, which pods may have started before
	OptedOut map[string]bool              // Secrets that people write, and ballast does not
	Asks     map[string]string            // Secrets' own pins, as they are written
	Cordon   string                       // replicas that people want empty
	Skew     time.Duration                // by how much the leader's clock is ahead
	History  []plan.Plan                  // the plans that were written
	Last     cycle.Outcome
	Began    *plan.Plan // the plan that was put back with its history last; nil: both were lost last, or neither ever

	Moves  map[change.Cause]int // clusters that moved
	Counts map[string]int       // what else happened, by what
	Watch  func(*Life)          // after each act; may be nil
	Wrote  func(diff.Step)      // before each write of ballast's; may be nil

	coin   *rand.Rand           // which writes are lost
	looked observed.State       // what the last cycle knows of pods and owners
	memory memory.Memory        // the leader's
	saved  memory.Memory        // the history's, as it was written last
	stored time.Time            // when that was
	said   int64                // the revision that the leader's status says
	parts  map[string][]byte    // the history's, as the last leader left it
	given  map[string]bool      // clusters that repairs gave back since the last cycle
	nudged map[string]time.Time // when a cluster was nudged last
	next   time.Time            // when the next cycle is due
}

// New is a fleet as it was before ballast came, with clusters of those loads: nobody has planned yet.
func New(seed uint64, c config.PlannerConfig, replicas int, env string, loads map[string]float64) *Life {
	l := &Life{Fleet: sim.NewFleet(seed, sim.Usual(), slices.Sorted(maps.Keys(loads))), Now: sim.Epoch, Config: c,
		Loads: maps.Clone(loads),
		coin:  rand.New(rand.NewPCG(seed, 3)), Refused: map[string]bool{}, OptedOut: map[string]bool{},
		Asks:   map[string]string{},
		Barred: map[string]bool{}, Labels: map[string]map[string]string{},
		Counts: map[string]int{}, Moves: map[change.Cause]int{},
		given: map[string]bool{}, nudged: map[string]time.Time{}}
	l.Gauges = 30 * time.Second
	l.Replicas, l.Env, l.Generation = replicas, env, 1
	l.Populate(l.Now)
	return l
}

// Pass lets time pass.
func (l *Life) Pass(d time.Duration) {
	for until := l.Now.Add(d); l.Now.Before(until); {
		l.step()
	}
}

// step is one act of everybody.
func (l *Life) step() {
	l.Now = l.Now.Add(act)
	l.Control(l.Now)
	l.Own(l.Now)
	if !l.Now.Before(l.next) {
		l.cycle()
		l.next = l.Now.Add(time.Duration(l.Config.Interval))
		if l.Plan != nil && l.Plan.Rollout != nil {
			l.next = l.Now.Add(act)
		}
	}
	l.mend()
	l.Own(l.Now)
	if l.Watch != nil {
		l.Watch(l)
	}
}

// Elect ends the leader, and has the next one take over from what the history holds: every other one was written as the
// leader ended, as one that gives up its Lease does, and the others when that was due last.
func (l *Life) Elect() error {
	ended := l.memory
	if l.Counts["elections"]%2 == 1 {
		ended = l.saved
	}
	parts, stale := ended.Parts(l.parts)
	if len(stale) > 0 {
		return fmt.Errorf("packing the memory: %w", stale[0])
	}
	memory, dropped := memory.Of(parts)
	if len(dropped) > 0 {
		return fmt.Errorf("reading the memory: %w", dropped[0])
	}
	l.memory, l.saved, l.parts = memory, memory, parts
	l.given, l.nudged = map[string]bool{}, map[string]time.Time{}
	l.Counts["elections"]++
	return nil
}

// Discovered is what stands in Argo CD's namespace.
func (l *Life) Discovered() discover.Input {
	in := discover.Input{Namespace: "argocd"}
	for _, name := range l.Clusters {
		s := sim.Secret(name)
		s.Server = l.ServerOf(name)
		s.Pin = l.Asks[name]
		s.Immutable, s.Unmanaged = l.Refused[name] && !l.Barred[name], l.OptedOut[name]
		if labels := l.Labels[name]; labels != nil {
			s.Labels = labeltext.Of(labels, l.Config.Partition.LabelKeys())
		}
		if shard, stamped := l.Shards[name]; stamped {
			s.Shard = discover.ShardValue{State: discover.ShardValid, N: shard}
		}
		in.Secrets = append(in.Secrets, s)
	}
	return in
}

// Workload is the application-controller's StatefulSet.
func (l *Life) Workload() discover.Workload {
	w, status := sim.Workload(), l.Status(l.Now)
	w.Replicas, w.CurrentReplicas = l.Replicas, int(status.Replicas)
	w.ReadyReplicas, w.UpdatedReplicas = int(status.ReadyReplicas), int(status.UpdatedReplicas)
	w.Generation, w.ObservedGeneration, w.RestartedAt = l.Generation, l.Observed, l.RestartedAt
	w.EnvReplicas = nil
	if l.Sizing != nil {
		template := l.Sizing.Template
		w.Resources = &template
	}
	if l.Deployment {
		w.Kind, w.DynamicDistribution = plan.Deployment, true
		return w
	}
	if env := l.Env; env != "" && !l.Hidden {
		w.EnvReplicas = &env
	}
	if w.EnvUnknown = l.Hidden; l.Hidden {
		w.EnvSaid = &l.Said
	}
	return w
}

// Inputs is what the leader gathers.
func (l *Life) Inputs() input.Inputs {
	held := !l.Unheld
	in := input.Inputs{
		Now: l.Now.Add(l.Skew), Config: l.Config, Cordon: l.Cordon, PlannerUser: sim.PlannerUser, Memory: l.memory,
		InForce: l.Plan, Pins: l.Pins, Paused: l.Paused, BreakGlass: l.Glass, Tripped: l.Tripped, Rollback: l.Rollback,
		Discovered: l.Discovered(), Workload: l.Workload(), Fetched: append([]poll.Fetched{l.fetched()}, l.used()...),
		Enforcement: &held, Repaired: slices.Sorted(maps.Keys(l.given)),
	}
	for name := range l.Barred {
		if in.Barred == nil {
			in.Barred = map[string]string{}
		}
		in.Barred[name] = "a policy refuses it"
	}
	if n := len(l.History); n > 0 && l.Plan == nil { // as the controller has it of the history
		in.Last = &l.History[n-1]
	}
	reports := l.Reports(l.Now)
	found := standing.Fleet(in)
	in.Observed = input.Observed{Known: true, Dynamic: l.Deployment, Pods: scrape.Pods(reports),
		Reported: l.Observation(reports, found)}
	return in
}

// fetched is Prometheus' answer.
func (l *Life) fetched() poll.Fetched {
	f := poll.Fetched{Metric: "apps"}
	if l.Deaf {
		f.Err = "connection refused"
		return f
	}
	for _, name := range l.Clusters {
		if l.First(name) != name {
			continue
		}
		f.Samples = append(f.Samples, poll.Sample{Key: sim.Server(name), Value: l.Loads[name], At: l.Now})
	}
	return f
}

// used is Prometheus' answer to the metrics of replicas: the memory that each pod has in use.
func (l *Life) used() (all []poll.Fetched) {
	for _, m := range loads.ReplicaMetricsOf(l.Config) {
		f := poll.Fetched{Metric: m.ID}
		if l.Deaf {
			f.Err = "connection refused"
		}
		for _, ordinal := range slices.Sorted(maps.Keys(l.Pods)) {
			if p := l.Pods[ordinal]; !l.Deaf && p.Memory > 0 && p.Gone.IsZero() {
				f.Samples = append(f.Samples, poll.Sample{Key: sim.PodName(ordinal), Value: float64(p.Memory),
					At: l.Now})
			}
		}
		all = append(all, f)
	}
	return all
}

func (l *Life) cycle() {
	in := l.Inputs()
	out := cycle.Run(in)
	l.memory, l.Last = out.Memory, out
	l.looked = observed.State{Pods: in.Observed.Pods, Owned: out.Verdict.Owned, OwnersKnown: in.Observed.Reported.Asked,
		Looked: in.Now}
	if out.Changed && l.loses() { // as the controller does: the vote stands as it was, and nothing moved
		l.memory = l.memory.Unwritten(in.Memory, "")
		l.Counts["plans lost"]++
		return
	}
	l.given = map[string]bool{}
	for cause, n := range out.Counted {
		l.Moves[cause] += n
	}
	if out.Done {
		l.Rollback = nil
	}
	if trip := out.Memory.Changes.Trip; trip != nil && l.Tripped == "" {
		l.Tripped = trip.Why
		l.memory.Changes.TripTold = true
		l.Counts["trips"]++
	}
	l.save(out)
	if !out.Changed {
		return
	}
	next := out.Next.Clone()
	next.Revision = plan.RevisionAfter(l.newestRevision())
	l.Plan, l.History, l.said = &next, append(l.History, next), next.Revision
	l.Counts["plans"]++
}

// newestRevision is the highest one that plan and history show, else what the leader's status says.
func (l *Life) newestRevision() (newest int64) {
	if l.Plan == nil && len(l.History) == 0 {
		return l.said
	}
	if l.Plan != nil {
		newest = l.Plan.Revision
	}
	if n := len(l.History); n > 0 {
		newest = max(newest, l.History[n-1].Revision)
	}
	return newest
}

// save has the history hold the memory where it is due.
func (l *Life) save(out cycle.Outcome) {
	if now := l.Now.Add(l.Skew); history.Due(l.stored, now, out.Changed || out.Decided) {
		l.saved, l.stored = l.memory, now
	}
}

// Join is a cluster that comes.
func (l *Life) Join(name string, load float64) {
	l.Loads[name] = load
	l.Distribute(l.Now)
	l.Fleet.Join(name)
}

// Retire is a cluster that goes, and what people wrote of it in its Secret.
func (l *Life) Retire(name string) {
	l.Distribute(l.Now)
	l.Forget(name, l.Now)
	l.Fleet.Retire(name)
	delete(l.Loads, name)
	delete(l.Refused, name)
	delete(l.Barred, name)
	delete(l.OptedOut, name)
	delete(l.Asks, name)
}

// mend writes what differs from the plan.
func (l *Life) mend() {
	if l.Plan == nil || !l.Plan.Mode.Enforced() {
		return
	}
	fleet := standing.Fleet(input.Inputs{Discovered: l.Discovered(), Memory: l.memory, Now: l.Now})
	seen := standing.Seen(l.Plan.Clusters, fleet, l.memory.Known, l.Workload())
	seen.Pods, seen.OwnersKnown, seen.Owned, seen.Looked = l.looked.Pods, l.looked.OwnersKnown, l.looked.Owned,
		l.looked.Looked
	o := diff.Options{BreakGlass: l.Glass, Nudge: l.Config.Rollout.Live != nil && l.Config.Rollout.Live.Nudge,
		Now: l.Now.Add(l.Skew)}
	for _, step := range diff.Between(plan.NewView(*l.Plan, standing.Pins(l.Pins, fleet.Clusters)), seen, o).Steps {
		if l.loses() {
			continue
		}
		if l.Wrote != nil {
			l.Wrote(step)
		}
		l.do(step)
	}
}

// nudgeAgain is how long a nudge is not repeated.
const nudgeAgain = 30 * time.Second

func (l *Life) do(step diff.Step) {
	switch s := step.(type) {
	case diff.PatchShard:
		if l.Barred[s.Secret] {
			l.Counts["refused"]++
			return
		}
		l.Counts["shards"]++
		if s.Why == diff.Drifted || s.Why == diff.Broken {
			l.given[s.Secret] = true
		}
		if before, stamped := l.Shards[s.Secret]; !stamped || before != s.Shard {
			l.Distribute(l.Now)
			if at, forgot := l.Forgot[l.First(s.Secret)]; forgot && !at.After(l.Now) {
				delete(l.Forgot, l.First(s.Secret)) // its own event tells of it
			}
		}
		l.Shards[s.Secret] = s.Shard
	case diff.PatchWorkload:
		l.Counts["workload"]++
		if s.ControllerReplicas != nil {
			l.Counts["envs"]++
			l.Hidden = false
		}
		l.Patch(s)
	case diff.PatchPod:
		l.Counts["resizes"]++
		l.Resize(s.Replica, s.Size, l.Now)
	case diff.Nudge:
		if l.Now.Sub(l.nudged[s.Cluster]) >= nudgeAgain {
			l.nudged[s.Cluster] = l.Now
			l.Nudge(s.Cluster, l.Now)
		}
	}
}

func (l *Life) loses() bool { return l.Lossy && l.coin.IntN(10) == 0 }

// anyOptedOut reports whether people keep a Secret of a Secret's server.
func (l *Life) anyOptedOut(name string) bool {
	return slices.ContainsFunc(l.SecretsOf(name), func(secret string) bool { return l.OptedOut[secret] })
}

// beyond reports whether an autoscaler holds more replicas than a plan may have (BeyondMaxReplicas tells). A plan that
// had more when maxReplicas was lowered keeps them.
func (l *Life) beyond() bool {
	return l.Plan.FreeReplicas && l.Plan.Replicas >= l.Plan.MaxReplicas && l.Replicas > l.Plan.Replicas
}

// Quiet reports whether nothing is under way, and every cluster is worked on by one replica, the plan's.
func (l *Life) Quiet() error {
	switch {
	case l.Plan == nil:
		return fmt.Errorf("there is no plan")
	case l.Plan.Rollout != nil:
		return fmt.Errorf("a rollout is under way: %+v", *l.Plan.Rollout)
	case l.Replicas != l.Plan.Replicas && !l.beyond() || !l.Settled(l.Now):
		return fmt.Errorf("the workload has %d replicas, the plan %d; %+v", l.Replicas, l.Plan.Replicas,
			l.Status(l.Now))
	}
	for _, name := range l.Clusters {
		if l.anyOptedOut(name) { // people's, who may have any reason
			continue
		}
		row, planned := l.Plan.Clusters[name]
		if owners := l.Owners(name); !planned || !slices.Equal(owners, []int{row.Replica}) {
			return fmt.Errorf("cluster %s is owned by %v, its row is %+v (%t)", name, owners, row, planned)
		}
		if !l.Working(name) && !l.Unreachable[l.First(name)] {
			return fmt.Errorf("nobody works on cluster %s", name)
		}
	}
	return nil
}

package replay

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/replay/instant"
	"ballast/planner/replay/trace"
	"ballast/planner/sharding"
)

// Run is one setup under way. Steps go in; what becomes of them is in its Report.
type Run struct {
	setup   Setup
	head    trace.Header
	columns []column
	in      input.Inputs
	step    trace.Step // that stands now
	due     time.Time  // when the next cycle is
	shared  bool       // several clusters have one server

	owned  map[string]int // by cluster: the replica that has it
	dirty  bool           // Secrets or workload changed since the owners were worked out
	unsure bool           // the last steps may leave some to do
	tally  tally

	watch func(input.Inputs, cycle.Outcome) // of each cycle; may be nil
}

// DefaultReplicas is how many replicas a fleet has of which nobody says so.
const DefaultReplicas = 3

// NewRun begins with the fleet as it is found: replicas is how many there are, 0 for what the trace says.
func NewRun(s Setup, h trace.Header, replicas int) (*Run, error) {
	c := s.replayed(h)
	columns, err := columnsOf(c, h)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if replicas == 0 {
		replicas = h.Replicas
	}
	if replicas == 0 {
		replicas = DefaultReplicas
	}
	held, env := true, strconv.Itoa(replicas)
	r := &Run{setup: s, head: h, columns: columns, dirty: true, owned: map[string]int{}, in: input.Inputs{
		Config: c, PlannerUser: "system:serviceaccount:argocd:ballast-planner", Enforcement: &held,
		Discovered: discover.Input{Namespace: "argocd"},
		Workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd",
			Name: "argocd-application-controller", Container: "application-controller",
			Replicas: replicas, ReadyReplicas: replicas, UpdatedReplicas: replicas, CurrentReplicas: replicas,
			EnvReplicas: &env},
	}}
	for _, m := range loads.MetricsOf(c) {
		r.in.Fetched = append(r.in.Fetched, poll.Fetched{Metric: m.ID})
	}
	r.tally = newTally(s.Name, c)
	return r, nil
}

// Watch has f see each cycle to come: what it was given and what it came to.
func (r *Run) Watch(f func(input.Inputs, cycle.Outcome)) { r.watch = f }

// Step is what was seen next. Cycles that were due before it run with what stood until then.
func (r *Run) Step(s trace.Step) {
	if r.due.IsZero() {
		r.due = s.At
	}
	r.until(s.At)
	r.take(s)
	if r.due.Equal(s.At) {
		r.cycle()
	}
}

// Report ends the run: the last step stands as long as every other.
func (r *Run) Report() Report {
	if !r.due.IsZero() {
		r.until(r.step.At.Add(r.head.Step))
	}
	return r.tally.report(r.step.At)
}

func (r *Run) until(end time.Time) {
	for r.due.Before(end) {
		r.cycle()
	}
}

// take takes over what a step says.
func (r *Run) take(s trace.Step) {
	before := r.step
	r.step = s
	if s.Roster == before.Roster && before.Roster != 0 {
		return
	}
	r.shared, r.dirty = sharedServers(s.Clusters), true
	stood := make(map[string]discover.Secret, len(r.in.Discovered.Secrets))
	for _, secret := range r.in.Discovered.Secrets {
		stood[secret.Name] = secret
	}
	r.in.Discovered.Secrets = make([]discover.Secret, 0, len(s.Clusters))
	arrivals := r.arrivals()
	for _, c := range s.Clusters {
		secret, known := stood[c.Name]
		if !known || secret.Server != c.Server || secret.UID != c.UID {
			secret = secretOf(c)
			switch {
			case before.Roster > 0:
				secret.Created = s.At
			case c.Replica != plan.NoReplica && r.setup.Algorithm == "":
				secret.Shard = discover.ShardValue{State: discover.ShardValid, N: c.Replica}
			}
			if arrivals != nil {
				secret.Shard = discover.ShardValue{State: discover.ShardValid, N: r.arrives(arrivals, c)}
			}
		}
		r.in.Discovered.Secrets = append(r.in.Discovered.Secrets, secret)
	}
}

// arrivals answers for new clusters as the webhook does; nil while no plan is enforced.
func (r *Run) arrivals() *placement.Arrivals {
	if r.in.InForce == nil || !r.in.InForce.Mode.Enforced() {
		return nil
	}
	return placement.NewArrivals(plan.NewView(r.in.InForce.Clone(), nil))
}

// arrives is the shard that the webhook gives a Secret as it is made: its row's, where one of that name was there
// within the hour, else the one for new clusters.
func (r *Run) arrives(a *placement.Arrivals, c trace.Cluster) int {
	if row, known := r.in.InForce.Clusters[c.Name]; known {
		return row.Replica
	}
	return a.Place(c.Server, plan.NoReplica, nil)
}

func secretOf(c trace.Cluster) discover.Secret {
	return discover.Secret{UID: c.UID, Name: c.Name, Namespace: "argocd", Cluster: c.Name, Server: c.Server,
		HasData: true}
}

// cycle is the planner's, at the time when it is due, and what it has done.
func (r *Run) cycle() {
	r.in.Now = r.due
	r.due = r.due.Add(time.Duration(r.in.Config.Interval))
	r.fetch()
	r.observe()
	out := cycle.Run(r.in)
	if r.watch != nil {
		r.watch(r.in, out)
	}
	r.tally.count(r.in, out)
	r.takeOver(out)
	if r.in.InForce != nil && r.in.InForce.Mode.Enforced() {
		r.apply(out)
	}
}

// takeOver is what the leader does with an outcome.
func (r *Run) takeOver(out cycle.Outcome) {
	r.in.Memory = out.Memory
	if trip := out.Memory.Changes.Trip; trip != nil && r.in.Tripped == "" {
		r.in.Tripped, r.in.Memory.Changes.TripTold = trip.Why, true
	}
	if !out.Changed {
		return
	}
	next := out.Next.Clone()
	next.Revision = 1
	if r.in.InForce != nil {
		next.Revision = r.in.InForce.Revision + 1
	}
	r.in.InForce = &next
}

// apply does the steps to the plan. At rest, with nothing new, there are none.
func (r *Run) apply(out cycle.Outcome) {
	still := !out.Changed && !r.unsure && r.in.InForce.Rollout == nil
	if still && !r.dirty {
		return
	}
	view := plan.NewView(r.in.InForce.Clone(), out.Pins)
	due := diff.Between(view, standing.Seen(r.in.InForce.Clusters, out.Fleet, r.in.Memory.Known, r.in.Workload),
		diff.Options{})
	r.unsure = len(due.Steps) > 0
	if r.unsure {
		instant.Do(due.Steps, &r.in.Workload, r.in.Discovered.Secrets)
		r.dirty = true
	}
}

// fetch is what Prometheus would answer now. A step stands for as long as steps are apart; after that nothing is known.
func (r *Run) fetch() {
	stands := r.in.Now.Before(r.step.At.Add(r.head.Step))
	for m, c := range r.columns {
		f := &r.in.Fetched[m]
		if f.Err = ""; !stands {
			f.Samples, f.Err = nil, "the trace has nothing for this time"
			continue
		}
		f.Samples = f.Samples[:0]
		var at map[string]int
		if r.shared {
			at = map[string]int{}
		}
		for i, v := range r.step.Values[c.at] {
			if math.IsNaN(v) {
				continue
			}
			key := c.key(r.step.Clusters[i])
			if k, twice := at[key]; twice {
				f.Samples[k].Value += v
				continue
			}
			if at != nil {
				at[key] = len(f.Samples)
			}
			f.Samples = append(f.Samples, poll.Sample{Key: key, Value: v, At: r.in.Now})
		}
	}
}

// observe is what the pods say: each has the clusters whose Secrets carry its number, or that Argo CD's algorithm gives
// it.
func (r *Run) observe() {
	reported := &r.in.Observed.Reported
	if !r.dirty {
		for i := range reported.Pods {
			reported.Pods[i].SampledAt = r.in.Now
		}
		return
	}
	r.dirty = false
	all := discover.Options{MaxShrink: 1}
	fleet, _, _ := discover.Discover(r.in.Discovered, discover.Known{}, all, r.in.Now) // nothing is known, so nothing is lost
	// The cycle goes by what the pods say before it asks any algorithm, so that it is worked out here alone.
	owners := sharding.Owners(fleet.Clusters, r.setup.Algorithm, standing.ControllerReplicas(r.in.Workload),
		r.applications())
	now := make(map[string]int, len(owners))
	for i, c := range fleet.Clusters {
		name := c.Shard.ID
		now[name] = owners[i]
		if was, known := r.owned[name]; known && was != owners[i] {
			r.tally.moved()
		}
	}
	r.owned = now
	r.in.Observed = input.Observed{Known: true, Pods: instant.Pods(r.in.Workload)}
	r.in.Observed.Reported = instant.Report(r.in.Observed.Pods, fleet, owners, r.in.Now)
}

// applications is how many each server has, by which consistent hashing bounds the replicas: the trace's metric apps,
// and one each where it has none.
func (r *Run) applications() map[string]int {
	if r.setup.Algorithm != sharding.ConsistentHashing {
		return nil
	}
	apps := make(map[string]int, len(r.step.Clusters))
	for i, c := range r.step.Clusters {
		n := 1
		for m, id := range r.head.Metrics {
			if v := r.step.Values[m][i]; id == "apps" && !math.IsNaN(v) {
				n = int(min(v, 1e6))
			}
		}
		apps[c.Server] += n
	}
	return apps
}

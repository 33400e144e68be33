// Package adopt brings the plan in force up to date with the world, without deciding anything.
package adopt

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/member"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plural"
	"ballast/planner/rollout"
)

// DefaultMaxReplicas is how far a fleet may grow where nobody said: room without surprise.
const DefaultMaxReplicas = 16

// Plan brings a plan up to date: the one in force, the last known one, or the fleet as it is.
func Plan(in input.Inputs, fleet discover.Fleet, base plan.Plan, pins plan.Pins) *Adoption {
	a := &Adoption{Ground: ground.New(in, fleet, pins, base), Gone: map[string]time.Time{}}
	if a.Next.Clusters == nil { // a plan that says nothing of any
		a.Next.Clusters = map[string]plan.Row{}
	}
	a.frame()
	a.Found = append(a.Found, member.Choose(a.Ground)...)
	SetArrivals(a.Ground)
	a.reportOrphans()
	a.reportStopped()
	a.reportBeyond()
	l := layout{a}
	if a.Next.Mode.Enforced() {
		l.add()
		l.forget()
		l.retarget() // a pin that it makes room for holds at once
		l.pin()
	} else {
		l.observe()
	}
	l.describe()
	a.Regroup()
	for _, m := range rollout.Moves(base, a.Next) {
		if !slices.Contains(a.followed, m.Cluster) { // it is there already
			a.Moved = append(a.Moved, outcome.Move{Cluster: m.Cluster, From: m.From, To: m.To})
		}
	}
	return a
}

// Unchanged takes over a plan as it is, beside a discovery that is refused.
func Unchanged(in input.Inputs, fleet discover.Fleet, pins plan.Pins, p plan.Plan) *Adoption {
	a := &Adoption{Ground: ground.New(in, fleet, pins, p)}
	a.Partial = true
	a.holdLess()
	a.Found = append(a.Found, member.Choose(a.Ground)...)
	a.Regroup()
	a.reportStopped()
	return a
}

// reportOrphans names the clusters that nobody reconciles, which Argo CD itself never says.
func (a *Adoption) reportOrphans() {
	for i, c := range a.Fleet.Clusters {
		if a.Owners[i] != plan.NoReplica || c.Skip {
			continue
		}
		mend := "ballast gives it an owner in Hold and Enforce"
		if c.Immutable || c.Unmanaged {
			mend = "ballast may not write its Secret: make it anew, or take the annotation " +
				plan.AnnotationUnmanaged + " away"
		}
		a.Found = append(a.Found, problem.Problem{Phase: problem.PhaseDiscover, Subject: c.Shard.ID, Kind: "Orphaned",
			Message: fmt.Sprintf(
				"no replica reconciles %q: there are %d, and Argo CD counts %d (%s); %s",
				c.Shard.ID, a.In.Workload.Replicas, standing.ControllerReplicas(a.In.Workload), plan.EnvReplicas,
				mend)})
	}
}

// reportStopped says that no replica runs where nobody but people will bring one back: pods that are not there name no
// orphan.
func (a *Adoption) reportStopped() {
	enforced := a.Next.Mode.Enforced() && !a.In.BreakGlass
	broughtBack := enforced && !a.Next.FreeReplicas && !a.Next.Unmanaged
	clusters := len(a.Fleet.Clusters)
	if a.Partial { // what is not seen may be there all the same
		clusters = max(clusters, len(a.Next.Clusters))
	}
	if a.In.Workload.Replicas > 0 || clusters == 0 {
		return
	}
	if broughtBack || NoReplicaRuns(a.Next.Rollout) {
		return
	}
	a.Found = append(a.Found, problem.Problem{Phase: problem.PhaseDiscover, Kind: "NoReplicas", Message: fmt.Sprintf(
		"%s %q has 0 replicas, so that nobody reconciles any of %s: scale it up, or see who scaled it down with `ballast audit`",
		a.In.Workload.Kind, a.In.Workload.Name, plural.Of(clusters, "cluster"))})
}

// reportBeyond names replicas of people's beyond those that a plan may have.
func (a *Adoption) reportBeyond() {
	w, most := a.In.Workload, a.Next.MaxReplicas
	if !a.Next.FreeReplicas || !a.Next.Mode.Enforced() || w.Replicas <= most {
		return
	}
	message := fmt.Sprintf("%s %q has %d replicas, and partition.maxReplicas is %d: the others receive no cluster",
		w.Kind, w.Name, w.Replicas, most)
	if env := standing.ControllerReplicas(w); w.Kind == plan.StatefulSet && env < w.Replicas {
		message += fmt.Sprintf(", and to Argo CD those from %d on are replica 0 once more, so that its clusters have several (%s is %d)", env, plan.EnvReplicas, env)
	}
	a.Found = append(a.Found, problem.Problem{Phase: problem.PhaseRollout, Kind: "BeyondMaxReplicas", Message: message +
		"; raise partition.maxReplicas, or lower the autoscaler's maximum"})
}

// selectorOf is what tells the webhook which Secrets are clusters; empty where Argo CD's label does.
func selectorOf(c config.PlannerConfig) string {
	configured, err := discover.Selector(c.Discover.Selector)
	if err != nil || configured.String() == plan.SecretTypeLabel+"="+plan.SecretTypeCluster {
		return ""
	}
	return configured.String()
}

// frame takes over what the configuration and the workload say outside the rows.
func (a *Adoption) frame() {
	a.Next.Target, a.Next.PlannerUser, a.Next.Selector = standing.TargetOf(a.In.Workload), a.In.PlannerUser,
		selectorOf(a.In.Config)
	a.Next.FreeReplicas = ground.ByWorkload(a.In.Config.Partition)
	a.Next.MaxReplicas = a.mostHeld(MaxReplicas(a.In.Config.Partition, a.Next))
	a.dropSizes()
	a.reportCap()
	a.optOut()
	a.setMode(a.stillStopped())
	a.takeAwaited()
}

// dropSizes leaves out the sizes of replicas that a plan may not have any more.
func (a *Adoption) dropSizes() {
	s := a.Next.Sizes
	if s == nil {
		return
	}
	maps.DeleteFunc(s.Replicas, func(replica int, _ plan.Resources) bool {
		return replica >= a.Next.MaxReplicas || a.Next.Target.Kind == plan.Deployment
	})
	if len(s.Default.Requests)+len(s.Default.Limits)+len(s.Replicas) == 0 {
		a.Next.Sizes = nil
	}
}

// optOut takes over whether the workload opted out: from then on people alone decide its replicas.
func (a *Adoption) optOut() {
	before := a.Next.Unmanaged
	a.Next.Unmanaged = a.In.Workload.Unmanaged
	switch {
	case a.In.InForce == nil || before == a.Next.Unmanaged:
	case a.Next.Unmanaged:
		a.Notes = append(a.Notes, "the workload opted out: its replicas, env and resources are not held")
	default:
		a.Notes = append(a.Notes, "the workload is managed again")
	}
}

// mostHeld is the most replicas, but for those that stand and that a pin or a Secret that nobody may write asks for:
// they stay until a person takes that away. To the webhook they hold as long as the replica does, so that a lower
// number would only turn their clusters to and fro, and be asked for again at each election.
func (a *Adoption) mostHeld(most int) int {
	if a.Next.FreeReplicas {
		return most
	}
	held, by, why := most, "", ""
	for _, name := range slices.Sorted(maps.Keys(a.Pins)) {
		if pin := a.Pins[name]; pin >= held && pin < a.Next.Replicas && standing.Has(a.Fleet, name) {
			held, by, why = pin+1, name, fmt.Sprintf("is pinned to replica %d: pin it lower, or take the pin away", pin)
		}
	}
	for i, c := range a.Fleet.Clusters {
		if at := a.Fixed().Carries(i); at >= held {
			held, by, why = at+1, c.Shard.ID, fmt.Sprintf("is on replica %d; %s", at, a.Fixed().Lowered(i))
		}
	}
	if by == "" {
		return most
	}
	a.Found = append(a.Found, problem.Problem{Phase: problem.PhasePartition, Subject: by, Kind: "ReplicasHeld",
		Message: fmt.Sprintf(
			"partition.maxReplicas is %d, and %d are needed, since %q %s", most, held, by, why)})
	return held
}

// reportCap says that the cap is too small for the fleet: a replica has more, and who wrote the number hears of it
// nowhere else.
func (a *Adoption) reportCap() {
	configured, most := a.In.Config.Partition.MaxClustersPerReplica, a.MostClusters()
	if most <= configured {
		return
	}
	a.Found = append(a.Found, problem.Problem{Phase: problem.PhasePartition, Kind: "CapTooSmall", Message: fmt.Sprintf(
		"partition.maxClustersPerReplica is %d, and %s on %s at most are %d on one: raise it, or partition.maxReplicas",
		configured, plural.Of(len(a.Fleet.Clusters), "cluster"), plural.Of(a.Next.MaxReplicas, "replica"), most)})
}

// MaxReplicas is configured, else what the plan has, else room to grow; never below what stands.
func MaxReplicas(p config.Partition, now plan.Plan) int {
	most := now.MaxReplicas
	if p.MaxReplicas != nil {
		most = *p.MaxReplicas
	} else if most == 0 {
		most = max(DefaultMaxReplicas, now.Replicas)
	}
	return max(most, 1)
}

// takeAwaited takes over an env that came with somebody's change of the pod template, once every pod has it; where it
// is awaited no more, at once: it stands, and taking it back would restart every pod.
func (a *Adoption) takeAwaited() {
	waits := a.Next.Mode == plan.Enforce && a.Env().Awaits()
	if a.Env().Awaited() && (!waits || a.Env().Replaced()) {
		a.Next.ControllerReplicas = a.Next.NextControllerReplicas
		a.Notes = append(a.Notes,
			fmt.Sprintf("%s is %d, as it came with a change of the pod template", plan.EnvReplicas,
				a.Next.ControllerReplicas))
	}
}

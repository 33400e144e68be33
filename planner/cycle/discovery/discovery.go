// Package discovery finds the fleet, and whether it can be believed.
package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plural"
	"ballast/planner/sharding"
)

// FirstPlanWaits reports whether the first plan waits: it is the fleet as it is, or there is none.
func (d Phase) FirstPlanWaits() bool {
	p := cmp.Or(d.In.InForce, d.In.Last)
	if p != nil && (p.Mode.Enforced() || d.In.InForce == nil) { // one that holds nothing is made anew of what is seen
		return false
	}
	if name := standing.UnknownOwner(d.In, d.Out.Fleet); name != "" {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: d.In.Workload.Name, Kind: "EnvUnknown",
			Message: fmt.Sprintf(
				"%s of %s %q comes from a reference (valueFrom or envFrom), the pods do not bear out what a ConfigMap says it holds, "+
					"and none says who has %q: there is no plan until the pods do (their metrics on port 8082 must be reachable, or in Prometheus), "+
					"or until the env has a value of its own, as a number",
				plan.EnvReplicas, d.In.Workload.Kind, d.In.Workload.Name, name), Keeps: true})
		return true
	}
	silent := standing.Unweighed(d.In, d.Out.Fleet)
	if len(silent) == 0 {
		return false
	}
	d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: d.In.Workload.Name, Kind: "OwnersUnknown",
		Message: fmt.Sprintf(
			"Argo CD's consistent-hashing places clusters without a shard by the number of all Applications, and no pod says that it has %s: "+
				"nothing is planned until the pods do (their metrics on port 8082 must be reachable, or in Prometheus), or until those Secrets have a shard",
			problem.ClipList(silent)), Keeps: true})
	return true
}

// Phase finds the fleet, and whether it can be believed.
type Phase struct{ *outcome.Draft }

// Discover lists the fleet; false means that it cannot be believed: too many clusters are gone at once.
func (d Phase) Discover() bool {
	in := d.In.Discovered
	in.InClusterOwner = sharding.InClusterOwner(standing.Algorithm(d.In), standing.ControllerReplicas(d.In.Workload))
	in.Secrets = d.withBarred(d.withWorkedOn(in.Secrets))
	var err error
	d.Out.Fleet, d.Out.Memory.Known, err = discover.Discover(in, d.In.KnownFleet(),
		discover.Options{MaxShrink: d.In.Config.Discover.MaxShrink.Share(), Before: d.In.Memory.Servers,
			Made: d.In.Memory.Made, Had: d.In.Had}, d.In.Now)
	d.In.Workload.EnvSaid = standing.Confirmed(d.In, d.Out.Fleet)
	if beside := d.In.Workload.Beside; beside != "" {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: d.In.Workload.Name, Kind: "TargetAmbiguous",
			Message: fmt.Sprintf("several workloads may be the application-controller: the plan stays with %s %s; "+
				"set target.kind and target.name, or delete what is none: %s", d.In.Workload.Kind, d.In.Workload.Name,
				beside)})
	}
	for _, p := range d.Out.Fleet.Problems {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: p.Secret, Kind: string(p.Kind),
			Message: p.Message})
	}
	if err != nil { // a *discover.ShrinkError
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Kind: "Shrunk", Message: err.Error(), Keeps: true})
	}
	d.remember()
	return err == nil
}

// remember keeps the servers of the clusters, and when their Secrets were made.
func (d Phase) remember() {
	clusters := d.Out.Fleet.Clusters
	servers, made := make(map[string]string, len(clusters)), make(map[string]time.Time, len(clusters))
	for i := range clusters {
		cl := &clusters[i]
		servers[cl.Shard.ID] = cl.Shard.Server
		if !cl.Created.IsZero() {
			made[cl.Shard.ID] = cl.Created
		}
	}
	d.Out.Memory.Servers, d.Out.Memory.Made = servers, made
}

// mostBarred is how many Secrets that cannot be written people are told of, each by name.
const mostBarred = 20

// withWorkedOn counts a cluster that Argo CD is told to leave alone as long as its pods do not: before 3.4 they pass
// the annotation over on a Secret, and what they work on costs its replica as much as any other.
func (d Phase) withWorkedOn(secrets []discover.Secret) []discover.Secret {
	var counted []string
	for i := range secrets {
		s := &secrets[i]
		if !s.SkipReconcile {
			continue
		}
		_, had := d.In.Memory.Changes.Ownership.Last[s.Name]
		if shown, looked := d.In.Observed.Reported.Clusters[s.Name]; looked && d.In.Observed.Reported.Asked {
			had = len(shown.Holders) > 0
		}
		if !had {
			continue
		}
		if counted == nil {
			secrets = slices.Clone(secrets)
		}
		secrets[i].SkipReconcile = false
		counted = append(counted, s.Name)
	}
	if len(counted) > 0 {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Kind: "SkipIgnored", Message: fmt.Sprintf(
			"the pods reconcile Applications of %s though annotated %s, which Argo CD before 3.4 does not heed on a Secret: they count as any other; the first: %q",
			plural.Of(len(counted), "cluster"), discover.AnnotationSkipReconcile, counted[0])})
	}
	return secrets
}

// withBarred makes a Secret that the API server lets nobody write what it is: as good as immutable. What waited for it
// would wait for good, and with it all others.
func (d Phase) withBarred(secrets []discover.Secret) []discover.Secret {
	cannot := func(s discover.Secret) bool { // one that is being deleted has a problem of its own
		_, barred := d.In.Barred[s.Name]
		return (barred || s.Deleting) && !s.Immutable && !s.Unmanaged
	}
	if !slices.ContainsFunc(secrets, cannot) {
		return secrets
	}
	secrets = slices.Clone(secrets)
	told := 0
	for i, s := range secrets {
		if !cannot(s) {
			continue
		}
		secrets[i].Immutable = true
		why, barred := d.In.Barred[s.Name]
		if !barred {
			continue
		}
		if told++; told <= mostBarred {
			d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Subject: s.Name, Kind: "Unwritable",
				Message: fmt.Sprintf(
					"ballast cannot write Secret %q, so its cluster stays where it is, and nothing waits for it; it is tried again from time to time: %s", s.Name, why)})
		}
	}
	if more := told - mostBarred; more > 0 {
		d.Tell(problem.Problem{Phase: problem.PhaseDiscover, Kind: "Unwritable",
			Message: fmt.Sprintf("%d more Secrets cannot be written", more)})
	}
	return secrets
}

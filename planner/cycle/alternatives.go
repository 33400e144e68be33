package cycle

import (
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// Alternative is a way to divide the fleet by the loads of this cycle.
type Alternative struct {
	Name      string  `json:"name"`
	Replicas  int     `json:"replicas"`
	Imbalance float64 `json:"imbalance"` // makespan over mean
	Moves     int     `json:"moves"`
}

// Alternatives are, by the loads of one cycle, the fleet as it is, the candidate, what lpt would deal, and where Argo
// CD's own algorithms put clusters over as many replicas as there are. None where there is no candidate.
func Alternatives(in input.Inputs, out outcome.Outcome) []Alternative {
	if out.Candidate == nil || out.Loads == nil {
		return nil
	}
	all := []Alternative{
		{Name: "as it is", Replicas: len(out.Now), Imbalance: outcome.Imbalance(out.Now)},
		alternativeOf("candidate", *out.Candidate),
	}
	if in.Config.Partition.LPT == nil {
		in.Config.Partition.LPT, in.Config.Partition.Sticky = &config.LPT{}, nil
		if dealt := Run(in).Candidate; dealt != nil {
			all = append(all, alternativeOf("lpt", *dealt))
		}
	}
	for _, algorithm := range []sharding.Algorithm{sharding.Legacy, sharding.RoundRobin, sharding.ConsistentHashing} {
		all = append(all, by(out, algorithm, applications(in, out.Fleet)))
	}
	return all
}

func alternativeOf(name string, c outcome.Candidate) Alternative {
	return Alternative{Name: name, Replicas: len(c.Replicas), Imbalance: outcome.Imbalance(c.Replicas),
		Moves: len(c.Moves)}
}

// by is where an algorithm of Argo CD's puts clusters whose Secrets name no replica.
func by(o outcome.Outcome, algorithm sharding.Algorithm, apps map[string]int) Alternative {
	replicas := len(o.Now)
	clusters := make([]discover.Cluster, len(o.Fleet.Clusters))
	for i, c := range o.Fleet.Clusters {
		clusters[i] = c
		clusters[i].Explicit = discover.ShardValue{}
	}
	owners := sharding.Owners(clusters, algorithm, replicas, apps)
	a := Alternative{Name: string(algorithm), Replicas: replicas,
		Imbalance: outcome.Imbalance(outcome.ReplicasOf(outcome.IndexesOf(o.Fleet, o.Loads), replicas, func(i int) int { return owners[i] }))}
	for i, c := range clusters {
		if row, planned := o.Next.Clusters[c.Shard.ID]; planned && owners[i] != plan.NoReplica && owners[i] != row.Replica {
			a.Moves++
		}
	}
	return a
}

// applications is the number of Applications by server, as far as the pods say: consistent-hashing bounds each
// replica's.
func applications(in input.Inputs, fleet discover.Fleet) map[string]int {
	apps := map[string]int{}
	for _, c := range fleet.Clusters {
		if shown, looked := in.Observed.Reported.Clusters[c.Shard.ID]; looked && shown.Apps > 0 {
			apps[c.Shard.Server] = shown.Apps
		}
	}
	return apps
}

package standing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/poll"
	"ballast/planner/sim"
)

// TestWhoseOwnersAreUnknown: of three replicas under consistent-hashing that say that they have lab and two Applications of it.
func TestWhoseOwnersAreUnknown(t *testing.T) {
	const lab, prod = "lab", "prod"
	says := func(in *input.Inputs, name string, apps int, owners ...int) {
		in.Observed.Reported.Clusters[name] = ownership.ClusterObservation{Server: sim.Server(name), Owners: owners, Holders: owners, Apps: apps}
	}
	prods := func(apps int, owners ...int) func(*input.Inputs) {
		return func(in *input.Inputs) { says(in, prod, apps, owners...) }
	}
	unseen := func(in *input.Inputs) { in.Observed = input.Observed{} }
	silent := func(in *input.Inputs) { in.Observed.Pods[1].Answered = false }
	young := func(in *input.Inputs) { in.Observed.Pods[2].Started = in.Now.Add(-9 * time.Minute) }
	asked := func(in *input.Inputs) { in.Observed.Reported.Asked = true }
	down := func(replica int) func(*input.Inputs) {
		return func(in *input.Inputs) {
			in.Observed.Pods[replica].Ready, in.Observed.Pods[replica].Answered = false, false
		}
	}
	skipped := func(in *input.Inputs) { in.Discovered.Secrets[1].SkipReconcile = true }
	peoples := func(in *input.Inputs) { in.Discovered.Secrets[1].Unmanaged = true }
	of := func(changes ...func(*input.Inputs)) []func(*input.Inputs) { return changes }
	for name, test := range map[string]struct {
		changes []func(*input.Inputs)
		want    []string
	}{
		"each says so itself":                      {nil, nil},
		"another algorithm":                        {of(unseen, func(in *input.Inputs) { in.Discovered.Algorithm = "legacy" }), nil},
		"one replica":                              {of(unseen, func(in *input.Inputs) { *in.Workload.EnvReplicas = "1" }), nil},
		"no pod runs":                              {of(unseen, func(in *input.Inputs) { in.Workload.Replicas = 0 }), nil},
		"nothing is seen":                          {of(unseen), []string{lab, prod}},
		"nothing is seen but Prometheus":           {of(unseen, scraped(1, lab), scraped(0, prod)), nil},
		"Prometheus shows one":                     {of(unseen, scraped(1, lab)), []string{prod}},
		"a shard decides":                          {of(unseen, stamp(lab, "2"), stamp(prod, "7")), nil},
		"a shard that is none decides nothing":     {of(unseen, stamp(lab, "x"), stamp(prod, "-1")), []string{lab}},
		"it is to be left alone":                   {of(silent, prods(2), skipped), nil},
		"people keep it":                           {of(silent, prods(2), peoples), nil},
		"its pod is silent":                        {of(silent, prods(2)), []string{prod}},
		"its pod is silent, or it has none":        {of(silent, prods(0)), []string{prod}},
		"every pod says that it has it not":        {of(prods(2)), nil},
		"one of them has started just now":         {of(prods(2), young), []string{prod}},
		"and it has no Application":                {of(prods(0), young), nil},
		"two have it":                              {of(prods(2, 0, 1)), []string{prod}},
		"its pod is not ready, the others say so":  {of(down(1), asked, prods(2)), nil},
		"it is not ready, and another is silent":   {of(down(1), prods(2)), []string{prod}},
		"it is not ready, and another is young":    {of(down(1), asked, prods(2), young), []string{prod}},
		"two are not ready":                        {of(down(0), down(1), asked, prods(2)), []string{prod}},
		"it is not ready, and another has it":      {of(down(1), asked, prods(2, 0)), nil},
		"it is not ready, and two others have it":  {of(down(1), asked, prods(2, 0, 2)), []string{prod}},
		"it is not ready, and beyond the env":      {of(down(2), asked, prods(2), func(in *input.Inputs) { *in.Workload.EnvReplicas = "2" }), []string{lab, prod}},
		"one beyond those that count has it, too":  {of(prods(2, 0, 3)), nil},
		"one beyond those that count has it alone": {of(prods(2, 3)), []string{prod}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input.Inputs{Now: sim.Epoch, Workload: sim.Workload(), Discovered: discover.Input{Algorithm: "consistent-hashing"}}
			in.Discovered.Secrets = []discover.Secret{sim.Secret(lab), sim.Secret(prod)}
			in.Observed = input.Observed{Known: true, Reported: ownership.Observation{Clusters: map[string]ownership.ClusterObservation{}}}
			for i := range 3 {
				pod := observed.Pod{Replica: i, Name: sim.PodName(i), Ready: true, Answered: true}
				in.Observed.Pods = append(in.Observed.Pods, pod)
			}
			says(&in, lab, 2, 2)
			says(&in, prod, 2, 0)
			for _, change := range test.changes {
				change(&in)
			}
			if diff := cmp.Diff(test.want, Unweighed(in, Fleet(in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// scraped is what Prometheus shows of a replica's.
func scraped(replica int, name string) func(*input.Inputs) {
	return func(in *input.Inputs) {
		sample := poll.Sample{Key: sim.PodName(replica) + "|" + sim.Server(name), Value: 1}
		in.Owners.Samples = append(in.Owners.Samples, sample)
	}
}

func stamp(name, shard string) func(*input.Inputs) {
	return func(in *input.Inputs) {
		sim.Find(in.Discovered.Secrets, name).Shard = discover.ParseShard([]byte(shard))
	}
}

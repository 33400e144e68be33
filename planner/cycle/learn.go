package cycle

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/memory"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// rates are the default metrics that say how much a pod has to do, and nothing of what it keeps.
var rates = []string{"events", "reconciles"}

// takenMetrics are the metrics that memory may follow.
func takenMetrics(c config.PlannerConfig) (ids []string) {
	own := c.Poll.Prometheus != nil && c.Poll.Prometheus.OfClusters() != nil
	for _, m := range MetricsOf(c) {
		if own || !slices.Contains(rates, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// learnMemory notes what pods have in use beside what their clusters' metrics add up to, where no weights are configured.
func (u memoryUse) learnMemory() {
	m := remembers(u.In.Config)
	if m == nil || m.Weights != nil {
		u.Out.Memory.Taken = memory.Taken{}
		return
	}
	if u.Out.Table.Columns == nil || u.Out.Table.Frozen || !u.In.Observed.Reported.Asked {
		return
	}
	ids := takenMetrics(u.In.Config)
	u.Out.Memory.Taken = u.In.Memory.Taken.Next(u.podsInUse(ids), ids, u.In.Now)
}

// mostLearned is more of anything than a fleet has; what says more is nobody's measure.
const mostLearned = 1e18

// podsInUse looks at every pod that says what it owns and how much memory it has in use. One that shares a cluster with another, or
// whose clusters move, is left out: what it has in use is of both.
func (u memoryUse) podsInUse(ids []string) (looks []memory.Look) {
	values, names, mixed := map[int][]float64{}, map[int][]string{}, map[int]bool{}
	for i, cl := range u.Out.Fleet.Clusters {
		shown := u.In.Observed.Reported.Clusters[cl.Shard.ID]
		_, moves := u.In.Memory.Changes.Moved[cl.Shard.ID]
		for _, r := range shown.Owners {
			mixed[r] = mixed[r] || moves || len(shown.Owners) > 1
			if values[r] == nil {
				values[r] = make([]float64, len(ids))
			}
			for _, col := range u.Out.Table.Columns {
				if k := slices.Index(ids, col.ID); k >= 0 {
					values[r][k] += col.Values[i]
				}
			}
			names[r] = append(names[r], cl.Shard.ID)
		}
	}
	for _, p := range u.In.Observed.Pods {
		if says := p.Ready && p.Answered && p.Memory > 0; !says || mixed[p.Replica] || values[p.Replica] == nil {
			continue
		}
		if slices.ContainsFunc(values[p.Replica], func(v float64) bool { return v > mostLearned }) { // one such figure would fit nothing for days
			continue
		}
		sum := sha256.New()
		for _, name := range names[p.Replica] {
			sum.Write([]byte(name + "\x00"))
		}
		looks = append(looks, memory.Look{Pod: p.Name, Started: p.Started, Of: hex.EncodeToString(sum.Sum(nil)[:8]), Values: values[p.Replica], Memory: float64(p.Memory)})
	}
	return looks
}

// weighsMemory is what one more of each metric takes, and a replica without any cluster, by the configuration, else by what was
// learned: what that is off by is left free. why says that it is not known.
func (u memoryUse) weighsMemory(m config.Memory) (weights map[string]float64, base plan.Bytes, why string) {
	if m.Weights != nil {
		weights = make(map[string]float64, len(m.Weights))
		for id, w := range m.Weights {
			weights[id] = w.Float()
		}
		return weights, m.Base.Bytes(), ""
	}
	t := u.Out.Memory.Taken
	if t.Fit == nil {
		if why = t.Why; why == "" {
			why = "no pod was seen for long enough with the same clusters"
		}
		return nil, 0, "what clusters take is not learned yet: " + why
	}
	base, err := plan.NewBytes(t.Fit.Base + t.Fit.Margin)
	if err != nil {
		return nil, 0, err.Error()
	}
	return t.Fit.Per, base, ""
}

// bears has a replica bear at least what one is seen to: where a pod has less in use than all there is, what its clusters take by
// what was learned is no too much.
func (u memoryUse) bears(g *ground.Ground, all plan.Bytes) {
	for _, p := range u.In.Observed.Pods {
		if within := observedWithin(p, all); within && p.Replica >= 0 && p.Replica < len(g.InUse.Now) {
			g.InUse.Room = max(g.InUse.Room, g.InUse.Now[p.Replica])
		}
	}
}

func observedWithin(p observed.Pod, all plan.Bytes) bool {
	return p.Ready && p.Memory > 0 && plan.Bytes(p.Memory) <= all
}

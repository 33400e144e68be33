package inuse

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/track"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// rates are the default metrics that say how much a pod has to do, and nothing of what it keeps.
var rates = []string{"events", "reconciles"}

// takenMetrics are the metrics that memory may follow.
func takenMetrics(c config.PlannerConfig) (ids []string) {
	own := c.Poll.Prometheus != nil && c.Poll.Prometheus.OfClusters() != nil
	for _, m := range loads.MetricsOf(c) {
		if own || !slices.Contains(rates, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Learn notes what pods have in use beside what their clusters' metrics add up to, where no weights are configured.
func Learn(d *outcome.Draft) {
	u := memoryUse{d}
	m := remembers(u.In.Config)
	if m == nil || m.Weights != nil {
		u.Out.Memory.Usage = track.Usage{}
		return
	}
	if u.Out.Table.Columns == nil || u.Out.Table.Frozen || !u.In.Observed.Reported.Asked {
		return
	}
	ids := takenMetrics(u.In.Config)
	u.Out.Memory.Usage = u.In.Memory.Usage.Next(u.podsInUse(ids), ids, u.In.Now)
}

// mostLearned is more of anything than a fleet has; what says more is nobody's measure.
const mostLearned = 1e18

// has is what a replica's clusters add up to, by metric.
type has struct {
	names  []string
	values []float64
	unsure []float64              // of those that another replica has, too, or that move
	parts  [track.Parts][]float64 // of those whose names fall into it
}

func newHas(metrics int) *has {
	h := &has{values: make([]float64, metrics), unsure: make([]float64, metrics)}
	for part := range h.parts {
		h.parts[part] = make([]float64, metrics)
	}
	return h
}

// clustersOf is what each replica has, by the pods themselves.
func (u memoryUse) clustersOf(ids []string) map[int]*has {
	all := map[int]*has{}
	for i, cl := range u.Out.Fleet.Clusters {
		shown := u.In.Observed.Reported.Clusters[cl.Shard.ID]
		_, moves := u.In.Memory.Changes.Moved[cl.Shard.ID]
		part := int(sha256.Sum256([]byte(cl.Shard.ID))[0]) % track.Parts
		for _, r := range shown.Owners {
			h := all[r]
			if h == nil {
				h = newHas(len(ids))
				all[r] = h
			}
			h.names = append(h.names, cl.Shard.ID)
			for _, col := range u.Out.Table.Columns {
				k := slices.Index(ids, col.ID)
				if k < 0 {
					continue
				}
				h.values[k] += col.Values[i]
				h.parts[part][k] += col.Values[i]
				if moves || len(shown.Owners) > 1 {
					h.unsure[k] += col.Values[i]
				}
			}
		}
	}
	return all
}

// says reports whether what the pod has in use is of its own clusters alone, but for what is light, and is anybody's
// measure.
func (h *has) says() bool {
	for k, v := range h.values {
		if h.unsure[k] > track.Light*v || v > mostLearned { // one such figure would fit nothing for days
			return false
		}
	}
	return true
}

// of is a hash of the clusters' names.
func (h *has) of() string {
	sum := sha256.New()
	for _, name := range h.names {
		sum.Write([]byte(name + "\x00"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// shape is how what they add up to is spread over the parts that their names fall into.
func (h *has) shape() []float64 {
	shape, measures := make([]float64, track.Parts), 0.0
	for k, all := range h.values {
		if all <= 0 {
			continue
		}
		measures++
		for part := range shape {
			shape[part] += h.parts[part][k] / all
		}
	}
	for part := range shape {
		shape[part] = math.Round(shape[part]/max(measures, 1)*1e4) / 1e4 // it is kept in the history
	}
	return shape
}

// podsInUse looks at every pod that says what it owns and how much memory it has in use. One that shares a cluster with
// another, or whose clusters move, is left out, unless they are light: what it has in use is of both.
func (u memoryUse) podsInUse(ids []string) (looks []track.Look) {
	clusters := u.clustersOf(ids)
	for _, p := range u.Out.Memory.Changes.Replicas.Dated(u.In.Observed.Pods, u.In.Now) {
		h := clusters[p.Replica]
		says := p.Ready && p.Answered && p.Memory > 0
		if known := h != nil && h.says(); !says || !known {
			continue
		}
		looks = append(looks, track.Look{Pod: p.Name, Started: p.Started, Of: h.of(), Shape: h.shape(),
			Values: h.values,
			Memory: float64(p.Memory)})
	}
	return looks
}

// weighsMemory is what one more of each metric takes, and a replica without any cluster, by the configuration, else by
// what was learned: what that is off by is left free. why says that it is not known.
func (u memoryUse) weighsMemory(m config.Memory) (weights map[string]float64, base plan.Bytes, why string) {
	if m.Weights != nil {
		weights = make(map[string]float64, len(m.Weights))
		for id, w := range m.Weights {
			weights[id] = w.Float()
		}
		return weights, m.Base.Bytes(), ""
	}
	t := u.Out.Memory.Usage
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

// bears has a replica bear at least what one is seen to: where a pod has less in use than all there is, what its
// clusters take by what was learned is no too much.
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

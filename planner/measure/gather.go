package measure

import (
	"math"

	"ballast/planner/measure/match"
	"ballast/planner/poll"
)

func (j *metricJoin) gather(answer poll.Fetched) gathered {
	g, x := j.nothing(), j.index(j.metric)
	for _, s := range answer.Samples {
		i := x.Find(s.Key, j.metric.Match.Aliases)
		if x.Leads(i) {
			g.shared = append(g.shared, s.Key)
		}
		switch {
		case i == match.Ambiguous:
			g.ambiguous = append(g.ambiguous, s.Key)
		case i == match.Nobody:
			g.unmatched = append(g.unmatched, s.Key)
		case math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Value < 0:
			g.matched++
			g.bad = append(g.bad, s.Key)
		default:
			g.matched++
			g.add(i, s, j.now)
		}
	}
	if j.options.MaxAge > 0 {
		g.markOld(j.now.Add(-j.options.MaxAge).UnixMilli())
	}
	for i, carrier := range j.carriers {
		if i != carrier && g.got[i] && (!g.got[carrier] || g.values[i] > g.values[carrier]) {
			g.got[carrier], g.values[carrier], g.at[carrier] = true, g.values[i], g.at[i]
		}
	}
	return g
}

// nothing is gathered yet. Metrics are gathered one after the other, in the same room.
func (j *joiner) nothing() gathered {
	if n := len(j.fleet.Clusters); j.room.got == nil {
		j.room = gathered{got: make([]bool, n), values: make([]float64, n), at: make([]int64, n),
			keys: make([]string, n)}
	}
	clear(j.room.got) // the others say nothing without it
	return j.room
}

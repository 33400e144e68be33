package counting

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/track"
	"ballast/planner/plan"
)

// evidence holds what replicas are known to bear.
type evidence struct{ *outcome.Draft }

// weigh holds what replicas are known to bear, and tells people when one has carried more for long. It moves nothing
// and adds no replica: that more is too much nobody knows, either.
func (e evidence) weigh(g *ground.Ground) {
	p, m := e.In.Config.Partition, &e.Out.Memory
	fullest, seen := fullestWell(e.Out, loads.OfUnits(&e.Out, g))
	if p.Replicas != nil || len(e.In.Config.Size.Weights) > 0 || !lasting(e.In.Config) {
		m.Evidence = track.Evidence{}
		return
	}
	if configured := bounds.Capacity(g); configured > 0 {
		m.Evidence = track.Evidence{}
		e.Out.Line = lineOf(configured, fullest, seen.Fullest)
		e.Out.Line.Configured = true
		return
	}
	if seen.Fullest == 0 || g.Next.Rollout != nil {
		return // no replica is well, or clusters are on their way
	}
	m.Evidence = e.In.Memory.Evidence.Next(seen, e.meaning(g), e.In.InForce != nil && g.Next.Mode.Enforced(), e.In.Now)
	e.Out.Line = lineOf(m.Evidence.Line(seen), fullest, seen.Fullest)
	e.Out.Line.Since = m.Evidence.At
	if m.Evidence.Exceeded(e.In.Now) {
		e.Tell(problem.Problem{Phase: problem.PhasePartition, Kind: "BeyondEvidence", Message: fmt.Sprintf(
			"replica %d carries %.2f of what the fullest one did on %s, when the fleet was taken over, and nobody said what one may carry: "+
				"the number of replicas stays as it is until partition.capacity is set (`ballast calibrate` finds it)",
			fullest, e.Out.Line.Share, m.Evidence.At.UTC().Format(time.DateOnly))})
	}
}

func lineOf(line plan.Load, fullest int, carries plan.Load) *outcome.Line {
	return &outcome.Line{Load: line, Fullest: fullest, Share: float64(carries) / float64(max(line, 1))}
}

// fullestWell is the fullest well replica, and what is seen of them.
func fullestWell(out outcome.Outcome, units []plan.Load) (fullest int, seen track.Seen) {
	ill := map[int]bool{}
	for _, replica := range slices.Concat(out.Replicas.Down, out.Cordoned) {
		ill[replica] = true
	}
	for _, sick := range out.Replicas.Sick {
		ill[sick.Replica] = true
	}
	for _, r := range out.Now {
		seen.All += r.TotalLoad
		if r.TotalLoad > seen.Fullest && !ill[r.ID] {
			fullest, seen.Fullest = r.ID, r.TotalLoad
		}
	}
	for _, load := range units {
		seen.Heaviest = max(seen.Heaviest, load)
	}
	return fullest, seen
}

// lasting reports whether a load means tomorrow what it means today: what is a share of the present fleet says nothing
// of growth.
func lasting(c config.PlannerConfig) bool {
	return c.Normalize.Robust == nil && c.Normalize.MinMax == nil
}

// meaning names what a load is now: the metrics, their weights and their references. What was held by another says
// nothing.
func (e evidence) meaning(g *ground.Ground) string {
	conf := e.In.Config
	text := fmt.Appendf(nil, "%v\n%v\n%s\n", loads.WeightsOf(conf), g.Next.References, conf.Index.PNorm.P) // maps print in order
	for _, m := range loads.MetricsOf(conf) {
		text = fmt.Appendf(text, "%q %q\n", m.ID, m.Text())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

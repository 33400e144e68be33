package cycle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/plan"
)

// Line is what a replica may carry, by the configuration, or where that says nothing, what the fullest well one carried when the
// fleet was taken over, at Since: it is known to be borne. Fullest is the replica that carries most of it now.
type Line struct {
	Load       plan.Load `json:"load"`
	Configured bool      `json:"configured,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Fullest    int       `json:"fullest"`
	Share      float64   `json:"share"` // of the line, that the fullest carries
}

// weighEvidence holds what replicas are known to bear, and tells people when one has carried more for long. It moves nothing and
// adds no replica: that more is too much nobody knows, either.
func (c *cycle) weighEvidence(s *snapshot) {
	p, m := c.in.Config.Partition, &c.out.Memory
	fullest, seen := s.carried(c.unitLoads(s.adoption))
	if p.Replicas != nil || !c.lasting() {
		m.Evidence = memory.Evidence{}
		return
	}
	if configured := boundsOf(p, c.in.Workload, s.adoption).Capacity; configured > 0 {
		m.Evidence = memory.Evidence{}
		c.out.Line = lineOf(configured, fullest, seen.Fullest)
		c.out.Line.Configured = true
		return
	}
	if seen.Fullest == 0 || s.next.Rollout != nil {
		return // no replica is well, or clusters are on their way
	}
	m.Evidence = c.in.Memory.Evidence.Next(seen, c.meaning(s), c.in.InForce != nil && s.next.Mode.Enforced(), c.in.Now)
	c.out.Line = lineOf(m.Evidence.Line(seen), fullest, seen.Fullest)
	c.out.Line.Since = m.Evidence.At
	if m.Evidence.Exceeded(c.in.Now) {
		c.problem(problem.Problem{Phase: problem.PhasePartition, Kind: "BeyondEvidence", Message: fmt.Sprintf(
			"replica %d carries %.2f of what the fullest one did on %s, when the fleet was taken over, and nobody said what one may carry: "+
				"the number of replicas stays as it is until partition.capacity is set (`ballast calibrate` finds it)",
			fullest, c.out.Line.Share, m.Evidence.At.UTC().Format(time.DateOnly))})
	}
}

func lineOf(line plan.Load, fullest int, carries plan.Load) *Line {
	return &Line{Load: line, Fullest: fullest, Share: float64(carries) / float64(max(line, 1))}
}

// carried is the fullest well replica, and what is seen of them.
func (s *snapshot) carried(units []plan.Load) (fullest int, seen memory.Seen) {
	ill := s.closed()
	for _, replica := range s.replicas.Down {
		ill[replica] = true
	}
	for _, r := range s.now {
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

// lasting reports whether a load means tomorrow what it means today: what is a share of the present fleet says nothing of growth.
func (c *cycle) lasting() bool {
	return c.in.Config.Normalize.Robust == nil && c.in.Config.Normalize.MinMax == nil
}

// meaning names what a load is now: the metrics, their weights and their references. What was held by another says nothing.
func (c *cycle) meaning(s *snapshot) string {
	conf := c.in.Config
	text := fmt.Appendf(nil, "%v\n%v\n%s\n", WeightsOf(conf), s.next.References, conf.Index.PNorm.P) // maps print in order
	for _, m := range MetricsOf(conf) {
		text = fmt.Appendf(text, "%q %q\n", m.ID, m.Text())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

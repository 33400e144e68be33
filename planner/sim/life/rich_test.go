package life

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/resize"
	"ballast/planner/sim"
)

// richly has a life's sizes follow more than its clusters: weights, a node cap, what pods have in use. They are decided at an interval, and
// clusters leave replicas whose nodes have no room.
func (l *luck) richly(seed uint64) {
	coin := rand.New(rand.NewPCG(seed, 37))
	c := &l.Config
	if coin.IntN(2) == 0 {
		c.Size.NodeCap = config.SizeCap{CPU: "8", Memory: []config.Quantity{"12Gi", "48Gi"}[coin.IntN(2)]}
	}
	used := config.SizeRule{Name: "used", List: config.Requests, Resource: "memory", Slope: "0.25",
		Quantize: &config.Quantize{Step: "256Mi"}, DelayScaleDown: &config.SizeDelay{DelaySeconds: 3600}}
	switch coin.IntN(3) {
	case 0:
		used.Input = config.InputMemoryInUse
	case 1:
		used.Input = "workingSet"
		prometheus := *c.Poll.Prometheus
		prometheus.Metrics = append(slices.Clone(prometheus.Metrics), config.Metric{ID: used.Input, Query: "x{ {{.targets}} }",
			Match: &config.Match{Label: "pod", To: config.MatchReplica}})
		c.Poll.Prometheus = &prometheus
	}
	if used.Input != "" && !l.Deployment {
		rules := append(slices.Clone(c.Size.Policies[0].Rules), used)
		c.Size.Policies = []config.SizePolicy{{Name: "ours", Rules: rules}}
		l.sizing.seen = true
	}
	if coin.IntN(2) == 0 && c.Partition.Replicas == nil {
		c.Size.Weights = []config.WeightInterval{{From: "0", To: "1.5", Weight: 0}, {From: "1.5", Weight: 10 * coin.IntN(11)}}
	}
	if coin.IntN(3) == 0 {
		c.Size.Interval = config.Duration(15 * time.Minute)
	}
	if c.Rollout.Live != nil && coin.IntN(2) == 0 {
		c.Size.MoveAway = &config.MoveAway{After: config.Duration(30 * time.Minute)}
	}
	l.sizing.size = c.Size
	l.note("sizes %+v", c.Size)
}

// stays reports whether a change of a rich life may be blocked for good: what is less than a tenth, and what weights hold.
func (l *luck) stays(b resize.Blocked) bool {
	return l.draw == rich && slices.Contains([]change.BlockReason{change.TooSmall, change.Weight, change.Paradoxical}, b.Reason)
}

// TestRichLives: what TestSizedLives promises holds beside weights, a node cap, and inputs of pods.
func TestRichLives(t *testing.T) {
	lives, first, counts := sim.FromEnv(t, "BALLAST_RICH_LIVES", 3), sim.FromEnv(t, "BALLAST_SEED", 1), map[string]int{}
	for seed := first; seed < first+lives; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			l := live(t, seed, rich)
			addUp(counts, l.Counts)
			counts["received"] += l.sizing.received
		})
	}
	if t.Logf("%d rich lives: %v", lives, counts); counts["resizes"] == 0 {
		t.Errorf("%v, want containers that are resized", counts)
	}
}

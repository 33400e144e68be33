package config

import (
	"time"

	"ballast/planner/size/weights"
)

// Size says how large each replica is. Without policies its requests and limits are people's.
type Size struct {
	Defaults bool         `json:"defaults,omitempty"` // the shipped policy, below all others
	Policies []SizePolicy `json:"policies" null:"default"`
	Apply    SizeApply    `json:"apply"`
	Limits   SizeLimits   `json:"limits,omitzero"`
	NodeCap  SizeCap      `json:"nodeCap,omitzero"`
	Interval Duration     `json:"interval"`                          // at which sizes are decided; 0: in each cycle
	MoveAway *MoveAway    `json:"moveAway,omitempty" null:"default"` // off a replica whose node has no room for its size

	Weights []WeightInterval `json:"weights,omitempty" null:"default"` // how growth is shared between more replicas and larger ones
}

// WeightInterval is a range of the fleet's load in which Weight percent of the growth makes replicas larger, and the
// rest makes more of them. An empty To is without end.
type WeightInterval struct {
	From   Decimal `json:"from"`
	To     Decimal `json:"to,omitempty"`
	Weight int     `json:"weight"`
}

// SizeLimits are how far limits lie above requests where no rule makes them.
type SizeLimits struct {
	CPU    *Headroom `json:"cpu,omitempty" null:"default"`
	Memory *Headroom `json:"memory,omitempty" null:"default"`
}

// Headroom is the larger of Value and Percentage of the request.
type Headroom struct {
	Value      Quantity `json:"value,omitempty"`
	Percentage Percent  `json:"percentage,omitempty"`
}

// SizeCap is the most that one replica may request: what a node can give it. Of what is not written here, FromNodes
// reads it.
type SizeCap struct {
	CPU       Quantity   `json:"cpu,omitempty"`
	Memory    Quantity   `json:"memory,omitempty"`
	FromNodes *FromNodes `json:"fromNodes,omitempty" null:"default"`
}

// FromNodes is the allocatable of the largest node that the pods may run on, without a reserve for what else runs
// there.
type FromNodes struct {
	Reserve Percent `json:"reserve"`
}

// SetDefaults keeps a tenth of a node free.
func (f *FromNodes) SetDefaults() { f.Reserve = 10 }

// MoveAway has clusters leave a replica whose node has had no room for its size for as long as After.
type MoveAway struct {
	After Duration `json:"after"`
}

// SetDefaults waits for an hour.
func (m *MoveAway) SetDefaults() { m.After = Duration(time.Hour) }

// SizeApply is how pods come to their size.
type SizeApply string

// The ways. InPlace resizes running pods and gives new ones their size; Template restarts every pod with the new one.
const (
	InPlace  SizeApply = "inPlace"
	Template SizeApply = "template"
)

// SizePolicy is rules under a name. Where two policies have the same rule, that of the higher priority holds.
type SizePolicy struct {
	Name     string     `json:"name"`
	Priority int        `json:"priority,omitempty"`
	Rules    []SizeRule `json:"rules"`
}

// SizeRule is base + slope * round(input) / per. Rules of different names for one list and resource add up; an empty
// Container is the controller's, an empty Scope is that of each replica.
type SizeRule struct {
	Name           string        `json:"name,omitempty"`
	Container      string        `json:"container,omitempty"`
	List           SizeList      `json:"list"`
	Resource       string        `json:"resource"`
	Base           Quantity      `json:"base,omitempty"`
	Slope          Quantity      `json:"slope,omitempty"`
	Input          string        `json:"input,omitempty"`
	Scope          SizeScope     `json:"scope,omitempty"`
	Per            Quantity      `json:"per,omitempty"`
	Segments       []SizeSegment `json:"segments,omitempty" null:"default"`
	DelayScaleDown *SizeDelay    `json:"delayScaleDown,omitempty" null:"default"`
	DelayScaleUp   *SizeDelay    `json:"delayScaleUp,omitempty" null:"default"`
	Min            Quantity      `json:"min,omitempty"`
	Max            Quantity      `json:"max,omitempty"`
	Quantize       *Quantize     `json:"quantize,omitempty" null:"default"`
	Smooth         *Smooth       `json:"smooth,omitempty" null:"default"`
}

// Quantize rounds results up to Base, Base + Step and so on; each step is StepRatio times the last, up to MaxStep.
type Quantize struct {
	Base      Quantity `json:"base,omitempty"`
	Step      Quantity `json:"step"`
	StepRatio Decimal  `json:"stepRatio,omitempty"`
	MaxStep   Quantity `json:"maxStep,omitempty"`
}

// Smooth takes a percentile of the input's last samples, and leaves a size alone that lies between those of Low and
// High.
type Smooth struct {
	Target  Percent `json:"target,omitempty"`
	Low     Percent `json:"low,omitempty"`
	High    Percent `json:"high,omitempty"`
	Samples int     `json:"samples,omitempty"`
}

// SizeList is one of a container's two lists of resources.
type SizeList string

// The lists.
const (
	Requests SizeList = "requests"
	Limits   SizeList = "limits"
)

// SizeScope is of what an input is taken: of the fleet, of the replica whose size it is, or of the heaviest cluster.
type SizeScope string

// The scopes.
const (
	ScopeTotal   SizeScope = "total"
	ScopeReplica SizeScope = "replica"
	ScopeCluster SizeScope = "cluster"
)

// SizeSegment rounds inputs from At on up to multiples of Every.
type SizeSegment struct {
	At    Quantity `json:"at"`
	Every Quantity `json:"every"`
}

// SizeDelay holds a change back: by Max of the input, and until it was asked for in every sample of DelaySeconds.
type SizeDelay struct {
	Max          Quantity `json:"max,omitempty"`
	DelaySeconds int      `json:"delaySeconds,omitempty"`
}

// Intervals are the weights as they are evaluated, and what is wrong with them.
func (s Size) Intervals() (weights.Intervals, []string) {
	given := make([]weights.Interval, len(s.Weights))
	for i, w := range s.Weights {
		given[i] = weights.Interval{From: w.From.Float(), Weight: w.Weight}
		if w.To != "" {
			to := w.To.Float()
			given[i].To = &to
		}
	}
	return weights.Check(given)
}

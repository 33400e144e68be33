package resize

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/wish"
	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Sizing is what a cycle found out about sizes.
type Sizing struct {
	Apply    config.SizeApply `json:"apply"`
	Rules    []SizeRow        `json:"rules,omitempty"`
	Replicas []ReplicaSize    `json:"replicas,omitempty"`
	Blocked  []Blocked        `json:"blocked,omitempty"`
	Unmet    []diff.Unmet     `json:"unmet,omitempty"`   // pods that have not got the size that the plan held them at
	Resized  int              `json:"resized,omitempty"` // replicas that get another size by this cycle
}

// SizeRow is what one rule makes of one replica's input. Replica is size.All where it is one for all; Fullest says that
// its input is the fullest replica's, as where one size is for all.
type SizeRow struct {
	Policy   string  `json:"policy,omitempty"`
	Rule     string  `json:"rule"`
	Replica  int     `json:"replica"`
	Fullest  bool    `json:"fullest,omitempty"`
	Input    float64 `json:"input"`
	Known    bool    `json:"known"`
	Computed string  `json:"computed"`
	Value    string  `json:"value"`
	Held     string  `json:"held,omitempty"` // what holds the computed value back
}

// ReplicaSize is a replica's size: what the rules want, and what holds after this cycle.
type ReplicaSize struct {
	Replica int            `json:"replica"`
	Wanted  plan.Resources `json:"wanted"`
	InForce plan.Resources `json:"inForce"`
}

// By is how many replicas a change of their number is of, or how many clusters would move; of a size it is 0.
func (b Blocked) By() float64 {
	if b.Resource != ResourceReplicas && b.Resource != ResourceClusters {
		return 0
	}
	from, _ := strconv.Atoi(b.From) // numbers of ours
	to, _ := strconv.Atoi(b.To)
	return math.Abs(float64(to - from))
}

// Blocked is a change that is wanted and does not happen now. Replica is size.All for all of them.
type Blocked struct {
	Replica   int                `json:"replica"`
	Resource  string             `json:"resource,omitempty"`
	Direction change.Direction   `json:"direction,omitempty"`
	Reason    change.BlockReason `json:"reason"`
	From      string             `json:"from,omitempty"`
	To        string             `json:"to,omitempty"` // what would be otherwise
	Since     time.Time          `json:"since"`
	Until     time.Time          `json:"until,omitzero"` // zero: nobody knows
	Why       string             `json:"why,omitempty"`
}

// Key names what is blocked and why: as long as it is, since then.
func (b Blocked) Key() string {
	return fmt.Sprintf("%d/%s/%s/%s", b.Replica, b.Resource, b.Direction, b.Reason)
}

// What a Blocked that is of no size is of: the number of replicas, or where clusters are.
const (
	ResourceReplicas = "replicas"
	ResourceClusters = "clusters"
)

// String is a line for people.
func (b Blocked) String() string {
	said := fmt.Sprintf("replica %d: %s", b.Replica, b.Resource)
	switch {
	case b.Resource == ResourceClusters:
		return "levelling by " + b.moves() + b.since()
	case b.Resource == ResourceReplicas:
		said = "the number of replicas:"
	case b.Replica == size.All:
		said = "every replica: " + b.Resource
	}
	switch b.To {
	case "":
	case b.From: // which way it would change is not known
		said += " stays at " + b.To + " and"
	default:
		said += fmt.Sprintf(" %s instead of %s", b.To, cmp.Or(b.From, "none"))
	}
	return said + b.since()
}

// moves words how many clusters would have another replica.
func (b Blocked) moves() string {
	if b.To == "1" {
		return "1 move"
	}
	return b.To + " moves"
}

// Steady is without what changes from cycle to cycle: until when, why, and how many clusters would move but for a power
// of two.
func (b Blocked) Steady() Blocked {
	b.Until, b.Why = time.Time{}, ""
	if n := int(b.By()); b.Resource == ResourceClusters && n > 1 {
		b.To = fmt.Sprintf("up to %d", 1<<bits.Len(uint(n-1)))
	}
	return b
}

func (b Blocked) since() string {
	said := fmt.Sprintf(" waits since %s: %s", b.Since.UTC().Format(time.RFC3339), b.Reason)
	if b.Why != "" {
		said += " (" + b.Why + ")"
	}
	if !b.Until.IsZero() {
		said += ", until " + b.Until.UTC().Format(time.RFC3339)
	}
	return said
}

// SizeBack is a replica's size by the plan in force, and by the one that a person goes back to; Replica is size.All
// where they have one.
type SizeBack struct {
	Replica int            `json:"replica"`
	Now     plan.Resources `json:"now"`
	Then    plan.Resources `json:"then"`
}

// Differences are the sizes that differ: only of replicas that both plans size.
func Differences(now, then plan.Plan, replicas int) (back []SizeBack) {
	uniform := now.Resources != nil || now.Target.Kind == plan.Deployment
	ordinals := []int{0}
	for r := 1; r < replicas && !uniform; r++ {
		ordinals = append(ordinals, r)
	}
	is, was := quantity.Planned(now, ordinals, uniform), quantity.Planned(then, ordinals, uniform)
	for _, r := range ordinals {
		a, held := is[r]
		b, had := was[r]
		if !held || !had || a.Same(b) {
			continue
		}
		if uniform {
			r = size.All
		}
		back = append(back, SizeBack{Replica: r, Now: a, Then: b})
	}
	return back
}

// rowsOf are what each rule made of each input, for people, and whose rule it is.
func rowsOf(w wish.Wishes, of config.Size) (all []SizeRow) {
	policies := map[string]string{}
	for _, row := range w.Rows {
		name := strings.TrimSuffix(fmt.Sprintf("%s/%s/%s", row.Rule.List, row.Rule.Resource, row.Rule.Name), "/")
		if _, known := policies[name]; !known {
			policies[name] = of.PolicyOf(row.Rule)
		}
		all = append(all, SizeRow{Policy: policies[name], Rule: name, Replica: row.Replica, Input: row.Input,
			Known:    row.Known,
			Fullest:  row.Replica == size.All && row.Rule.Scope == size.Replica,
			Computed: quantity.Text(row.Rule.Resource, row.Computed),
			Value:    quantity.Text(row.Rule.Resource, row.Value), Held: row.Held})
	}
	return all
}

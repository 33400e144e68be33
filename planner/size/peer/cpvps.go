package peer

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/size"
)

// CPVPS is a ScalingPolicy.
type CPVPS struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Target     target `json:"scaleTargetRef"`
		Priority   int    `json:"priority"`
		Containers []struct {
			Name      string `json:"name"`
			Resources struct {
				Limits   []ScalingRule `json:"limits"`
				Requests []ScalingRule `json:"requests"`
			} `json:"resources"`
		} `json:"containers"`
		Smoothing struct { // of earlier versions, for all rules
			DelayScaleDown struct {
				Inputs       map[string]Amount `json:"inputs"`
				DelaySeconds float64           `json:"delaySeconds"`
			} `json:"delayScaleDown"`
			Percentile *struct {
				Target float64 `json:"target"`
				Low    float64 `json:"lowThreshold"`
				High   float64 `json:"highThreshold"`
			} `json:"percentile"`
		} `json:"smoothing"`
	} `json:"spec"`
}

// ScalingRule is one rule of it.
type ScalingRule struct {
	Name     string   `json:"name"`
	Resource string   `json:"resource"`
	Max      *Amount  `json:"max"`
	Function function `json:"function"`
}

// function also reads what the documents promise and the code drops: per, delayScaling, and quantities in segments; and
// roundTo, every's earlier name.
type function struct {
	Input    string  `json:"input"`
	Base     *Amount `json:"base"`
	Slope    *Amount `json:"slope"`
	Per      *Amount `json:"per"`
	Int      *Amount `json:"int"`
	Segments []struct {
		At      *Amount `json:"at"`
		Every   *Amount `json:"every"`
		RoundTo *Amount `json:"roundTo"`
	} `json:"segments"`
	DelayScaleDown *delay `json:"delayScaleDown"`
	DelayScaling   *delay `json:"delayScaling"`
}

type delay struct {
	Max          *Amount `json:"max"`
	DelaySeconds float64 `json:"delaySeconds"`
	Inputs       *delay  `json:"inputs"` // the same, in an earlier form
}

// ReadCPVPS reads a ScalingPolicy.
func ReadCPVPS(data []byte) (CPVPS, error) {
	var c CPVPS
	text, err := asJSON(data)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("reading the ScalingPolicy: %w", err)
	}
	return c, nil
}

// UnmarshalJSON also reads the earlier form, where the function stands in the rule itself or is a list of one.
func (r *ScalingRule) UnmarshalJSON(data []byte) error {
	var outer struct {
		Name     string          `json:"name"`
		Resource string          `json:"resource"`
		Max      *Amount         `json:"max"`
		Function json.RawMessage `json:"function"`
	}
	if err := json.Unmarshal(data, &outer); err != nil {
		return err
	}
	*r = ScalingRule{Name: outer.Name, Resource: outer.Resource, Max: outer.Max}
	var list []function
	switch {
	case len(outer.Function) == 0:
		return json.Unmarshal(data, &r.Function)
	case outer.Function[0] != '[':
		return json.Unmarshal(outer.Function, &r.Function)
	}
	if err := json.Unmarshal(outer.Function, &list); err != nil {
		return err
	}
	if len(list) != 1 {
		return fmt.Errorf("a list of %d functions is none", len(list))
	}
	r.Function = list[0]
	return nil
}

// Rule is the rule as ours.
func (r ScalingRule) Rule(container string, list size.List) (size.Rule, error) {
	f := r.Function
	rule := size.Rule{Name: r.Name, Container: container, List: list, Resource: r.Resource, Input: f.Input,
		Scope: size.Total}
	if f.Per == nil {
		f.Per = f.Int
	}
	for _, one := range []struct {
		from *Amount
		to   *resource.Quantity
	}{{f.Base, &rule.Base}, {f.Slope, &rule.Slope}, {f.Per, &rule.Per}} {
		if err := set(one.to, one.from); err != nil {
			return rule, err
		}
	}
	var err error
	if rule.Max, err = r.Max.Quantity(); err != nil {
		return rule, err
	}
	for _, s := range f.Segments {
		var segment size.Segment
		if s.Every == nil {
			s.Every = s.RoundTo
		}
		if err := set(&segment.At, s.At); err != nil {
			return rule, err
		}
		if err := set(&segment.Every, s.Every); err != nil {
			return rule, err
		}
		rule.Segments = append(rule.Segments, segment)
	}
	if f.DelayScaleDown == nil {
		f.DelayScaleDown = f.DelayScaling
	}
	if d := f.DelayScaleDown; d != nil {
		if d.Inputs != nil {
			d = d.Inputs
		}
		if d.DelaySeconds < 0 || d.DelaySeconds > math.MaxInt32 {
			return rule, fmt.Errorf("a delay of %v seconds is none", d.DelaySeconds)
		}
		rule.DelayDown.For = time.Duration(d.DelaySeconds * float64(time.Second))
		return rule, set(&rule.DelayDown.Max, d.Max)
	}
	return rule, nil
}

func set(to *resource.Quantity, from *Amount) error {
	q, err := from.Quantity()
	if q != nil {
		*to = *q
	}
	return err
}

// Policy is the whole as ours.
func (c CPVPS) Policy() (size.Policy, error) {
	p := size.Policy{Name: c.Metadata.Name, Priority: c.Spec.Priority}
	for _, container := range c.Spec.Containers {
		for _, list := range []struct {
			name  size.List
			rules []ScalingRule
		}{{size.Requests, container.Resources.Requests}, {size.Limits, container.Resources.Limits}} {
			for i, r := range list.rules {
				rule, err := r.Rule(container.Name, list.name)
				if err != nil {
					return p, fmt.Errorf("reading the %s of container %q, rule %d: %w", list.name, container.Name, i,
						err)
				}
				if err := c.smooth(&rule); err != nil {
					return p, err
				}
				p.Rules = append(p.Rules, rule)
			}
		}
	}
	return p, nil
}

// smooth adds what earlier versions say once for all rules.
func (c CPVPS) smooth(r *size.Rule) error {
	s := c.Spec.Smoothing
	if skew, given := s.DelayScaleDown.Inputs[r.Input]; given && r.Input != "" {
		if err := set(&r.DelayDown.Max, &skew); err != nil {
			return err
		}
	}
	if s.DelayScaleDown.DelaySeconds > 0 {
		r.DelayDown.For = time.Duration(min(s.DelayScaleDown.DelaySeconds, math.MaxInt32) * float64(time.Second))
	}
	if p := s.Percentile; p != nil && r.Input != "" {
		thousandths := func(share float64) int { return int(math.Round(min(max(share, 0), 1) * 1000)) }
		r.Smoothing = &size.Smoothing{Target: thousandths(p.Target), Low: thousandths(p.Low), High: thousandths(p.High)}
	}
	return nil
}

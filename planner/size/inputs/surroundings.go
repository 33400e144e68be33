package inputs

import (
	"cmp"
	"fmt"
	"time"

	"ballast/planner/config"
	"ballast/planner/size"
)

// Surroundings is what was seen around the workload; nil for what nothing asks for.
type Surroundings struct {
	Nodes *Nodes          `json:"nodes,omitempty"`
	VPA   *Recommendation `json:"vpa,omitempty"`
	HPA   *Desired        `json:"hpa,omitempty"`
}

// Recommendation is what the workload's VerticalPodAutoscaler recommends for the controller's container, by resource:
// cores and bytes. Why says why it recommends nothing.
type Recommendation struct {
	At     time.Time          `json:"at,omitzero"`
	Name   string             `json:"name,omitempty"`
	Target map[string]float64 `json:"target,omitempty"`
	Lower  map[string]float64 `json:"lower,omitempty"`
	Upper  map[string]float64 `json:"upper,omitempty"`
	Why    string             `json:"why,omitempty"`
}

// Desired is how many replicas the workload's HorizontalPodAutoscaler wants. Why says why it wants none.
type Desired struct {
	At       time.Time `json:"at,omitzero"`
	Name     string    `json:"name,omitempty"`
	Replicas int       `json:"replicas,omitempty"`
	Why      string    `json:"why,omitempty"`
}

// Wants is what of the surroundings a configuration needs.
type Wants struct{ Nodes, VPA, HPA bool }

// WantsOf is what size rules and the node cap need.
func WantsOf(s config.Size) Wants {
	var w Wants
	if len(s.All()) == 0 {
		return w
	}
	w.Nodes = s.NodeCap.FromNodes != nil
	for _, input := range s.SizeInputs() {
		switch config.SourceOf(input) {
		case config.FromNodesInput:
			w.Nodes = true
		case config.FromVPA:
			w.VPA = true
		case config.FromHPA:
			w.HPA = true
		}
	}
	return w
}

// Any reports whether anything is needed.
func (w Wants) Any() bool { return w.Nodes || w.VPA || w.HPA }

// Of is an input of the surroundings as it was seen last; where it is not known, it says why.
func (s Surroundings) Of(input string, now time.Time) (size.Reading, string) {
	value, why := 0.0, neverSeen
	switch config.SourceOf(input) {
	case config.FromNodesInput:
		value, why = s.ofNodes(input, now)
	case config.FromVPA:
		value, why = s.ofVPA(input, now)
	case config.FromHPA:
		if s.HPA != nil {
			value, why = float64(s.HPA.Replicas), unknown(s.HPA.Why, s.HPA.At, now)
		}
	}
	if why != "" {
		return size.Reading{Missing: true}, why
	}
	return size.Reading{Total: value}, ""
}

func (s Surroundings) ofNodes(input string, now time.Time) (float64, string) {
	if s.Nodes == nil {
		return 0, neverSeen
	}
	values := map[string]float64{config.InputCores: s.Nodes.Cores, config.InputMemory: s.Nodes.Memory,
		config.InputNodes: float64(s.Nodes.Count)}
	return values[input], s.Nodes.unknown(now)
}

func (s Surroundings) ofVPA(input string, now time.Time) (float64, string) {
	if s.VPA == nil {
		return 0, neverSeen
	}
	if why := unknown(s.VPA.Why, s.VPA.At, now); why != "" {
		return 0, why
	}
	bound, resource := config.BoundOf(input)
	value, has := map[string]map[string]float64{"Target": s.VPA.Target, "LowerBound": s.VPA.Lower,
		"UpperBound": s.VPA.Upper}[bound][resource]
	if !has {
		return 0, fmt.Sprintf("VerticalPodAutoscaler %s recommends no %s", s.VPA.Name, resource)
	}
	return value, ""
}

// Or is what was seen, and of what was not seen now what was before.
func (s Surroundings) Or(before Surroundings) Surroundings {
	return Surroundings{Nodes: cmp.Or(s.Nodes, before.Nodes), VPA: cmp.Or(s.VPA, before.VPA),
		HPA: cmp.Or(s.HPA, before.HPA)}
}

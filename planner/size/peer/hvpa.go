package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/change/maintenance"
	"ballast/planner/size"
)

// HVPA is an Hvpa of its API v1alpha1.
type HVPA struct {
	Metadata metadata `json:"metadata"`
	Spec     HVPASpec `json:"spec"`
}

// HVPASpec is what of it says how to scale.
type HVPASpec struct {
	Hpa struct {
		Deploy    bool      `json:"deploy"`
		Earlier   Mode      `json:"updatePolicy"` // of both directions
		ScaleUp   ScaleType `json:"scaleUp"`
		ScaleDown ScaleType `json:"scaleDown"`
		Template  struct {
			Spec struct {
				MinReplicas *int              `json:"minReplicas"`
				MaxReplicas int               `json:"maxReplicas"`
				Metrics     []json.RawMessage `json:"metrics"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"hpa"`
	Vpa struct {
		Deploy    *bool     `json:"deploy"` // nil: nothing is said of it
		Earlier   Mode      `json:"updatePolicy"`
		ScaleUp   ScaleType `json:"scaleUp"`
		ScaleDown ScaleType `json:"scaleDown"`
		Gap       Params    `json:"limitsRequestsGapScaleParams"`
		Template  struct {
			Spec struct {
				ResourcePolicy struct {
					ContainerPolicies []ContainerPolicy `json:"containerPolicies"`
				} `json:"resourcePolicy"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"vpa"`
	Intervals WeightIntervals `json:"weightBasedScalingIntervals"`
	Target    target          `json:"targetRef"`
	Window    *struct {
		Begin string `json:"begin"`
		End   string `json:"end"`
	} `json:"maintenanceTimeWindow"`
}

// Mode is an updatePolicy.
type Mode struct {
	UpdateMode change.Mode `json:"updateMode"`
}

// ScaleUpMode is a mode of earlier versions: up is Auto, down is Off.
const ScaleUpMode change.Mode = "ScaleUp"

// ScaleType is one direction's rules.
type ScaleType struct {
	UpdatePolicy          Mode   `json:"updatePolicy"`
	MinChange             Params `json:"minChange"`
	StabilizationDuration string `json:"stabilizationDuration"`
}

// Params are parameters by resource.
type Params struct {
	CPU      Param `json:"cpu"`
	Memory   Param `json:"memory"`
	Replicas Param `json:"replicas"`
}

// Param is a value, a percentage, or both.
type Param struct {
	Value      *Amount `json:"value"`
	Percentage *int    `json:"percentage"`
}

// ContainerPolicy is what a VPA may do with a container.
type ContainerPolicy struct {
	ContainerName       string            `json:"containerName"`
	Mode                string            `json:"mode"` // Off: the VPA says nothing of it
	MinAllowed          map[string]Amount `json:"minAllowed"`
	MaxAllowed          map[string]Amount `json:"maxAllowed"`
	ControlledResources []string          `json:"controlledResources"`
	ControlledValues    string            `json:"controlledValues"`
}

// WeightInterval is a range of replica counts, both ends in it; 0 is the least and the most replicas.
type WeightInterval struct {
	VpaWeight int `json:"vpaWeight"`
	Start     int `json:"startReplicaCount"`
	Last      int `json:"lastReplicaCount"`
}

// WeightIntervals are all of an Hvpa.
type WeightIntervals []WeightInterval

// UnmarshalJSON also reads the README's weights, which are shares of 1: where one of them is a fraction all are.
func (w *WeightIntervals) UnmarshalJSON(data []byte) error {
	var read []struct {
		VpaWeight float64 `json:"vpaWeight"`
		Start     int     `json:"startReplicaCount"`
		Last      int     `json:"lastReplicaCount"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	whole := 1.0
	for _, in := range read {
		if in.VpaWeight != math.Trunc(in.VpaWeight) {
			whole = 100
		}
	}
	*w = nil
	for _, in := range read {
		weight := math.Round(in.VpaWeight * whole)
		if !(weight >= 0 && weight <= 100) {
			return fmt.Errorf("a vpaWeight of %v is none: it is between 0 and 100", in.VpaWeight)
		}
		*w = append(*w, WeightInterval{VpaWeight: int(weight), Start: in.Start, Last: in.Last})
	}
	return nil
}

// ReadHVPA reads an Hvpa.
func ReadHVPA(data []byte) (HVPA, error) {
	var h HVPA
	text, err := asJSON(data)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("reading the Hvpa: %w", err)
	}
	var second struct {
		Spec struct {
			ScaleIntervals json.RawMessage `json:"scaleIntervals"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &second); err != nil {
		return h, fmt.Errorf("reading the Hvpa: %w", err)
	}
	if second.Spec.ScaleIntervals != nil {
		return h, errors.New("spec.scaleIntervals are of HVPA's branch hvpa-v2, which no release has: write weightBasedScalingIntervals instead")
	}
	return h, nil
}

// Of is the parameter of a resource.
func (p Params) Of(name string) Param {
	if name == size.Memory {
		return p.Memory
	}
	return p.CPU
}

// MinChange is a resource's least change in thousandths; where nothing is given HVPA's defaults hold, 200m and 200M.
func (p Params) MinChange(name string) (change.MinChange, error) {
	given := p.Of(name)
	value, err := given.Value.Quantity()
	if err != nil {
		return change.MinChange{}, err
	}
	if value == nil && given.Percentage == nil {
		most := resource.MustParse("200m")
		if name == size.Memory {
			most = resource.MustParse("200M")
		}
		value = &most
	}
	m := change.MinChange{Percent: given.Percentage}
	if value != nil {
		milli := value.MilliValue()
		m.Value = &milli
	}
	return m, nil
}

// Headroom is a limit's distance to its request.
func (p Params) Headroom(name string) (size.Headroom, error) {
	given := p.Of(name)
	value, err := given.Value.Quantity()
	h := size.Headroom{Value: value}
	if given.Percentage != nil {
		h.Percent = *given.Percentage
	}
	return h, err
}

// Stabilization is how long to wait after any change; what cannot be read counts as no time, as it does there.
func (s ScaleType) Stabilization() time.Duration {
	d, err := time.ParseDuration(s.StabilizationDuration)
	if err != nil {
		return 0
	}
	return d
}

// policy is one direction's rules as ours.
func (s ScaleType) policy(windows []maintenance.Window, least change.MinChange) change.Policy {
	return change.Policy{Mode: s.UpdatePolicy.UpdateMode, Windows: windows, Cooldown: s.Stabilization(),
		MinChange: least}
}

// Windows is the maintenance window, none where none is given.
func (s HVPASpec) Windows() ([]maintenance.Window, error) {
	if s.Window == nil {
		return nil, nil
	}
	w, err := maintenance.ParseHVPAWindow(s.Window.Begin, s.Window.End)
	if err != nil {
		return nil, err
	}
	return []maintenance.Window{w}, nil
}

// Within fills in the ends that are left out.
func (in WeightInterval) Within(least, most int) WeightInterval {
	if in.Start == 0 {
		in.Start = least
	}
	if in.Last == 0 {
		in.Last = most
	}
	return in
}

// Moment is what HVPA looks at beside its spec.
type Moment struct {
	Now      time.Time
	Last     time.Time // scaling of any kind; zero: never
	Override bool      // an OOM kill since
}

func (m Moment) history() change.Past {
	if m.Last.IsZero() {
		return change.Past{}
	}
	return change.Past{Last: m.Last.Unix()}
}

// Vertical is what HVPA makes of a VPA's target for a container.
type Vertical struct {
	Next    size.Resources // what changes
	Blocked map[change.BlockReason]map[string]resource.Quantity
}

// Requests goes a share of the way to the target; atMost tells that there can be no more replicas, so that a share of
// nothing, like after an OOM kill, becomes the whole.
func (s HVPASpec) Requests(container string, stands size.Resources, targets map[string]resource.Quantity, weight int, atMost bool, m Moment) (Vertical, error) {
	out := Vertical{Blocked: map[change.BlockReason]map[string]resource.Quantity{}}
	windows, err := s.Windows()
	if err != nil {
		return out, err
	}
	if weight == 0 && (atMost || m.Override) {
		weight = 100
	}
	policy := s.containerPolicy(container)
	out.Next = size.Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	for _, name := range []string{size.CPU, size.Memory} {
		want, given := targets[name]
		if !given || len(policy.ControlledResources) > 0 && !slices.Contains(policy.ControlledResources, name) {
			continue
		}
		now := stands.Requests[name]
		verdict, err := s.judge(name, now, want, weight, windows, m)
		switch {
		case err != nil:
			return out, err
		case verdict.Direction == "":
			continue
		case len(verdict.Blocks) > 0:
			block := out.Blocked[verdict.Blocks[0].Reason]
			if block == nil {
				block = map[string]resource.Quantity{}
				out.Blocked[verdict.Blocks[0].Reason] = block
			}
			block[name] = want
			continue
		}
		if err := s.apply(name, policy, stands, kilo(name, verdict.Value), &out.Next); err != nil {
			return out, err
		}
	}
	return out, nil
}

// judge asks the rules of change of one resource.
func (s HVPASpec) judge(name string, now, want resource.Quantity, weight int, windows []maintenance.Window, m Moment) (change.Verdict, error) {
	up, err := s.Vpa.ScaleUp.MinChange.MinChange(name)
	if err != nil {
		return change.Verdict{}, err
	}
	down, err := s.Vpa.ScaleDown.MinChange.MinChange(name)
	if err != nil {
		return change.Verdict{}, err
	}
	unit := int64(1)
	if name == size.Memory { // whole bytes
		unit = 1000
	}
	diff := (want.MilliValue() - now.MilliValue()) / unit * int64(weight) / 100 * unit
	ask := change.Ask{Now: m.Now, Current: now.MilliValue(), Wanted: now.MilliValue() + diff, OOMKilled: m.Override}
	if weight == 0 {
		ask.Wanted, ask.Known = want.MilliValue(), []change.BlockReason{change.Weight}
	}
	rules := change.Rules{Up: s.Vpa.ScaleUp.policy(windows, up), Down: s.Vpa.ScaleDown.policy(windows, down)}
	return rules.Resources(ask, m.history(), change.Past{}), nil
}

// apply writes a request, cut to its limit, and the limit that goes with it.
func (s HVPASpec) apply(name string, policy ContainerPolicy, stands size.Resources, request resource.Quantity, next *size.Resources) error {
	limit, request0 := stands.Limits[name], stands.Requests[name]
	if policy.ControlledValues != "RequestsOnly" {
		gap, err := s.Vpa.Gap.Headroom(name)
		if err != nil {
			return err
		}
		if l := size.Limit(&limit, &request0, request, gap); l != nil {
			limit = kilo(name, l.MilliValue())
			next.Limits[name] = limit
		}
	}
	one := size.Resources{Requests: map[string]resource.Quantity{name: request},
		Limits: map[string]resource.Quantity{name: limit}}
	next.Requests[name] = one.Cap().Requests[name]
	return nil
}

// kilo rounds memory up to 1000 bytes, as HVPA does.
func kilo(name string, milli int64) resource.Quantity {
	if name != size.Memory {
		return *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	q := resource.NewMilliQuantity(milli, resource.DecimalSI)
	return *resource.NewScaledQuantity(q.ScaledValue(resource.Kilo), resource.Kilo)
}

// containerPolicy is that of a container, or the one for all.
func (s HVPASpec) containerPolicy(container string) ContainerPolicy {
	for _, p := range s.Vpa.Template.Spec.ResourcePolicy.ContainerPolicies {
		if p.ContainerName == container || p.ContainerName == "*" {
			return p
		}
	}
	return ContainerPolicy{}
}

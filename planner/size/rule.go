// Package size says how large a replica is to be: resources as a function of inputs. Its semantics are CPVPS's and
// HVPA's as documented. Time is an argument, memory a value.
package size

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// List is which of a container's two lists a rule writes.
type List string

// The lists.
const (
	Requests List = "requests"
	Limits   List = "limits"
)

// Scope is what an input is measured of.
type Scope string

// The scopes. A rule of scope Replica is evaluated for each replica with its own input.
const (
	Total   Scope = "total"   // the fleet
	Replica Scope = "replica" // one replica
	Cluster Scope = "cluster" // the heaviest cluster
)

// CPU and Memory are the resources that can be resized in place.
const (
	CPU    = "cpu"
	Memory = "memory"
)

// Rule computes one resource: Base + Slope * round(input) / Per.
type Rule struct {
	Name        string // rules of different names for one resource add up
	Container   string
	List        List
	Resource    string
	Base, Slope resource.Quantity
	Input       string // empty: Base alone
	Scope       Scope
	Per         resource.Quantity // zero or less counts as 1
	Segments    []Segment
	DelayUp     Delay
	DelayDown   Delay
	Min, Max    *resource.Quantity
	Quantum     *Quantum
	Smoothing   *Smoothing
}

// Segment rounds inputs from At on up to a multiple of Every.
type Segment struct {
	At, Every resource.Quantity
}

// Delay holds a change back. Max tolerates an input that far off: down, the value in force must be above what
// input + Max gives. For waits until the value in force was on the far side of every sample of that time. Where both
// are given either is enough; where none is, nothing waits.
type Delay struct {
	Max resource.Quantity
	For time.Duration
}

// Quantum rounds a result up to Base, Base + Step, and so on. Each step is Ratio times the last one, up to MaxStep.
type Quantum struct {
	Base, Step resource.Quantity
	Ratio      float64 // 0 counts as 1
	MaxStep    resource.Quantity
}

// Smoothing takes the input's Target percentile over the last Samples, and leaves a value alone that lies between what
// the Low and the High percentile give. In thousandths.
type Smoothing struct {
	Target, Low, High int           // 0: 800, and 100 below and above Target
	Samples           int           // 0: 30
	Every             time.Duration // of samples that come more often the latest of each counts; 0: all do
}

const (
	defaultTarget  = 800
	defaultBand    = 100
	defaultSamples = 30
	// MaxSamples bounds a ring of samples.
	MaxSamples = 120
	// minSamples is how many samples a percentile needs.
	minSamples = 3
)

// WithDefaults fills in what is left out.
func (s Smoothing) WithDefaults() Smoothing {
	if s.Target == 0 {
		s.Target = defaultTarget
	}
	if s.Low == 0 {
		s.Low = max(s.Target-defaultBand, 0)
	}
	if s.High == 0 {
		s.High = min(s.Target+defaultBand, 1000)
	}
	if s.Samples == 0 {
		s.Samples = defaultSamples
	}
	return s
}

// Field is what a rule writes.
type Field struct {
	Container string
	List      List
	Resource  string
}

// Field is what the rule writes.
func (r Rule) Field() Field { return Field{r.Container, r.List, r.Resource} }

// Key names the rule and what it measures: the memory of a rule that measures something else is another one.
func (r Rule) Key() string {
	return fmt.Sprintf("%s/%s/%s/%s/%s/%s", r.Container, r.List, r.Resource, r.Name, r.Scope, r.Input)
}

// Policy is rules that one hand wrote.
type Policy struct {
	Name     string
	Priority int
	Rules    []Rule
}

// Merge is the union of the policies' rules. Of those with one field and name the one of the highest priority holds, of
// equal priorities the later one. The order is that of priorities, then of listing; a replaced rule keeps its place.
func Merge(policies []Policy) []Rule {
	policies = slices.Clone(policies)
	slices.SortStableFunc(policies, func(a, b Policy) int { return cmp.Compare(a.Priority, b.Priority) })
	type key struct {
		field Field
		name  string
	}
	at := map[key]int{}
	var out []Rule
	for _, p := range policies {
		for _, r := range p.Rules {
			k := key{r.Field(), r.Name}
			if i, known := at[k]; known {
				out[i] = r
				continue
			}
			at[k] = len(out)
			out = append(out, r)
		}
	}
	return out
}

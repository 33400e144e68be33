// Package configmap reads the plan ConfigMap: the plan, and what people wrote beside it.
package configmap

import (
	"errors"
	"time"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/people"
)

// ErrDigest says that data.plan is not what its digest annotation was made of: somebody else wrote one of them.
var ErrDigest = errors.New("the plan does not match its digest annotation")

// Rebase is what a person wants to become of the references, of a closed set; empty for nothing.
type Rebase string

// What a person may want.
const (
	RebaseAnew Rebase = "true" // they are taken anew
	RebaseBack Rebase = "undo" // those that were before come back
)

// rebaseOf is what the annotation asks for.
func rebaseOf(value string) Rebase {
	switch r := Rebase(value); r {
	case RebaseAnew, RebaseBack:
		return r
	}
	return ""
}

// Document is the plan ConfigMap as read: the plan, people's pins, and people's annotations. Plan is nil where there is
// none (PlanErr nil) or where it cannot be enforced (PlanErr says why).
type Document struct {
	Plan            *plan.Plan          `json:"plan,omitempty"`
	PlanErr         error               `json:"-"`
	Pins            plan.Pins           `json:"pins,omitempty"`
	PinProblems     []people.PinProblem `json:"pinProblems,omitempty"`
	Paused          bool                `json:"paused,omitempty"`
	BreakGlass      bool                `json:"breakGlass,omitempty"`
	AcceptDiscovery *int                `json:"acceptDiscovery,omitempty"`
	Cordon          string              `json:"cordon,omitempty"`   // as written; ParseCordons reads it
	Rollback        string              `json:"rollback,omitempty"` // the revision to go back to, as written
	Rebase          Rebase              `json:"rebase,omitempty"`   // what is to become of the references
	Tripped         string              `json:"tripped,omitempty"`  // why ballast stopped itself; empty: it did not
}

// Meta is what stands beside a plan in the annotations.
type Meta struct {
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	DecidedBy string    `json:"decidedBy,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// Parse reads the plan ConfigMap's data and annotations. It never fails as a whole: what cannot be read is
// reported in its own field, since pins must not fall with a plan, nor break-glass with either.
func Parse(data, annotations map[string]string) Document {
	d := Document{
		Paused:     annotations[plan.AnnotationPaused] == "true",
		BreakGlass: annotations[plan.AnnotationEnforcement] == "off",
		Cordon:     annotations[plan.AnnotationCordon],
		Rollback:   annotations[plan.AnnotationRollback],
		Rebase:     rebaseOf(annotations[plan.AnnotationRebase]),
		Tripped:    annotations[plan.AnnotationTripped],
	}
	if n, ok := people.ParseAsked(annotations[plan.AnnotationAcceptDiscovery], people.MaxAccepted); ok {
		clusters := int(n)
		d.AcceptDiscovery = &clusters
	}
	limit := 0
	if text := data[plan.KeyPlan]; text != "" {
		d.Plan, d.PlanErr = readPlan(text, annotations[plan.AnnotationDigest])
		if d.Plan != nil {
			limit = d.Plan.MaxReplicas
		}
	}
	d.Pins, d.PinProblems = people.ParsePins(data[plan.KeyPins], limit)
	return d
}

// readPlan compares the digest first: what nobody vouches for is not worth decoding.
func readPlan(text, digest string) (*plan.Plan, error) {
	if len(text) > codec.MaxBytes || plan.Digest(text) != digest {
		return nil, ErrDigest
	}
	p, err := codec.Decode(text)
	if err != nil {
		return nil, err
	}
	return &p, nil
}

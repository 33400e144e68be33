// Package inforce is the plan that is in force, as one decision of the webhook sees it, and how it follows from what
// the plan ConfigMap holds. It is a function of values: what reads the ConfigMap is package source.
package inforce

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
)

// State is the plan as one decision sees it. It never changes once made; a nil State knows no plan.
type State struct {
	// View is the plan that is enforced, nil for none.
	View *plan.View
	// Stale says that the plan ConfigMap holds something that does not match its digest: View is the last good one.
	Stale bool
	// Stopped is since when the plan holds every replica at 0; zero: it does not.
	Stopped time.Time
	// Missing is since when the plan ConfigMap is not there, while the last plan is enforced all the same; zero: it is
	// there, or gone.
	Missing time.Time
	// BreakGlass lets writes pass as they are, but for data.plan, which has one writer.
	BreakGlass bool
	// Kept is the last good plan as it was stored; it outlives a deleted ConfigMap.
	Kept *Stored
	// Identity is who ballast is here; it is the same in every state.
	Identity

	// Resources are the requests and limits that the controller's container is held at, in a fixed order.
	Resources []Quantity
	// Arrivals places clusters that the plan does not know; nil without a plan.
	Arrivals *placement.Arrivals
	// Selector is of the Secrets that are clusters; nil: Argo CD's label alone.
	Selector labels.Selector
}

// Identity names the plan ConfigMap and the planner.
type Identity struct {
	// Namespace and ConfigMap name the plan ConfigMap.
	Namespace, ConfigMap string
	// Planner is the user of the planner as ballast ships it. The plan names its planner itself; this one counts too,
	// so that a planner under a new ServiceAccount is not held to a plan that names the old one.
	Planner string
}

// Stored is data.plan as it stands in the ConfigMap, with ballast's annotations.
type Stored struct {
	Text        string
	Annotations map[string]string
	Plan        *plan.Plan
}

// Quantity is one of the requests or limits that the controller's container is held at.
type Quantity struct {
	Section, Name string // "requests" or "limits"; "cpu", "memory", ...
	Value         resource.Quantity
	Text          string // canonical, as the API server prints it
}

// Of is the state of a plan in force with its pins, nil for none: what every write asks for is worked out once a change
// of the plan.
func Of(id Identity, view *plan.View) *State {
	s := &State{Identity: id, View: view}
	if view != nil {
		s.Resources, s.Arrivals = Held(view.Plan.Resources), placement.NewArrivals(view)
		s.Selector = selectorOf(view.Plan.Selector)
	}
	return s
}

// selectorOf reads a plan's selector. One that cannot be read selects all: the planner has no other.
func selectorOf(text string) labels.Selector {
	if text == "" {
		return nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil
	}
	return selector
}

// Next is the state after the plan ConfigMap became this: a plan that matches its digest is in force, anything else
// leaves the last good one in force and says so.
func (s *State) Next(data, annotations map[string]string) *State {
	doc := s.parse(data, annotations)
	var view *plan.View
	kept, stale := s.Kept, false
	switch {
	case doc.Plan != nil && s.trusts(doc.Plan.PlannerUser):
		view = plan.NewView(*doc.Plan, doc.Pins)
		kept = &Stored{Text: data[plan.KeyPlan], Annotations: PlannersOf(annotations), Plan: doc.Plan}
	case s.Kept != nil:
		// The last good one, of a ConfigMap too that was deleted and made anew: the planner writes it there. Pins count
		// whatever became of the plan: they are people's.
		pins, _ := people.ParsePins(data[plan.KeyPins], s.Kept.Plan.MaxReplicas)
		view, stale = plan.NewView(*s.Kept.Plan, pins), true
	default:
		stale = doc.Plan != nil || doc.PlanErr != nil
	}
	next := Of(s.Identity, view)
	next.BreakGlass, next.Kept, next.Stale = doc.BreakGlass, kept, stale
	return next
}

// trusts reports whether a plan of that planner may take the place of the one that is known: only the shipped
// planner's, and that of the planner that wrote the last one. Whoever gets a plan of their own into the ConfigMap does
// not become the planner.
func (s *State) trusts(planner string) bool {
	return s.Planner == "" || planner == s.Planner || s.Kept == nil || planner == s.Kept.Plan.PlannerUser
}

// parse reads the ConfigMap. A plan that was read before is not read again: a changed pin costs the pins.
func (s *State) parse(data, annotations map[string]string) configmap.Document {
	if s.Kept == nil || s.Kept.Text != data[plan.KeyPlan] || s.Kept.Annotations[plan.AnnotationDigest] != annotations[plan.AnnotationDigest] {
		return configmap.Parse(data, annotations)
	}
	doc := configmap.Parse(nil, annotations)
	doc.Plan = s.Kept.Plan
	doc.Pins, doc.PinProblems = people.ParsePins(data[plan.KeyPins], doc.Plan.MaxReplicas)
	return doc
}

// MissingHeld is how long the last plan is enforced without its ConfigMap, which the planner makes anew within seconds:
// whoever deletes it over and over must not switch enforcement off by it.
const MissingHeld = 5 * time.Minute

// Deleted is the state once the plan ConfigMap is not there: the last one, for a while.
func (s *State) Deleted(now time.Time) *State {
	away := now.Sub(s.Missing)                // below 0: the clock went back
	lapsed := away < 0 || away >= MissingHeld // of a plan that was away before
	if s.View == nil || !s.Missing.IsZero() && lapsed {
		return s.Gone()
	}
	next := *s
	next.Stale = true
	if next.Missing.IsZero() {
		next.Missing = now
	}
	return &next
}

// Away reports whether the plan ConfigMap is not there, or has no plan.
func (s *State) Away() bool { return s.View == nil || !s.Missing.IsZero() }

// Gone is the state once the plan ConfigMap has been away for that long: nothing is enforced until somebody makes it
// anew, and then what was kept until the planner has rebuilt it.
func (s *State) Gone() *State { return &State{Identity: s.Identity, Kept: s.Kept} }

// Enforcing reports whether writes are made to agree with the plan, and why not.
func (s *State) Enforcing() (plan.Reason, bool) {
	switch {
	case s == nil:
		return plan.NoPlan, false
	case s.BreakGlass:
		return plan.Observing, false
	case s.View == nil:
		return plan.NoPlan, false
	case !s.View.Plan.Mode.Enforced():
		return plan.Observing, false
	}
	return "", true
}

// NoteStop notes since when the plan holds every replica at 0: as its rollout says, and no later than this plan was
// seen first.
func (s *State) NoteStop(before *State, now time.Time) {
	if s.View == nil || s.View.Plan.Replicas > 0 || s.View.Plan.FreeReplicas {
		return
	}
	s.Stopped = now
	same := before.Kept != nil && s.Kept != nil && before.Kept.Plan == s.Kept.Plan
	if same && !before.Stopped.IsZero() {
		s.Stopped = before.Stopped
	}
	r := s.View.Plan.Rollout
	if r != nil && !r.Since.IsZero() && r.Since.Before(s.Stopped) {
		s.Stopped = r.Since
	}
}

// StopLapsed reports whether the plan has held every replica at 0 for so long that it holds their number no more.
func (s *State) StopLapsed(at time.Time) bool {
	return !s.Stopped.IsZero() && plan.StopLapsed(s.Stopped, at)
}

// IsPlanner reports whether a user is the planner.
func (s *State) IsPlanner(user string) bool {
	if s == nil || user == "" {
		return false
	}
	return user == s.Planner || s.View != nil && user == s.View.Plan.PlannerUser || s.Kept != nil &&
		user == s.Kept.Plan.PlannerUser
}

// Revision is the revision of the plan in force; 0 for none.
func (s *State) Revision() int64 {
	if s == nil || s.View == nil {
		return 0
	}
	return s.View.Plan.Revision
}

// MaxReplicas bounds pins; 0 where no plan is known.
func (s *State) MaxReplicas() int {
	if s == nil || s.View == nil {
		return 0
	}
	return s.View.Plan.MaxReplicas
}

// AwaitsTemplate reports whether the plan waits for a change of the pod template, so that a decision has to know the
// one before.
func (s *State) AwaitsTemplate() bool {
	return s != nil && s.View != nil && s.View.Plan.NextControllerReplicas > 0
}

// Enforced is the reason of a decision that was made by the plan: a stale one says so instead.
func (s *State) Enforced(why plan.Reason) plan.Reason {
	if s.Stale {
		return plan.StalePlan
	}
	return why
}

// PlannersOf are those of the annotations that only the planner writes.
func PlannersOf(annotations map[string]string) map[string]string {
	kept := map[string]string{}
	for _, key := range plan.PlannersAnnotations() {
		if value, ok := annotations[key]; ok {
			kept[key] = value
		}
	}
	return kept
}

// Held lists the resources of a plan, or of a size in it, in a fixed order. A quantity that does not parse is not held:
// the planner's validation is where it is reported, and a write must not fail on it.
func Held(r *plan.Resources) []Quantity {
	if r == nil {
		return nil
	}
	var list []Quantity
	for _, section := range []struct {
		name   string
		values map[string]string
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(section.values)) {
			if q, err := plan.ReadQuantity(section.values[name]); err == nil {
				list = append(list, Quantity{section.name, name, q, q.String()})
			}
		}
	}
	return list
}

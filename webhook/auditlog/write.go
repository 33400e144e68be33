package auditlog

import (
	"net/http"
	"strconv"
	"time"

	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/webhook/auditlog/fields"
)

// Write is one write that a webhook of ballast's was asked about or should have been, or one that none is asked about
// and that is ballast's concern. Every text in it is safe to print.
type Write struct {
	Time    time.Time `json:"time"`
	AuditID string    `json:"auditID"`
	User    string    `json:"user"`
	// By is who impersonated User.
	By        string  `json:"impersonatedBy,omitempty"`
	Account   Account `json:"account"`
	Verb      string  `json:"verb"`
	Namespace string  `json:"namespace"`
	// Kind is secret, configmap, statefulset, deployment, pod, mutatingwebhookconfiguration, validatingadmissionpolicy
	// or validatingadmissionpolicybinding.
	Kind        string `json:"kind"`
	Name        string `json:"name"` // empty where the API server generated it, and where all were deleted
	Subresource string `json:"subresource,omitempty"`
	Effect      Effect `json:"effect"`
	// Reason is one of plan.Reasons, FailedOpen, FailedClosed, NotAsked, or Invalid.
	Reason string `json:"reason"`
	// Revision is the plan's that decided, 0 for none.
	Revision int64 `json:"revision,omitempty"`
	// Requested and Enforced are field=value pairs joined by one space, or "-".
	Requested string `json:"requested"`
	Enforced  string `json:"enforced"`
	DryRun    bool   `json:"dryRun,omitempty"`
	Panicked  bool   `json:"panicked,omitempty"` // the API server did, while it handled the write
	Code      int    `json:"code,omitempty"`     // of the response
}

// Object is the object in the form that people filter by.
func (w Write) Object() string {
	switch {
	case w.Verb == verbDeleteAll:
		return w.Kind + "/(all that match)"
	case w.Name == "":
		return w.Kind + "/(generated)"
	}
	return w.Kind + "/" + w.Name
}

// Action is the verb, with the subresource where there is one.
func (w Write) Action() string {
	if w.Subresource == "" {
		return w.Verb
	}
	return w.Verb + " " + w.Subresource
}

// Result says what became of the write as a whole, whatever ballast made of it. One whose time ended may have been
// stored: the log does not tell, and whoever sends a request chooses its time.
func (w Write) Result() string {
	said := "written"
	switch {
	case w.Panicked:
		said = "panicked"
	case w.Code == http.StatusGatewayTimeout && !w.DryRun:
		said = "timed out, perhaps written"
	case w.Code >= 300:
		said = "failed " + strconv.Itoa(w.Code)
	case w.DryRun:
		return "dry run"
	}
	if w.DryRun {
		return "dry run, " + said
	}
	return said
}

// Reasons of writes that no webhook answered; the others are plan.Reasons.
const (
	FailedOpen   = "FailedOpen"   // the webhook was away, and the write passed (failurePolicy Ignore)
	FailedClosed = "FailedClosed" // the webhook was away, and the write was refused for that (failurePolicy Fail)
	NotAsked     = "NotAsked"     // no webhook is asked: a deletion, or a change of what ballast rests on
	// Invalid stands for whatever is not of the set or the grammar of its place.
	Invalid = printable.Invalid
)

// Reasons lists what Write.Reason may be.
func Reasons() []string {
	list := []string{FailedOpen, FailedClosed, NotAsked, Invalid}
	for _, r := range plan.Reasons() {
		list = append(list, string(r))
	}
	return list
}

// The kinds of objects that ballast's webhooks are asked about.
const (
	kindSecret      = "secret"
	kindConfigMap   = "configmap"
	kindStatefulSet = "statefulset"
	kindDeployment  = "deployment"
	kindPod         = "pod"
	kindAccount     = "serviceaccount"
)

// Effect is what ballast did to a write.
type Effect string

// The effects.
const (
	Agreed    Effect = "Agreed"    // it agreed with the plan
	Passed    Effect = "Passed"    // a rule lets it pass: no plan, observing, unmanaged, immutable
	Rewritten Effect = "Rewritten" // something else was enforced than was asked
	Refused   Effect = "Refused"   // a pin that cannot be, or no webhook where one is demanded
	Faulted   Effect = "Faulted"   // ballast failed, and it passed unchanged
	Bypassed  Effect = "Bypassed"  // no webhook answered, and it passed unchanged
	Steered   Effect = "Steered"   // it passed, and is what people steer ballast by: pins, break-glass, opt-outs and the like
	Unasked   Effect = "Unasked"   // no webhook is asked about it: deletions, changes of what ballast rests on
	Unknown   Effect = "Unknown"   // the reason is none of ballast's
)

func effectOf(reason, requested, enforced string) Effect {
	switch plan.Reason(reason) {
	case plan.Restored, plan.PinAdded, plan.PlanKept:
		return Rewritten
	case plan.InPlan:
		return Agreed
	case plan.Assigned, plan.Pinned, plan.StalePlan:
		if fields.Differ(requested, enforced) {
			return Rewritten
		}
		return Agreed
	case plan.NoPlan, plan.Observing, plan.Unmanaged, plan.Immutable:
		return Passed
	case plan.PinRefused, FailedClosed:
		return Refused
	case plan.Faulted:
		return Faulted
	case FailedOpen:
		return Bypassed
	}
	return Unknown
}

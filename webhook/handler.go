package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"

	"ballast/planner/plan"
)

// Plans is where the handler has the plan from.
type Plans interface {
	// State is the plan as known now.
	State() *State
	// Fresh is the plan as it stands in the API server.
	Fresh(context.Context) (*State, error)
}

var _ Plans = (*Source)(nil)

// kind is one webhook: its name in metrics and logs, its path, and its decision.
type kind struct {
	name, path string
	decide     func(*State, *review) (Verdict, error)
}

// kinds are the four webhooks of the configuration.
func kinds() []kind {
	return []kind{
		{"clusters", "/clusters", withObject(reviewCluster)},
		{"controllers", "/controllers", withObject(reviewController)},
		{"scale", "/scale", withObject(reviewScale)},
		{kindPlan, "/plan", withObject(reviewPlan)},
	}
}

// withObject refuses a request without an object, which no patch could apply to.
func withObject(decide func(*State, *review) (Verdict, error)) func(*State, *review) (Verdict, error) {
	return func(s *State, rv *review) (Verdict, error) {
		if rv.object.kind() != '{' {
			return Verdict{}, errMalformed
		}
		return decide(s, rv)
	}
}

const kindPlan = "plan"

func reviewCluster(s *State, rv *review) (Verdict, error) {
	object, err := decodeSecret(rv.object)
	if err != nil {
		return Verdict{}, err
	}
	old, err := decodeSecret(rv.old)
	if err != nil {
		return Verdict{}, err
	}
	return DecideCluster(s, rv.Request, object, old), nil
}

func reviewController(s *State, rv *review) (Verdict, error) {
	object, err := decodeWorkload(rv.object)
	if err != nil {
		return Verdict{}, err
	}
	old := Workload{Notes: readNotes(rv.old.field("metadata").field("annotations"))}
	return DecideController(s, rv.Request, object, old), nil
}

func reviewScale(s *State, rv *review) (Verdict, error) {
	object, err := decodeScale(rv.object)
	if err != nil {
		return Verdict{}, err
	}
	return DecideScale(s, rv.Request, object), nil
}

func reviewPlan(s *State, rv *review) (Verdict, error) {
	if s.isPlanner(rv.User) {
		return DecidePlan(s, rv.Request, PlanObject{}, PlanObject{}), nil // which is admitted whatever it writes
	}
	object, err := decodePlanObject(rv.object)
	if err != nil {
		return Verdict{}, err
	}
	old, err := decodePlanObject(rv.old)
	if err != nil {
		return Verdict{}, err
	}
	return DecidePlan(s, rv.Request, object, old), nil
}

type handler struct {
	kind
	plans   Plans
	bodies  *bodies
	metrics *Metrics
	log     logr.Logger
}

// NewHandler serves the four webhooks under their paths.
func NewHandler(plans Plans, metrics *Metrics, log logr.Logger) http.Handler {
	mux := http.NewServeMux()
	shared := newBodies()
	for _, k := range kinds() {
		mux.Handle("POST "+k.path, &handler{k, plans, shared, metrics, log.WithValues("webhook", k.name)})
	}
	return mux
}

// ServeHTTP answers one AdmissionReview. It fails as HTTP, which the failure policy judges, only where there is no
// request to answer: a body that is no review, too large, or one too many.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	body, err := h.bodies.read(w, r)
	if err != nil {
		h.refuse(w, err)
		return
	}
	defer body.release()
	rv, err := parseReview(body.bytes)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	v := h.answer(r.Context(), &rv)
	out, err := encodeAnswer(rv.uid, v)
	if err != nil {
		v = h.fault(rv.operation, err)
		out, _ = encodeAnswer(rv.uid, v) // a fault holds nothing that cannot be encoded
	}
	h.metrics.requests.WithLabelValues(h.name, rv.operation, string(v.Reason)).Inc()
	h.metrics.duration.WithLabelValues(h.name).Observe(time.Since(start).Seconds())
	h.record(&rv, v)
	w.Header()["Content-Type"] = []string{"application/json"}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(out))}
	_, _ = w.Write(out) // a caller that went away has no answer to get
}

func (h *handler) refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	switch {
	case errors.Is(err, errBusy):
		h.metrics.busy.Inc()
		code = http.StatusServiceUnavailable
	case errors.Is(err, errNoLength):
		code = http.StatusLengthRequired
	case errors.Is(err, errTooLarge):
		code = http.StatusRequestEntityTooLarge
	}
	http.Error(w, http.StatusText(code), code)
}

// answer decides, and turns whatever fails on the way into an answer that lets the write pass unchanged.
func (h *handler) answer(ctx context.Context, rv *review) (v Verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = h.fault(rv.operation, fmt.Errorf("panic of type %T", p))
			h.log.V(1).Info("stack of the fault", "stack", string(debug.Stack()))
		}
	}()
	if rv.operation != operationCreate && rv.operation != operationUpdate {
		rv.operation = operationUpdate // a label of a closed set; no other is registered
		return Verdict{Reason: plan.Unmanaged}
	}
	s := h.plans.State()
	v, err := h.decide(s, rv)
	if err == nil && len(v.Patches) > 0 && h.name != kindPlan && s.isPlanner(rv.User) {
		// The planner writes the plan first, and its watch may be ahead of ours: it is never turned back by an old plan.
		if s, err = h.plans.Fresh(ctx); err == nil {
			v, err = h.decide(s, rv)
		}
	}
	if err != nil {
		return h.fault(rv.operation, err)
	}
	return v
}

// fault answers for ballast's own failure. Errors here name no content of an object.
func (h *handler) fault(operation string, err error) Verdict {
	h.metrics.faults.WithLabelValues(h.name).Inc()
	h.log.Error(err, "internal fault, the write passed unchanged", "operation", operation)
	return Verdict{Reason: plan.Faulted, Revision: h.plans.State().revision(), Warnings: []string{"ballast: internal fault, write passed unchanged"}}
}

// record logs a rewrite, a refusal or a powerful act, and every call at V(1); values are those of the audit annotations.
func (h *handler) record(rv *review, v Verdict) {
	log := h.log
	if len(v.Patches) == 0 && v.Denied == "" && !slices.ContainsFunc(v.Enforced, Field.isAct) {
		log = log.V(1)
	}
	if !log.Enabled() {
		return
	}
	log.Info("write answered", "operation", rv.operation, "namespace", rv.Namespace, "name", rv.Name, "user", rv.User,
		"dryRun", rv.dryRun, "reason", v.Reason, "revision", v.Revision, "requested", printFields(v.Requested), "enforced", printFields(v.Enforced))
}

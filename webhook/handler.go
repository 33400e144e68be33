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
	"ballast/planner/printable"
	"ballast/webhook/decision"
	"ballast/webhook/inforce"
	"ballast/webhook/intake"
	"ballast/webhook/rawjson"
)

// Plans is where the handler has the plan from: a source.Source.
type Plans interface {
	// State is the plan as known now.
	State() *inforce.State
	// Fresh is the plan as it stands in the API server.
	Fresh(context.Context) (*inforce.State, error)
}

type handler struct {
	kind
	plans   Plans
	bodies  *intake.Bodies
	parses  parses
	metrics *Metrics
	log     logr.Logger
	putBack *putBacks
}

// NewHandler serves the five webhooks under their paths.
func NewHandler(plans Plans, metrics *Metrics, log logr.Logger) http.Handler {
	mux := http.NewServeMux()
	bodies, parses, putBack := intake.NewBodies(), newParses(), newPutBacks(time.Now())
	for _, k := range kinds() {
		mux.Handle("POST "+k.path, &handler{k, plans, bodies, parses, metrics, log.WithValues("webhook", k.name),
			putBack})
	}
	return mux
}

// ServeHTTP answers one AdmissionReview. It fails as HTTP, which the failure policy judges, only where there is no
// request to answer: a body that is no review, too large, or one too many.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, held, err := h.call(w, r)
	if held.weight > 0 {
		held.shrink(int64(len(out)))
		defer func() { held.shrink(0) }()
		// A plan may be answered with a plan, for which whoever does not read holds its part of the budget.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(intake.StalledAfter)) // one without deadlines is a test's
	}
	if err != nil {
		h.refuse(w, err)
		return
	}
	w.Header()["Content-Type"] = []string{"application/json"}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(out))}
	_, _ = w.Write(out) // a caller that went away has no answer to get
}

// call is the answer, and what it holds of the budget of parses. The body is gone before the answer is sent.
func (h *handler) call(w http.ResponseWriter, r *http.Request) (out []byte, held reserved, err error) {
	start := time.Now()
	fresh := intake.FirstOnConnection(r.Context(), start)
	body, err := h.bodies.Read(w, r)
	if err != nil {
		return nil, held, err
	}
	defer body.Release()
	rv, err := parseReview(body.Bytes)
	if err != nil {
		return nil, held, err
	}
	rv.At = start
	intake.Reviewed(r)
	a, err := h.answer(r, &rv)
	if err != nil {
		return nil, a.held, err
	}
	v := a.Verdict
	if isProbe(a.state, &rv) {
		answerProbe(w, &v, fresh)
		if h.name == kindPlan {
			h.putBack.answers(a.state, &v, &rv)
		}
	}
	if out, err = encodeAnswer(rv.uid, v); err != nil {
		v = h.fault(rv.operation, err)
		out, err = encodeAnswer(rv.uid, v) // a fault holds nothing that cannot be encoded
	}
	h.metrics.requests.WithLabelValues(h.name, rv.operation, string(v.Reason)).Inc()
	h.metrics.duration.WithLabelValues(h.name).Observe(time.Since(start).Seconds())
	h.putBack.note(a.state, &rv, v, intake.Verified(r))
	h.record(r, &rv, v)
	return out, a.held, err
}

// reserve sets the memory aside that a plan's decoding may take; the other kinds are read in place.
func (h *handler) reserve(r *http.Request, s *inforce.State, rv *review) (reserved, error) {
	if h.name != kindPlan {
		return reserved{}, nil
	}
	weight := rv.weight(lastGood(s))
	ctx, cancel := context.WithTimeout(r.Context(), intake.BusyAfter)
	defer cancel()
	held := reserved{h.parses.of(weight), weight}
	if held.of.Acquire(ctx, intake.CallerOf(r), weight) != nil {
		return reserved{}, intake.ErrBusy
	}
	return held, nil
}

// lastGood is the last good plan, nil for none.
func lastGood(s *inforce.State) *inforce.Stored {
	if s == nil {
		return nil
	}
	return s.Kept
}

func (h *handler) refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	switch {
	case errors.Is(err, errNoReview):
		http.Error(w, err.Error(), code)
		return
	case errors.Is(err, intake.ErrBusy):
		h.metrics.busy.Inc()
		code = http.StatusServiceUnavailable
	case errors.Is(err, intake.ErrNoLength):
		code = http.StatusLengthRequired
	case errors.Is(err, intake.ErrTooLarge):
		code = http.StatusRequestEntityTooLarge
	}
	http.Error(w, http.StatusText(code), code)
}

// answered is a verdict, the state that it began with (nil after a panic), and what it holds of the budget of parses.
type answered struct {
	decision.Verdict
	state *inforce.State
	held  reserved
}

// answer decides, and turns whatever fails on the way into an answer that lets the write pass unchanged. Its error is
// one of HTTP: the budget has no room.
func (h *handler) answer(r *http.Request, rv *review) (a answered, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.Verdict, a.state, err = h.fault(rv.operation, fmt.Errorf("panic of type %T", p)), nil, nil
			h.log.V(1).Info("stack of the fault", "stack", string(debug.Stack()))
		}
	}()
	if rv.operation != operationCreate && rv.operation != operationUpdate {
		rv.operation = operationUpdate // a label of a closed set; no other is registered
		a.Verdict = decision.Verdict{Reason: plan.Unmanaged}
		return a, nil
	}
	a.state = h.plans.State()
	if a.held, err = h.reserve(r, a.state, rv); err != nil {
		return a, err
	}
	if a.Verdict, err = h.decideFresh(r.Context(), a.state, rv); err != nil {
		a.Verdict = h.fault(rv.operation, err)
	}
	return a, nil
}

// decideFresh decides, by the plan as it stands now where the one that is known would turn the planner back: the
// planner writes the plan first, and its watch may be ahead of ours.
func (h *handler) decideFresh(ctx context.Context, s *inforce.State, rv *review) (decision.Verdict, error) {
	v, err := h.decide(s, rv)
	if err != nil || len(v.Patches) == 0 || h.name == kindPlan || !s.IsPlanner(rv.User) {
		return v, err
	}
	// A caller that hangs up is no fault of ballast's: the read does not end with it. It lasts half a second at most,
	// for which the review has its share of the budget of bodies.
	if s, err = h.plans.Fresh(context.WithoutCancel(ctx)); err != nil {
		return v, err
	}
	return h.decide(s, rv)
}

// fault answers for ballast's own failure, which an alert counts, and for an object that cannot be read, which is none:
// the API server sends no such object, and whoever can reach the port can. Errors here name no content of an object.
func (h *handler) fault(operation string, err error) decision.Verdict {
	if errors.Is(err, rawjson.ErrMalformed) {
		h.metrics.malformed.WithLabelValues(h.name).Inc()
		h.log.V(1).Info("an object cannot be read, the write passed unchanged", "operation", operation, "why",
			err.Error())
	} else {
		h.metrics.faults.WithLabelValues(h.name).Inc()
		h.log.Error(err, "internal fault, the write passed unchanged", "operation", operation)
	}
	return decision.Verdict{Reason: plan.Faulted, Revision: h.plans.State().Revision(),
		Warnings: []string{"ballast: internal fault, write passed unchanged"}}
}

// The longest values of a log line: names and users as Kubernetes has them, and twenty pins.
const (
	maxLoggedName   = 253
	maxLoggedFields = 1 << 10
)

// record logs a rewrite, a refusal or a powerful act, and every call at V(1); values are those of the audit
// annotations. Unless the caller was verified to be the API server, by its client certificate, a line tells what
// somebody on the network sent.
func (h *handler) record(r *http.Request, rv *review, v decision.Verdict) {
	log := h.log
	if len(v.Patches) == 0 && v.Denied == "" && !slices.ContainsFunc(v.Enforced, decision.Field.IsAct) {
		log = log.V(1)
	}
	if !log.Enabled() {
		return
	}
	name := func(s string) string { return printable.Text(s, maxLoggedName) }
	fields := func(list []decision.Field) string { return printable.Text(decision.PrintFields(list), maxLoggedFields) }
	log.Info("write answered", "verified", intake.Verified(r), "operation", rv.operation, "namespace",
		name(rv.Namespace),
		"name", name(rv.Name), "user", name(rv.User), "dryRun", rv.dryRun, "reason", v.Reason, "revision", v.Revision,
		"requested", fields(v.Requested), "enforced", fields(v.Enforced))
}

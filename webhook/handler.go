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

// kind is one webhook: its name in metrics and logs, its path, and its decision.
type kind struct {
	name, path string
	decide     func(*inforce.State, *review) (Verdict, error)
}

// kinds are the five webhooks of the configuration.
func kinds() []kind {
	return []kind{
		{"clusters", "/clusters", withObject(reviewCluster)},
		{"controllers", "/controllers", withObject(reviewController)},
		{"scale", "/scale", withObject(reviewScale)},
		{kindPlan, "/plan", withObject(reviewPlan)},
		{"pods", "/pods", withObject(reviewPod)},
	}
}

// withObject refuses a request without an object, which no patch could apply to.
func withObject(decide func(*inforce.State, *review) (Verdict, error)) func(*inforce.State, *review) (Verdict, error) {
	return func(s *inforce.State, rv *review) (Verdict, error) {
		if rv.object.Kind() != '{' {
			return Verdict{}, rawjson.ErrMalformed
		}
		return decide(s, rv)
	}
}

const kindPlan = "plan"

func reviewCluster(s *inforce.State, rv *review) (Verdict, error) {
	object, err := decodeSecret(rv.object)
	if err != nil {
		return Verdict{}, err
	}
	old, err := decodeSecret(rv.old)
	if err != nil {
		return Verdict{}, err
	}
	object.LeftOut, old.LeftOut = leavesOut(s, rv.object), leavesOut(s, rv.old)
	object.Groups = groupsOf(s, rv.object)
	return DecideCluster(s, rv.Request, object, old), nil
}

func reviewController(s *inforce.State, rv *review) (Verdict, error) {
	object, err := decodeWorkload(rv.object)
	if err != nil {
		return Verdict{}, err
	}
	old := Workload{Notes: readNotes(rv.old.Field("metadata").Field("annotations"))}
	return DecideController(s, rv.Request, object, old), nil
}

func reviewScale(s *inforce.State, rv *review) (Verdict, error) {
	object, err := decodeScale(rv.object)
	if err != nil {
		return Verdict{}, err
	}
	return DecideScale(s, rv.Request, object), nil
}

func reviewPod(s *inforce.State, rv *review) (Verdict, error) {
	object, err := decodePod(rv.object)
	if err != nil {
		return Verdict{}, err
	}
	return DecidePod(s, rv.Request, object), nil
}

func reviewPlan(s *inforce.State, rv *review) (Verdict, error) {
	if rv.Name != s.ConfigMap || rv.Namespace != s.Namespace {
		return Verdict{Reason: plan.Unmanaged, Revision: s.Revision()}, nil // an API server without matchConditions asks about every ConfigMap
	}
	object, old, err := readPlanObjects(rv)
	if s.IsPlanner(rv.User) { // who is admitted whatever it writes
		v := DecidePlan(s, rv.Request, object, old)
		v.probePlan(rv)
		return v, nil
	}
	if err != nil {
		return Verdict{}, err
	}
	return DecidePlan(s, rv.Request, object, old), nil
}

func readPlanObjects(rv *review) (object, old PlanObject, err error) {
	if object, err = decodePlanObject(rv.object, intake.RequestLimit); err != nil {
		return object, old, err
	}
	old, err = decodePlanObject(rv.old, intake.StoredLimit)
	return object, old, err
}

// The memory that a review of the plan takes beside its body. A node of YAML takes 160 bytes, its place in its parent 8
// to 16 and its text 8, and two bytes of a flow sequence make one: up to 100 bytes a byte. An answer that puts a plan
// back holds it as text, as a patch, in base64 and in the answer: measured, up to 11 bytes a byte, and twice that of characters
// that are two in an escape. What weighs more than parseMost counts as that. People's
// pins, beside the largest plan, weigh no more than parseLight: those have a budget of their own, so that no flood of heavier
// reviews keeps one waiting, however many of them fit in beside each other.
const (
	parseLight = 20 << 20
	parseMost  = 44 << 20
	parseCost  = 100 // a byte of text that is decoded
	answerCost = 16  // a byte of the plan that may be put back
)

// parses are the budgets of what is decoded.
type parses struct{ light, heavy *intake.Budget }

func newParses() parses { return parses{intake.NewBudget(parseLight), intake.NewBudget(parseMost)} }

// of is the budget that a weight is taken from.
func (p parses) of(weight int64) *intake.Budget {
	if weight <= parseLight {
		return p.light
	}
	return p.heavy
}

// reserved is a part of the budget of parses; the zero one is none.
type reserved struct {
	of     *intake.Budget
	weight int64
}

// shrink gives all of it back but so much.
func (r *reserved) shrink(to int64) {
	if r.weight > to {
		r.of.Release(r.weight - to)
		r.weight = to
	}
}

// weight is what a review of the plan takes, told before anything of it is decoded. A plan that was read before is not
// decoded.
func (rv *review) weight(kept *inforce.Stored) int64 {
	text, weight := "", int64(0)
	if kept != nil {
		text, weight = kept.Text, int64(len(kept.Text))*answerCost
	}
	weight += int64(len(rv.old.Field("metadata").Field("annotations"))) * answerCost
	for _, object := range []rawjson.Node{rv.object, rv.old} {
		for key, data := range object.Members {
			if !key.Is("data") {
				continue
			}
			for key, value := range data.Members {
				if key.Is(plan.KeyPins) || key.Is(plan.KeyPlan) && !value.Is(text) {
					weight += int64(len(value)) * parseCost
				}
			}
		}
	}
	return min(weight, parseMost)
}

type handler struct {
	kind
	plans   Plans
	bodies  *intake.Bodies
	parses  parses
	metrics *Metrics
	log     logr.Logger
}

// NewHandler serves the five webhooks under their paths.
func NewHandler(plans Plans, metrics *Metrics, log logr.Logger) http.Handler {
	mux := http.NewServeMux()
	bodies, parses := intake.NewBodies(), newParses()
	for _, k := range kinds() {
		mux.Handle("POST "+k.path, &handler{k, plans, bodies, parses, metrics, log.WithValues("webhook", k.name)})
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
	}
	if out, err = encodeAnswer(rv.uid, v); err != nil {
		v = h.fault(rv.operation, err)
		out, err = encodeAnswer(rv.uid, v) // a fault holds nothing that cannot be encoded
	}
	h.metrics.requests.WithLabelValues(h.name, rv.operation, string(v.Reason)).Inc()
	h.metrics.duration.WithLabelValues(h.name).Observe(time.Since(start).Seconds())
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
	Verdict
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
		a.Verdict = Verdict{Reason: plan.Unmanaged}
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
func (h *handler) decideFresh(ctx context.Context, s *inforce.State, rv *review) (Verdict, error) {
	v, err := h.decide(s, rv)
	if err != nil || len(v.Patches) == 0 || h.name == kindPlan || !s.IsPlanner(rv.User) {
		return v, err
	}
	if s, err = h.plans.Fresh(ctx); err != nil {
		return v, err
	}
	return h.decide(s, rv)
}

// fault answers for ballast's own failure, which an alert counts, and for an object that cannot be read, which is none:
// the API server sends no such object, and whoever can reach the port can. Errors here name no content of an object.
func (h *handler) fault(operation string, err error) Verdict {
	if errors.Is(err, rawjson.ErrMalformed) {
		h.metrics.malformed.WithLabelValues(h.name).Inc()
		h.log.V(1).Info("an object cannot be read, the write passed unchanged", "operation", operation, "why", err.Error())
	} else {
		h.metrics.faults.WithLabelValues(h.name).Inc()
		h.log.Error(err, "internal fault, the write passed unchanged", "operation", operation)
	}
	return Verdict{Reason: plan.Faulted, Revision: h.plans.State().Revision(), Warnings: []string{"ballast: internal fault, write passed unchanged"}}
}

// The longest values of a log line: names and users as Kubernetes has them, and twenty pins.
const (
	maxLoggedName   = 253
	maxLoggedFields = 1 << 10
)

// record logs a rewrite, a refusal or a powerful act, and every call at V(1); values are those of the audit
// annotations. Unless the caller was verified to be the API server, by its client certificate, a line tells what
// somebody on the network sent.
func (h *handler) record(r *http.Request, rv *review, v Verdict) {
	log := h.log
	if len(v.Patches) == 0 && v.Denied == "" && !slices.ContainsFunc(v.Enforced, Field.isAct) {
		log = log.V(1)
	}
	if !log.Enabled() {
		return
	}
	name := func(s string) string { return printable.Text(s, maxLoggedName) }
	fields := func(list []Field) string { return printable.Text(printFields(list), maxLoggedFields) }
	log.Info("write answered", "verified", intake.Verified(r), "operation", rv.operation, "namespace", name(rv.Namespace),
		"name", name(rv.Name), "user", name(rv.User), "dryRun", rv.dryRun, "reason", v.Reason, "revision", v.Revision,
		"requested", fields(v.Requested), "enforced", fields(v.Enforced))
}

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"ballast/planner/plan"
	"ballast/webhook/decision"
	"ballast/webhook/inforce"
	"ballast/webhook/intake"
)

// plans is a plan source that stands still until it is read live.
type plans struct {
	known *inforce.State
	live  *inforce.State
	err   error
	reads int
}

func (p *plans) State() *inforce.State { return p.known }
func (p *plans) Fresh(context.Context) (*inforce.State, error) {
	p.reads++
	return p.live, p.err
}

const clusterSecret = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"prod-eu","namespace":"argocd","labels":{"argocd.argoproj.io/secret-type":"cluster"}},` +
	`"data":{"config":"Y2FuYXJ5LXRva2Vu","server":"aHR0cHM6Ly9ldQ==","shard":"MQ=="}}`

// admissionRequest is a review as the API server encodes it.
func admissionRequest(t testing.TB, change func(*admissionv1.AdmissionRequest)) []byte {
	t.Helper()
	r := &admissionv1.AdmissionRequest{UID: "6d0c", Name: "prod-eu", Namespace: "argocd", Operation: admissionv1.Update,
		Object: runtime.RawExtension{Raw: []byte(clusterSecret)}, OldObject: runtime.RawExtension{Raw: []byte(strings.Replace(clusterSecret, "MQ==", "Mw==", 1))}}
	r.Kind.Kind, r.Resource.Version, r.Resource.Resource = "Secret", "v1", "secrets"
	r.UserInfo.Username = person
	if change != nil {
		change(r)
	}
	review := admissionv1.AdmissionReview{Request: r}
	review.APIVersion, review.Kind = "admission.k8s.io/v1", "AdmissionReview"
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// ask sends a review to a handler and reads the answer as the API server does.
func ask(t testing.TB, h http.Handler, path string, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		t.Fatal(err)
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Response == nil {
		t.Fatalf("no answer in %s", w.Body)
	}
	return review.Response
}

func statusOf(message string) *metav1.Status {
	return &metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: message}
}

func patchType() *admissionv1.PatchType { p := admissionv1.PatchTypeJSONPatch; return &p }

func TestHandlerAnswersEachWebhook(t *testing.T) {
	stands := object(t, fleet(), "")
	configMap := func(pins, text string) []byte {
		doc, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "ballast-plan", "annotations": stands.Annotations}, "data": map[string]string{"plan": text, "pins": pins}})
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	on := func(resource, name string, object, old []byte) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) {
			r.Resource.Resource, r.Name, r.Object.Raw, r.OldObject.Raw = resource, name, object, old
		}
	}
	for name, tc := range map[string]struct {
		path   string
		change func(*admissionv1.AdmissionRequest)
		want   *admissionv1.AdmissionResponse
	}{
		"clusters": {"/clusters", nil, &admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true,
			Patch: []byte(`[{"op":"replace","path":"/data/shard","value":"Mw=="}]`), PatchType: patchType(),
			AuditAnnotations: map[string]string{"reason": "Restored", "revision": "17", "requested": "shard=1", "enforced": "shard=3"},
			Warnings:         []string{`ballast: shard 1 was asked, 3 stays (plan 17); to pin, add "prod-eu: 1" to data.pins of ConfigMap ballast-plan`}}},
		"controllers": {"/controllers", on("statefulsets", workload, []byte(workloadWith("9", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`)), nil),
			&admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true, Patch: []byte(`[{"op":"replace","path":"/spec/replicas","value":4}]`), PatchType: patchType(),
				AuditAnnotations: map[string]string{"reason": "Restored", "revision": "17",
					"requested": "replicas=9 ARGOCD_CONTROLLER_REPLICAS=16", "enforced": "replicas=4 ARGOCD_CONTROLLER_REPLICAS=16"},
				Warnings: []string{"ballast: 9 replicas were asked, 4 stay (plan 17); to fix a number, set partition.replicas in ballast-config"}}},
		"scale": {"/scale", on("statefulsets", workload, []byte(`{"kind":"Scale","spec":{}}`), nil),
			&admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true, Patch: []byte(`[{"op":"add","path":"/spec/replicas","value":4}]`), PatchType: patchType(),
				AuditAnnotations: map[string]string{"reason": "Restored", "revision": "17", "requested": "replicas=0", "enforced": "replicas=4"},
				Warnings:         []string{"ballast: 0 replicas were asked, 4 stay (plan 17); to fix a number, set partition.replicas in ballast-config"}}},
		"pods": {"/pods", func(r *admissionv1.AdmissionRequest) {
			on("pods", workload+"-2", []byte(podOf(workload+"-2", `{"name":"application-controller"}`)), nil)(r)
			r.Operation = admissionv1.Create
		}, &admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true, AuditAnnotations: map[string]string{"reason": "InPlan", "revision": "17", "requested": "-", "enforced": "-"}}},
		"plan": {"/plan", on("configmaps", "ballast-plan", configMap("prod-eu: 99\n", stands.Plan), configMap("", stands.Plan)),
			&admissionv1.AdmissionResponse{UID: "6d0c", Allowed: false,
				Result:           statusOf("ballast: pins line 1: prod-eu: replica 99 is not below maxReplicas 16: choose 0 to 15, or raise maxReplicas"),
				AuditAnnotations: map[string]string{"reason": "PinRefused", "revision": "17", "requested": "pins.prod-eu=99", "enforced": "-"}}},
		"another ConfigMap, from an API server that knows no matchConditions": {"/plan",
			on("configmaps", "argocd-cm", configMap("prod-eu: 99", "forged"), []byte("null")),
			&admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true,
				AuditAnnotations: map[string]string{"reason": "Unmanaged", "revision": "17", "requested": "-", "enforced": "-"}}},
		"a ConfigMap of that name elsewhere": {"/plan", func(r *admissionv1.AdmissionRequest) {
			on("configmaps", "ballast-plan", configMap("prod-eu: 99", "forged"), []byte("null"))(r)
			r.Namespace = "elsewhere"
		},
			&admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true,
				AuditAnnotations: map[string]string{"reason": "Unmanaged", "revision": "17", "requested": "-", "enforced": "-"}}},
		"the planner's plan is not even read": {"/plan", func(r *admissionv1.AdmissionRequest) {
			on("configmaps", "ballast-plan", []byte(`{"data":[]}`), nil)(r)
			r.UserInfo.Username = plannerUser
		}, &admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true, AuditAnnotations: map[string]string{"reason": "InPlan", "revision": "17", "requested": "-", "enforced": "-"}}},
		"an object that cannot be read": {"/clusters", on("secrets", "prod-eu", []byte(`{"data":[]}`), nil),
			&admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true,
				AuditAnnotations: map[string]string{"reason": "Faulted", "revision": "17", "requested": "-", "enforced": "-"},
				Warnings:         []string{"ballast: internal fault, write passed unchanged"}}},
		"an operation that is not registered": {"/clusters", func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete },
			&admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true, AuditAnnotations: map[string]string{"reason": "Unmanaged", "revision": "-", "requested": "-", "enforced": "-"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHandler(&plans{known: knowing(t, stands)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
			if diff := cmp.Diff(tc.want, ask(t, h, tc.path, admissionRequest(t, tc.change))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAStopThatNoPlannerEndsIsLeftToPeople: by the clock of the webhook, at both places where replicas are written.
func TestAStopThatNoPlannerEndsIsLeftToPeople(t *testing.T) {
	for name, test := range map[string]struct {
		since time.Duration // ago
		want  string        // the answer, as the audit log has it
		patch string
	}{
		"for a while it holds": {plan.StopHeld - time.Minute, "Restored replicas=0", `[{"op":"replace","path":"/spec/replicas","value":0}]`},
		"then it does not":     {plan.StopHeld + time.Second, "StalePlan -", ""},
	} {
		for path, doc := range map[string]string{"/scale": `{"kind":"Scale","spec":{"replicas":4}}`, "/controllers": workloadWith("4", "")} {
			t.Run(name+path, func(t *testing.T) {
				p := fleet()
				stop(&p, time.Now().Add(-test.since))
				data, notes := written(t, p, "")
				before := &inforce.State{Identity: identity()}
				state := before.Next(data, notes)
				state.NoteStop(before, time.Now())
				h := NewHandler(&plans{known: state}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
				got := ask(t, h, path, admissionRequest(t, func(r *admissionv1.AdmissionRequest) {
					r.Resource.Resource, r.Name, r.Object.Raw = "statefulsets", workload, []byte(doc)
				}))
				said := got.AuditAnnotations["reason"] + " " + got.AuditAnnotations["enforced"]
				if said != test.want || string(got.Patch) != test.patch {
					t.Errorf("%s, patch %s; want %s, patch %s", said, got.Patch, test.want, test.patch)
				}
			})
		}
	}
}

func TestThePlannerIsNeverTurnedBackByAnOldPlan(t *testing.T) {
	next := withPlan(nil, func(p *plan.Plan) { p.Revision = 18; p.Clusters["prod-eu"] = plan.Row{Replica: 1} })
	old := withPlan(nil, nil)
	for name, tc := range map[string]struct {
		plans  plans
		user   string
		reads  int
		reason plan.Reason
		patch  string
	}{
		"its write by the next plan is admitted after a live read": {plans{known: old, live: next}, plannerUser, 1, plan.InPlan, ""},
		"its probe is enforced by the live plan":                   {plans{known: old, live: old}, plannerUser, 1, plan.Restored, `[{"op":"replace","path":"/data/shard","value":"Mw=="}]`},
		"its write by the known plan needs no read":                {plans{known: next}, plannerUser, 0, plan.InPlan, ""},
		"its write passes where the plan cannot be read":           {plans{known: old, err: errors.New("away")}, plannerUser, 1, plan.Faulted, ""},
		"a person's write is enforced without a read":              {plans{known: old, live: next}, person, 0, plan.Restored, `[{"op":"replace","path":"/data/shard","value":"Mw=="}]`},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHandler(&tc.plans, NewMetrics(prometheus.NewRegistry()), logr.Discard())
			got := ask(t, h, "/clusters", admissionRequest(t, func(r *admissionv1.AdmissionRequest) { r.UserInfo.Username = tc.user }))
			if !got.Allowed || got.AuditAnnotations["reason"] != string(tc.reason) || string(got.Patch) != tc.patch || tc.plans.reads != tc.reads {
				t.Errorf("reason %s, patch %s after %d reads; want %s, %s after %d", got.AuditAnnotations["reason"], got.Patch, tc.plans.reads, tc.reason, tc.patch, tc.reads)
			}
		})
	}
}

// panicPlans is a plan source that breaks the decision it is asked for, and then comes back.
type panicPlans struct{ *plans }

func (p panicPlans) State() *inforce.State {
	if p.reads++; p.reads == 1 {
		panic("a message that may hold anything")
	}
	return p.known
}

func TestAPanicLetsTheWritePassAndCounts(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := NewHandler(panicPlans{&plans{}}, NewMetrics(registry), logr.Discard())
	got := ask(t, h, "/clusters", admissionRequest(t, nil))
	want := &admissionv1.AdmissionResponse{UID: "6d0c", Allowed: true,
		AuditAnnotations: map[string]string{"reason": "Faulted", "revision": "-", "requested": "-", "enforced": "-"},
		Warnings:         []string{"ballast: internal fault, write passed unchanged"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	counted := "# HELP ballast_webhook_faults_total Writes that passed unchanged because ballast failed.\n# TYPE ballast_webhook_faults_total counter\n" +
		"ballast_webhook_faults_total{webhook=\"clusters\"} 1\nballast_webhook_faults_total{webhook=\"controllers\"} 0\n" +
		"ballast_webhook_faults_total{webhook=\"plan\"} 0\nballast_webhook_faults_total{webhook=\"pods\"} 0\nballast_webhook_faults_total{webhook=\"scale\"} 0\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(counted), "ballast_webhook_faults_total"); err != nil {
		t.Error(err)
	}
}

// TestWhoeverReachesThePortRaisesNoAlert: the objects of these are none that an API server sends. The write passes, a
// counter of its own tells, and the one that BallastWebhookFaults looks at stays where it is; a plan that cannot be
// read live is a fault.
func TestWhoeverReachesThePortRaisesNoAlert(t *testing.T) {
	object := func(raw, user string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) { r.Object.Raw, r.UserInfo.Username = []byte(raw), user }
	}
	planMap := func(raw string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) { object(raw, person)(r); r.Name = "ballast-plan" }
	}
	for name, tc := range map[string]struct {
		path              string
		change            func(*admissionv1.AdmissionRequest)
		faults, malformed float64
	}{
		"a Secret whose data is a list":   {"/clusters", object(`{"data":[]}`, person), 0, 1},
		"a Secret that is null":           {"/clusters", object(`null`, person), 0, 1},
		"a Secret that is a word":         {"/clusters", object(`"x"`, person), 0, 1},
		"labels that are a word":          {"/clusters", object(`{"metadata":"x"}`, person), 0, 1},
		"a workload without a spec":       {"/controllers", object(`{}`, person), 0, 1},
		"containers that are an object":   {"/controllers", object(`{"spec":{"template":{"spec":{"containers":{}}}}}`, person), 0, 1},
		"a Scale that is a list":          {"/scale", object(`{"spec":[]}`, person), 0, 1},
		"a plan without metadata":         {"/plan", planMap(`{}`), 0, 1},
		"a plan whose data is a list":     {"/plan", planMap(`{"metadata":{},"data":[]}`), 0, 1},
		"a live read of the plan failing": {"/clusters", object(clusterSecret, plannerUser), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMetrics(prometheus.NewRegistry())
			got := ask(t, NewHandler(&plans{known: withPlan(nil, nil), err: errors.New("away")}, m, logr.Discard()), tc.path, admissionRequest(t, tc.change))
			if !got.Allowed || got.AuditAnnotations["reason"] != string(plan.Faulted) || got.Patch != nil {
				t.Errorf("allowed: %v, reason %s, patch %s", got.Allowed, got.AuditAnnotations["reason"], got.Patch)
			}
			kind := strings.TrimPrefix(tc.path, "/")
			faults, malformed := testutil.ToFloat64(m.faults.WithLabelValues(kind)), testutil.ToFloat64(m.malformed.WithLabelValues(kind))
			if faults != tc.faults || malformed != tc.malformed {
				t.Errorf("%v faults and %v malformed objects, want %v and %v", faults, malformed, tc.faults, tc.malformed)
			}
		})
	}
}

// TestWhoHangsUpRaisesNoAlert: the caller names the planner, has the plan read anew, and is gone meanwhile.
func TestWhoHangsUpRaisesNoAlert(t *testing.T) {
	gone := make(chan struct{})
	known := &leaving{plans: plans{known: withPlan(nil, nil), live: withPlan(nil, nil)}}
	m := NewMetrics(prometheus.NewRegistry())
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	h := NewHandler(known, m, log)
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known.hungUp = r.Context().Done()
		h.ServeHTTP(w, r)
		close(gone)
	}))
	defer served.Close()

	conn, err := net.Dial("tcp", served.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body := admissionRequest(t, func(r *admissionv1.AdmissionRequest) { r.UserInfo.Username = plannerUser })
	if _, err = fmt.Fprintf(conn, "POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	if err = conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-gone
	if faults := testutil.ToFloat64(m.faults.WithLabelValues("clusters")); faults != 0 || known.reads != 1 {
		t.Errorf("%v faults in %d live reads, want none in one", faults, known.reads)
	}
	if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "fault") }) {
		t.Errorf("lines %q tell of a fault", lines)
	}
}

// leaving are plans whose live read lasts until the caller has gone, and fails if it may not go on.
type leaving struct {
	plans
	hungUp <-chan struct{}
}

func (l *leaving) Fresh(ctx context.Context) (*inforce.State, error) {
	<-l.hungUp
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return l.plans.Fresh(ctx)
}

// TestALogLineTellsWhoWasVerifiedAndIsForgedByNobody: names and users of a body are cut and cleaned.
func TestALogLineTellsWhoWasVerifiedAndIsForgedByNobody(t *testing.T) {
	forged := func(r *admissionv1.AdmissionRequest) {
		r.UserInfo.Username = "system:admin\nlevel=error\x1b[2J" + strings.Repeat("x", 3<<10)
		r.Namespace = "argocd\r\n" + strings.Repeat("y", 200)
	}
	for name, tc := range map[string]struct {
		tls  *tls.ConnectionState
		want string
	}{
		"no TLS":                 {nil, `"verified"=false`},
		"no client certificate":  {&tls.ConnectionState{}, `"verified"=false`},
		"the client certificate": {&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}, `"verified"=true`},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})
			h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), log)
			r := httptest.NewRequest(http.MethodPost, "/clusters", bytes.NewReader(admissionRequest(t, forged)))
			r.TLS = tc.tls
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusOK || len(lines) != 1 {
				t.Fatalf("status %d, %d lines", w.Code, len(lines))
			}
			if line := lines[0]; !strings.Contains(line, tc.want) || !strings.Contains(line, `"user"="system:admin level=error\\u001b[2Jxxx`) || len(line) > 1<<10 {
				t.Errorf("%d bytes: %.600s", len(line), line)
			}
		})
	}
}

func TestABodyThatIsNoReviewIsAnHTTPError(t *testing.T) {
	h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
	chunked := httptest.NewRequest(http.MethodPost, "/clusters", strings.NewReader("{}"))
	chunked.ContentLength = -1
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, chunked); w.Code != http.StatusLengthRequired {
		t.Errorf("a body of unknown length: status %d", w.Code)
	}
	for name, tc := range map[string]struct {
		method, path, body string
		want               int
	}{
		"nothing":         {http.MethodPost, "/clusters", "", http.StatusBadRequest},
		"no JSON":         {http.MethodPost, "/clusters", "hello", http.StatusBadRequest},
		"no request":      {http.MethodPost, "/clusters", `{"apiVersion":"admission.k8s.io/v1"}`, http.StatusBadRequest},
		"another version": {http.MethodPost, "/clusters", `{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"a"}}`, http.StatusBadRequest},
		"another path":    {http.MethodPost, "/metrics", `{}`, http.StatusNotFound},
		"another method":  {http.MethodGet, "/clusters", ``, http.StatusMethodNotAllowed},
		"too large":       {http.MethodPost, "/clusters", strings.Repeat(" ", intake.MaxBody+1), http.StatusRequestEntityTooLarge},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body)))
		if w.Code != tc.want {
			t.Errorf("%s: status %d, want %d", name, w.Code, tc.want)
		}
	}
}

func TestNoSecretDataIsLoggedCountedOrAnswered(t *testing.T) {
	var out strings.Builder
	log := funcr.New(func(prefix, args string) { out.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 9})
	registry := prometheus.NewRegistry()
	h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(registry), log)
	// The token stands where it should, in the shard, in another key, and in an object that cannot be read.
	for _, secret := range []string{clusterSecret, strings.Replace(clusterSecret, "MQ==", "Y2FuYXJ5LXRva2Vu", 1), `{"data":["Y2FuYXJ5LXRva2Vu"]}`, `{"data":"Y2FuYXJ5LXRva2Vu"}`} {
		got := ask(t, h, "/clusters", admissionRequest(t, func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(secret) }))
		fmt.Fprintf(&out, "%+v %s\n", got, got.Patch)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&out, families)
	for _, token := range []string{"Y2FuYXJ5", "canary"} {
		if strings.Contains(out.String(), token) {
			t.Errorf("%q got out:\n%s", token, out.String())
		}
	}
	if !strings.Contains(out.String(), `"requested"="shard=invalid"`) {
		t.Errorf("the log does not tell of the rewrite:\n%s", out.String())
	}
}

// FuzzHandler sends any body to every webhook: each answers with a patch of its own path family, to which a second pass adds
// nothing, or with an HTTP error, and never crashes.
func FuzzHandler(f *testing.F) {
	stands := object(f, fleet(), "prod-us: 1\n")
	f.Add(admissionRequest(f, nil))
	f.Add(admissionRequest(f, func(r *admissionv1.AdmissionRequest) {
		r.Operation, r.Name, r.OldObject.Raw = admissionv1.Create, "", nil
		r.Object.Raw = []byte(`{"metadata":{"generateName":"c-"}}`)
	}))
	f.Add(admissionRequest(f, func(r *admissionv1.AdmissionRequest) {
		r.Resource.Resource, r.Name = "statefulsets", workload
		r.Object.Raw = []byte(workloadWith("9", `{"name":"x","command":["argocd-application-controller"],"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","valueFrom":{}}]}`))
	}))
	f.Add(admissionRequest(f, func(r *admissionv1.AdmissionRequest) {
		r.Object.Raw = []byte(`{"metadata":{"annotations":{"ballast.argoproj.io/digest":"x"}},"data":{"plan":"revision: 17","pins":"a: 1"},"immutable":true}`)
	}))
	h := NewHandler(&plans{known: knowing(f, stands), live: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, k := range kinds() {
			fuzzed(t, h, k, body)
			// The API server names each key once, and sends an object.
			once, ok := patched(t, body, nil)
			if !ok {
				continue
			}
			ops, answered := fuzzed(t, h, k, once)
			if !answered {
				continue
			}
			again, _ := patched(t, once, ops)
			if more, answered := fuzzed(t, h, k, again); len(more) > 0 || !answered {
				t.Errorf("a second pass of %s over %s patches %v; the first patched %v", k.name, again, more, ops)
			}
		}
	})
}

// fuzzed is the patch that a webhook answers a body with; not answered is one that was refused, by HTTP or for its pins.
func fuzzed(t *testing.T, h http.Handler, k kind, body []byte) (ops []decision.Op, answered bool) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, k.path, bytes.NewReader(body)))
	if w.Code != http.StatusOK {
		return nil, false
	}
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Response == nil {
		t.Fatalf("no answer in %s: %v", w.Body, err)
	}
	if p := got.Response.Patch; p != nil {
		if err := json.Unmarshal(p, &ops); err != nil {
			t.Fatalf("no patch in %s: %v", p, err)
		}
	}
	for _, op := range ops {
		if err := fits(k.name, op); err != nil {
			t.Error(err)
		}
	}
	return ops, got.Response.Allowed
}

// patched is a review whose object has had a patch, written anew; a body that is no JSON, or has no object, is none.
func patched(t *testing.T, body []byte, ops []decision.Op) ([]byte, bool) {
	t.Helper()
	var review map[string]any
	if json.Unmarshal(body, &review) != nil {
		return nil, false
	}
	request, ok := review["request"].(map[string]any)
	if _, isObject := request["object"].(map[string]any); !ok || !isObject {
		return nil, false
	}
	object, err := json.Marshal(request["object"])
	if err != nil {
		t.Fatal(err)
	}
	request["object"] = json.RawMessage(apply(t, string(object), ops))
	out, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return out, true
}
